//! Sentences broken into lines.

use stepscope_engine::{fit_width, width_of};

/// `text` in lines of at most `width` columns, broken between words; a word that is wider loses its middle.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let word = fit_width(word, width);
        match lines.last_mut() {
            Some(line) if width_of(line) + 1 + width_of(&word) <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrap("the top kernel is gemm", 10), ["the top", "kernel is", "gemm"]);
        assert_eq!(wrap("unbreakable", 5), ["un…le"]);
        assert_eq!(wrap("", 5), Vec::<String>::new());
    }
}

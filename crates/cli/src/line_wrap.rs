//! Sentences broken into lines.

use stepscope_engine::{fit_width, width_of};

/// Units stay with their number.
const UNITS: [&str; 12] = ["%", "ns", "µs", "ms", "s", "min", "h", "B", "KiB", "MiB", "GiB", "TiB"];

/// `text` in lines of at most `width` columns, broken between words; a word that is wider loses its middle.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words(text) {
        let word = fit_width(&word, width);
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

/// What is not broken: words, and numbers with their unit.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let is_unit = UNITS.contains(&word.trim_end_matches(|c: char| c.is_ascii_punctuation() && c != '%'));
        match words.last_mut() {
            Some(number) if is_unit && number.ends_with(|c: char| c.is_ascii_digit()) => {
                number.push(' ');
                number.push_str(word);
            }
            _ => words.push(word.to_string()),
        }
    }
    words
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

    #[test]
    fn a_unit_stays_with_its_number() {
        assert_eq!(wrap("idle for 49.8 %, then", 14), ["idle for", "49.8 %, then"]);
        assert_eq!(wrap("takes 12 ms (3 %) s 5", 10), ["takes", "12 ms", "(3 %) s 5"]);
    }
}

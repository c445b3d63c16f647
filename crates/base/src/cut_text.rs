//! Texts that are shown, and need not be whole.

use std::borrow::Cow;

/// The text, or where it has more than `most` bytes its begin and `…`.
pub fn cut_text(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    Cow::Owned(format!("{}…", &text[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(
            [cut_text("abc", 3), cut_text("abcd", 3), cut_text("aéb", 2), cut_text("é", 0)],
            ["abc", "abc…", "a…", "…"]
        );
    }
}

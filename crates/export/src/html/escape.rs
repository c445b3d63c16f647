//! Text of a trace inside a page.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter, Write};
use stepscope_base::units::format_count;
use stepscope_engine::printable;

/// More characters of one text are not on a page: a browser takes seconds to lay out a word of a million.
const MAX_CHARS: usize = 1_000;
/// The characters that are shown of the end of a longer text.
const TAIL_CHARS: usize = 200;

/// Shows a text so that a page has it as text, also inside an attribute. What would command a terminal or turn writing
/// around is shown by its number; of a very long text the middle is left out, and its length is said.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        printable(&clipped(self.0)).chars().try_for_each(|character| match character {
            '&' => formatter.write_str("&amp;"),
            '<' => formatter.write_str("&lt;"),
            '>' => formatter.write_str("&gt;"),
            '"' => formatter.write_str("&quot;"),
            '\'' => formatter.write_str("&#39;"),
            _ => formatter.write_char(character),
        })
    }
}

/// `text`, or its begin and its end with its length behind them.
fn clipped(text: &str) -> Cow<'_, str> {
    // No text has more characters than bytes.
    let count = if text.len() <= MAX_CHARS { 0 } else { text.chars().count() };
    if count <= MAX_CHARS {
        return text.into();
    }
    let place = |at: usize| text.char_indices().nth(at).map_or(text.len(), |(place, _)| place);
    let (head, tail) = (&text[..place(MAX_CHARS - TAIL_CHARS)], &text[place(count - TAIL_CHARS)..]);
    format!("{head}…{tail} ({} characters)", format_count(count as i64)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_text() {
        let shown = Escaped("</style><script a='1' b=\"2\">&\u{202e}").to_string();
        assert_eq!(shown, "&lt;/style&gt;&lt;script a=&#39;1&#39; b=&quot;2&quot;&gt;&amp;\\u202e");
    }

    #[test]
    fn of_a_very_long_name_begin_end_and_length_are_shown() {
        let name = format!("begin{}end", "é".repeat(1_000_000));
        let shown = Escaped(&name).to_string();
        assert!(shown.starts_with("beginéé") && shown.ends_with("ééend (1,000,008 characters)"), "{}", shown.len());
        assert_eq!(shown.chars().count(), 1_000 + "… (1,000,008 characters)".chars().count());
        let fits = "é".repeat(1_000);
        assert_eq!(Escaped(&fits).to_string(), fits);
    }
}

//! Text of a trace inside a page.

use std::fmt::{self, Display, Formatter, Write};
use stepscope_engine::printable;

/// Shows a text so that a page has it as text, also inside an attribute. What would command a terminal or turn writing
/// around is replaced.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        printable(self.0).chars().try_for_each(|character| match character {
            '&' => formatter.write_str("&amp;"),
            '<' => formatter.write_str("&lt;"),
            '>' => formatter.write_str("&gt;"),
            '"' => formatter.write_str("&quot;"),
            '\'' => formatter.write_str("&#39;"),
            _ => formatter.write_char(character),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_text() {
        let shown = Escaped("</style><script a='1' b=\"2\">&\u{202e}").to_string();
        assert_eq!(shown, "&lt;/style&gt;&lt;script a=&#39;1&#39; b=&quot;2&quot;&gt;&amp;\u{fffd}");
    }
}

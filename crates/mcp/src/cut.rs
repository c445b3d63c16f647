//! Texts that fit into a number of bytes.

use stepscope_engine::{fit_name, printable};

/// `text` on one line, of at most `max_bytes` bytes as JSON: its end gives way to `…`.
pub(crate) fn cut(text: &str, max_bytes: usize) -> String {
    let text = printable(text);
    if text.chars().map(json_bytes).sum::<usize>() <= max_bytes {
        return text;
    }
    let mut room = max_bytes.saturating_sub('…'.len_utf8());
    let fits = |c: &char| {
        let bytes = json_bytes(*c);
        let is_room = bytes <= room;
        room -= if is_room { bytes } else { 0 };
        is_room
    };
    let kept: String = text.chars().take_while(fits).collect();
    kept.trim_end().to_string() + "…"
}

/// The same of a name, of which begin and end tell most: its middle gives way.
pub(crate) fn cut_name(name: &str, max_bytes: usize) -> String {
    cut(&fit_name(name, max_bytes.saturating_sub(2)), max_bytes)
}

/// Bytes of a printable character within a text of JSON.
fn json_bytes(c: char) -> usize {
    if matches!(c, '"' | '\\') { 2 } else { c.len_utf8() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_fits_stays() {
        assert_eq!(cut("aten::mm", 8), "aten::mm");
        assert_eq!(cut_name("aten::mm", 10), "aten::mm");
    }

    #[test]
    fn a_sentence_loses_its_end_and_a_name_its_middle() {
        assert_eq!(cut("one two three", 10), "one two…");
        assert_eq!(cut_name("ncclDevKernel_AllReduce_Sum", 14), "ncclDe…e_Sum");
    }

    #[test]
    fn whatever_a_text_holds_it_fits_as_json() {
        let marks = "e\u{301}\u{301}\u{301}".repeat(300);
        for text in ["\"\\".repeat(500), marks, "層\u{1b}\u{202e}".repeat(400), "\u{1f525}".repeat(300)] {
            for max_bytes in [3, 17, 100] {
                for fitted in [cut(&text, max_bytes), cut_name(&text, max_bytes)] {
                    let json = serde_json::to_string(&fitted).unwrap();
                    assert!(json.len() - 2 <= max_bytes, "{max_bytes}: {json}");
                    assert!(fitted.contains('…'), "{fitted}");
                }
            }
        }
    }
}

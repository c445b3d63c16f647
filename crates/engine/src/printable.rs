//! Names from a trace made safe and short enough for a line of text.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The columns that `text` takes on a terminal.
pub fn width_of(text: &str) -> usize {
    text.width()
}

/// `text` on one line, without anything that a terminal would obey or that turns writing around: such characters are
/// shown as `\x1b` and `\u202e`, line breaks and tabs as blanks.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => shown.push(' '),
            c if c.is_control() => shown.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if is_direction_mark(c) => shown.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => shown.push(c),
        }
    }
    shown
}

/// `text`, printable and at most `width` columns wide: its middle gives way to `…`.
pub fn fit_width(text: &str, width: usize) -> String {
    let text = printable(text);
    if text.width() <= width {
        return text;
    }
    shortened(&text, width, 2)
}

/// `text` with `…` before the last `1 / parts` of the room.
fn shortened(text: &str, width: usize, parts: usize) -> String {
    let room = width.saturating_sub(1);
    let head = prefix_of_width(text.chars(), room - room / parts);
    let tail: String = prefix_of_width(text.chars().rev(), room / parts).chars().rev().collect();
    format!("{head}…{tail}")
}

/// `name`, printable and at most `width` columns wide. A C++ function that is too wide first loses what tells least: the
/// word `void` before it and the parameters behind it; of its template arguments, more of the first stay.
pub fn fit_name(name: &str, width: usize) -> String {
    let name = printable(name);
    if name.width() <= width {
        return name;
    }
    let bare = name.strip_prefix("void ").and_then(without_parameters);
    match bare {
        Some(bare) if bare.width() > width => shortened(bare, width, 3),
        _ => fit_width(bare.unwrap_or(&name), width),
    }
}

/// `function` up to the parenthesis that the last one closes.
fn without_parameters(function: &str) -> Option<&str> {
    let mut depth = 0;
    for (at, c) in function.strip_suffix(')')?.char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' if depth == 0 => return Some(&function[..at]).filter(|bare| !bare.is_empty()),
            '(' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn prefix_of_width(chars: impl Iterator<Item = char>, width: usize) -> String {
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= width
    };
    chars.take_while(fits).collect()
}

/// Characters that reorder the text around them, or end its line or paragraph.
fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_long_name_gives_way() {
        assert_eq!(fit_width("aten::mm", 8), "aten::mm");
        assert_eq!(fit_width("aten::convolution", 9), "aten…tion");
        assert_eq!(fit_width("aten::convolution", 10), "aten:…tion");
        assert_eq!(fit_width("層層層層層層", 7), "層…層");
        assert_eq!(fit_width("abc", 1), "…");
    }

    #[test]
    fn a_function_loses_its_parameters_first() {
        assert_eq!(fit_name("void gemm<(int)4>(float (*)(int), Params)", 20), "gemm<(int)4>");
        assert_eq!(fit_name("void vectorized_kernel<4, Functor>(int)", 16), "vectorized…ctor>");
        assert_eq!(fit_name("void gemm(int)", 20), "void gemm(int)");
        assert_eq!(fit_name("ncclDevKernel_AllReduce(Args)", 11), "ncclD…Args)");
        assert_eq!(fit_name("void )))))))))", 5), "vo…))");
    }

    #[test]
    fn a_name_cannot_command_the_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\nc\u{202e}\u{9b}\u{7f}\0"), "a\\x1b[31mb c\\u202e\\x9b\\x7f\\x00");
        assert_eq!(printable("\u{61c}\u{2028}層é"), "\\u061c\\u2028層é");
        // What is shown in more characters still fits.
        assert_eq!(fit_name("\u{1b}\u{1b}\u{1b}\u{1b}", 8), "\\x1b…x1b");
        assert_eq!(fit_width("\u{202e}exe", 9), "\\u202eexe");
    }
}

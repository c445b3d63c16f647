//! Names and counts in the sentences of rules.

use stepscope_base::units::format_count;

/// A name in a sentence; the middle of a long one is left out.
pub(super) fn quoted(name: &str) -> String {
    const SHOWN: (usize, usize) = (40, 16);
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= SHOWN.0 + SHOWN.1 + 1 {
        return format!("`{name}`");
    }
    let (head, tail) = (&letters[..SHOWN.0], &letters[letters.len() - SHOWN.1..]);
    format!("`{}…{}`", head.iter().collect::<String>(), tail.iter().collect::<String>())
}

/// `1 kernel`, `2,000 copies`.
pub(super) fn counted(count: i64, of: &str) -> String {
    let of = match (count, of.strip_suffix('y')) {
        (1, _) => of.to_string(),
        (_, Some(stem)) => format!("{stem}ies"),
        _ => format!("{of}s"),
    };
    format!("{} {of}", format_count(count))
}

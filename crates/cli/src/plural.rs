//! Nouns behind a number.

use stepscope_base::units::format_count;

/// `1 event`, `2,000 events`, `3 processes`.
pub(crate) fn plural(count: u64, noun: &str) -> String {
    let ending = match noun {
        _ if count == 1 => "",
        noun if noun.ends_with('s') => "es",
        _ => "s",
    };
    format!("{} {noun}{ending}", format_count(count as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_follow_their_number() {
        assert_eq!(
            [plural(1, "process"), plural(2_000, "process"), plural(0, "event")],
            ["1 process", "2,000 processes", "0 events"]
        );
    }
}

//! Sizes as people write them: `10M`, `1.5G`.

/// Reads a count with an optional `K`, `M` or `G` (powers of ten).
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let (number, factor) = match text.to_ascii_uppercase().trim_end_matches('B').chars().last() {
        Some('K') => (text, 1e3),
        Some('M') => (text, 1e6),
        Some('G') => (text, 1e9),
        _ => (text, 1.0),
    };
    let digits = number.trim_end_matches(|end: char| end.is_ascii_alphabetic());
    let value = digits.parse::<f64>().ok().map(|value| value * factor).filter(|value| *value >= 1.0 && *value < 1e15);
    value.map(|value| value as u64).ok_or_else(|| format!("expected a size such as 10M or 1G, found {text:?}"))
}

/// The shortest way to write `count` that reads back as the same: `10M`.
pub(crate) fn short(count: u64) -> String {
    for (factor, letter) in [(1_000_000_000, "G"), (1_000_000, "M"), (1_000, "K")] {
        if count >= factor && count.is_multiple_of(factor / 10) {
            return format!("{}{letter}", count as f64 / factor as f64);
        }
    }
    count.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written() {
        for (text, count) in
            [("10M", 10_000_000), ("1.5G", 1_500_000_000), ("12", 12), ("3k", 3_000), ("1MB", 1_000_000)]
        {
            assert_eq!(parse(text), Ok(count));
            assert_eq!(parse(&short(count)), Ok(count));
        }
        assert_eq!(short(1_500_000_000), "1.5G");
        assert!(parse("").is_err() && parse("x").is_err() && parse("0").is_err());
    }
}

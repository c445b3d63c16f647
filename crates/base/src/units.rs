//! Numbers as people read them: three significant digits and the unit that suits.

/// `1_234_567` ns as `1.23 ms`; negative values keep their sign.
pub fn format_ns(ns: i64) -> String {
    scaled(ns, &[("ns", 1), ("µs", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000), ("h", 3_600_000_000_000)])
}

/// `1536` bytes as `1.50 KiB`.
pub fn format_bytes(bytes: i64) -> String {
    scaled(bytes, &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)])
}

/// `1_500_000_000` bytes in a second as `1.50 GB/s`: rates are decimal, as vendors give them.
pub fn format_bytes_per_s(bytes_per_s: i64) -> String {
    let units =
        [("B/s", 1), ("kB/s", 1_000), ("MB/s", 1_000_000), ("GB/s", 1_000_000_000), ("TB/s", 1_000_000_000_000)];
    scaled(bytes_per_s, &units)
}

/// `1234567` as `1,234,567`.
pub fn format_count(count: i64) -> String {
    grouped(&count.to_string())
}

/// The digits of a whole number in groups of three.
fn grouped(number: &str) -> String {
    let (sign, digits) = if let Some(digits) = number.strip_prefix('-') { ("-", digits) } else { ("", number) };
    let mut text = String::from(sign);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A ratio in `0..=1` as a percentage with one decimal: `0.1561` as `15.6 %`.
pub fn format_ratio(ratio: f64) -> String {
    format!("{:.1} %", ratio * 100.0)
}

fn scaled(value: i64, units: &[(&str, i64)]) -> String {
    let magnitude = value.unsigned_abs();
    let (unit, size) = units.iter().rev().find(|(_, size)| magnitude >= *size as u64).unwrap_or(&units[0]);
    if *size == 1 {
        return format!("{value} {unit}");
    }
    let scaled = value as f64 / *size as f64;
    match scaled.abs() {
        x if x >= 99.95 => format!("{} {unit}", grouped(&format!("{scaled:.0}"))),
        x if x >= 9.995 => format!("{scaled:.1} {unit}"),
        _ => format!("{scaled:.2} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_the_unit_that_suits() {
        let texts: Vec<String> = [0, 999, 1_000, 12_345, 1_234_567, 1_500_000_000].map(format_ns).into();
        assert_eq!(texts, ["0 ns", "999 ns", "1.00 µs", "12.3 µs", "1.23 ms", "1.50 s"]);
        assert_eq!(format_ns(-1_500), "-1.50 µs");
        assert_eq!([1_000, 3_599, 271_871].map(|s| format_ns(s * 1_000_000_000)), ["1,000 s", "3,599 s", "75.5 h"]);
        assert_eq!(format_ns(-i64::MAX), "-2,562,048 h");
        assert_eq!(format_bytes(1536), "1.50 KiB");
        assert_eq!(format_bytes_per_s(25_600_000_000), "25.6 GB/s");
        assert_eq!(format_count(-1_234_567), "-1,234,567");
        assert_eq!(format_count(12), "12");
        assert_eq!(format_ratio(0.1561), "15.6 %");
    }
}

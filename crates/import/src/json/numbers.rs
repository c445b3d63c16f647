//! Numbers from their text, without rounding through floating point: at Unix-epoch microseconds an `f64` steps by a
//! quarter of a microsecond.

/// Times lie in this range, in ns: differences of any two fit 64 bits. As Unix time it ends in the year 2116.
pub(crate) const TIME_RANGE_NS: std::ops::Range<i64> = -(1 << 60)..1 << 62;
/// Longer durations (13 days) are no measurement but a wrapped difference.
pub(crate) const MAX_DURATION_NS: i64 = 1 << 50;

/// What `text` begins with, in ns, and the length of it, when it is decimal microseconds as profilers write them: few
/// enough digits, at most three behind the point, no exponent. `None` leaves it to [`time_ns`] and [`duration_ns`].
#[inline(always)]
pub(crate) fn plain_us(text: &[u8]) -> Option<(i64, usize)> {
    let (whole, mut at) = digits(text)?;
    if whole >= TIME_RANGE_NS.end / 1_000 - 1 {
        return None;
    }
    let mut ns = whole * 1_000;
    if text[at] == b'.' {
        let (word, len) = leading_digits(text, at + 1)?;
        if !(1..=3).contains(&len) {
            return None;
        }
        let kept = word & 0x00ff_ffff >> (24 - 8 * len);
        ns += (kept & 0xff) as i64 * 100 + (kept >> 8 & 0xff) as i64 * 10 + (kept >> 16) as i64;
        at += 1 + len;
    }
    ends_number(text, at).then_some((ns, at))
}

/// What `text` begins with, and the length of it, when it is a plain integer. `None` leaves it to [`integer`].
#[inline(always)]
pub(crate) fn plain_integer(text: &[u8]) -> Option<(i64, usize)> {
    let (number, at) = digits(text)?;
    ends_number(text, at).then_some((number, at))
}

/// The value of the 1 to 16 digits that `text` begins with, and their number; there is a byte behind them.
#[inline(always)]
fn digits(text: &[u8]) -> Option<(i64, usize)> {
    let (word, len) = leading_digits(text, 0)?;
    match len {
        0 => None,
        1..8 => Some((value(word << (64 - 8 * len)), len)),
        _ => {
            let (later, later_len) = leading_digits(text, 8)?;
            match later_len {
                0 => Some((value(word), 8)),
                1..8 => {
                    let number = value(word) * POWERS_OF_TEN[later_len] + value(later << (64 - 8 * later_len));
                    Some((number, 8 + later_len))
                }
                _ => {
                    let is_longer = text.get(16).is_none_or(u8::is_ascii_digit);
                    (!is_longer).then(|| (value(word) * 100_000_000 + value(later), 16))
                }
            }
        }
    }
}

const POWERS_OF_TEN: [i64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// The value of eight digits, if that is what they are.
#[inline(always)]
pub(crate) fn eight_digits(text: &[u8; 8]) -> Option<u64> {
    let (word, len) = leading_digits(text, 0)?;
    (len == 8).then(|| value(word) as u64)
}

/// The next eight bytes from `at` on as the values of digits, and how many of them are digits before the first that is
/// none.
#[inline(always)]
pub(crate) fn leading_digits(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let bytes = text.get(at..)?.first_chunk::<8>()?;
    let word = u64::from_le_bytes(*bytes) ^ u64::from_le_bytes([b'0'; 8]);
    // The high bit of each byte that is above 9; what a byte carries reaches only those behind it.
    let no_digits = (word.wrapping_add(u64::from_le_bytes([0x76; 8])) | word) & u64::from_le_bytes([0x80; 8]);
    Some((word, no_digits.trailing_zeros() as usize / 8))
}

/// The value of eight digits: the pairs, then the fours, then all of them are joined at once.
#[inline(always)]
fn value(digits: u64) -> i64 {
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let low = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let high = ((pairs >> 16) & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    (low.wrapping_add(high) >> 32) as i64
}

#[inline(always)]
fn ends_number(text: &[u8], at: usize) -> bool {
    matches!(text.get(at), Some(b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t'))
}

/// A time in ns from decimal microseconds; what is finer than 1 ns is rounded to the nearest, halves away from 0.
pub(crate) fn time_ns(us: &[u8]) -> Option<i64> {
    scaled(us, 3).filter(|ns| TIME_RANGE_NS.contains(ns))
}

/// A duration in ns from decimal microseconds, rounded like times; possibly negative.
pub(crate) fn duration_ns(us: &[u8]) -> Option<i64> {
    scaled(us, 3).filter(|ns| ns.abs() <= MAX_DURATION_NS)
}

/// An integer: digits, or a decimal without a fraction. Ids above `i64::MAX` wrap to negative ones and stay distinct.
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    let is_plain = text.iter().all(|byte| byte.is_ascii_digit());
    if is_plain && let Some(number) = std::str::from_utf8(text).ok()?.parse::<u64>().ok() {
        return Some(number as i64);
    }
    scaled(text, 0)
}

/// A fraction; finite.
pub(crate) fn fraction(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

/// The decimal number `text` times 10^`power`, to the nearest integer, halves away from 0; `None` for what is no number
/// or does not fit.
fn scaled(text: &[u8], power: i32) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let exponent_at = digits.iter().position(|byte| matches!(byte, b'e' | b'E')).unwrap_or(digits.len());
    let (mantissa, exponent) = digits.split_at(exponent_at);
    let mut shift = power.checked_add(exponent_value(exponent)?)?;
    let mut number: i128 = 0;
    let (mut has_digit, mut has_point) = (false, false);
    for byte in mantissa {
        match byte {
            b'0'..=b'9' => {
                has_digit = true;
                if number < 10_i128.pow(30) {
                    number = number * 10 + i128::from(byte - b'0');
                    shift -= i32::from(has_point);
                } else {
                    shift += i32::from(!has_point);
                }
            }
            b'.' if !has_point => has_point = true,
            _ => return None,
        }
    }
    if !has_digit {
        return None;
    }
    let magnitude = shifted(number, shift)?;
    i64::try_from(if is_negative { -magnitude } else { magnitude }).ok()
}

/// The value of `e+3` and its like; 0 for no exponent. Held to ±1000, beyond which every number is 0 or does not fit.
fn exponent_value(exponent: &[u8]) -> Option<i32> {
    let Some((_, digits)) = exponent.split_first() else { return Some(0) };
    let (sign, digits) = match digits {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        rest => (1, rest),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(sign * digits.iter().fold(0, |value, digit| (value * 10 + i32::from(digit - b'0')).min(1_000)))
}

fn shifted(number: i128, shift: i32) -> Option<i128> {
    if number == 0 {
        return Some(0);
    }
    if shift >= 0 {
        return 10_i128.checked_pow(shift.unsigned_abs())?.checked_mul(number);
    }
    match 10_i128.checked_pow(shift.unsigned_abs()) {
        Some(divisor) => Some(number / divisor + i128::from(number % divisor >= divisor - number % divisor)),
        None => Some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_become_exact_nanoseconds() {
        let ns = |text: &str| time_ns(text.as_bytes());
        assert_eq!(ns("1712195495519689.751"), Some(1_712_195_495_519_689_751));
        assert_eq!(ns("0.001"), Some(1));
        assert_eq!(ns("-1.5"), Some(-1_500));
        assert_eq!(ns("7"), Some(7_000));
        assert_eq!(ns("1.5e3"), Some(1_500_000));
        assert_eq!(ns("1234567E-3"), Some(1_234_567));
    }

    #[test]
    fn plain_numbers_are_read_as_others_are() {
        let texts = [
            "0",
            "7",
            "12.5",
            "1234567890123456",
            "1712195495519689.751",
            "3.001",
            "0.999",
            "5.",
            ".5",
            "1.2345",
            "1e3",
            "-4",
            "12345678901234567",
            "1.5x",
            "",
            "9999999999999999.999",
        ];
        for text in texts {
            let bytes = format!("{text},                  ").into_bytes();
            if let Some((ns, len)) = plain_us(&bytes) {
                assert_eq!((Some(ns), len), (scaled(text.as_bytes(), 3), text.len()), "{text}");
            }
            if let Some((number, len)) = plain_integer(&bytes) {
                assert_eq!((Some(number), len), (integer(text.as_bytes()), text.len()), "{text}");
            }
        }
        for number in [0_i64, 1, 9, 12_345_678, 99_999_999, 10_000_000, 123_456_789, 1_234_567_890_123_456] {
            for width in [1, 8, 9, 16] {
                let text = format!("{number:0width$},");
                let padded = format!("{text}        ");
                assert_eq!(plain_integer(padded.as_bytes()), Some((number, text.len() - 1)), "{text}");
            }
        }
        for byte in (0..=255).filter(|byte: &u8| !byte.is_ascii_digit()) {
            for at in 0..8 {
                let mut text = *b"12345678";
                text[at] = byte;
                assert_eq!(leading_digits(&text, 0).map(|(_, len)| len), Some(at), "{text:?}");
            }
        }
        for digits in 1..=17 {
            let text = format!("{},        ", &"98765432109876543"[..digits]);
            let number = text[..digits].parse().ok().filter(|_| digits <= 16);
            assert_eq!(plain_integer(text.as_bytes()), number.map(|number| (number, digits)), "{text}");
        }
        assert_eq!(plain_us(b"12.5}       "), Some((12_500, 4)));
        assert_eq!(plain_us(b"12.5"), None, "it may go on");
        assert_eq!(plain_integer(b"42]      "), Some((42, 2)));
    }

    #[test]
    fn what_is_finer_than_a_nanosecond_is_rounded() {
        let ns = |text: &str| time_ns(text.as_bytes());
        assert_eq!(ns("0.0004999999999999999999999999999999999999999"), Some(0));
        assert_eq!(ns("0.0005"), Some(1));
        assert_eq!(ns("-0.0005"), Some(-1));
        assert_eq!(ns("44.0999999999999999"), Some(44_100));
        assert_eq!(ns("1e-2000"), Some(0));
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in
            ["", "-", ".", "1.2.3", "12a", "1e", "1e999", "9223372036854775807", "99999999999999999999999", "0x1"]
        {
            assert_eq!(time_ns(text.as_bytes()), None, "{text}");
        }
        assert_eq!(duration_ns(b"18446744073709551.615"), None);
    }

    #[test]
    fn ids_above_two_to_the_53_stay_distinct() {
        assert_eq!(integer(b"9007199254740993"), Some(9_007_199_254_740_993));
        assert_eq!(integer(b"18446744073709551615"), Some(-1));
        assert_eq!(integer(b"-7"), Some(-7));
        assert_eq!(integer(b"7.0"), Some(7));
        assert_eq!(integer(b""), None);
    }
}

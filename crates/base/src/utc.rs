//! The time of day in UTC.

use std::time::{SystemTime, UNIX_EPOCH};

/// `now` as `20260131-235959`, UTC; sorts like time.
pub fn compact_utc(now: SystemTime) -> String {
    let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let ((year, month, day), (hour, minute, second)) = (date_of(seconds / 86_400), time_of(seconds));
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
}

/// The moment `unix_ns` as `2026-01-31 23:59:59 UTC`; what is before 1970 is its beginning.
pub fn utc(unix_ns: i64) -> String {
    let seconds = u64::try_from(unix_ns).unwrap_or(0) / 1_000_000_000;
    let ((year, month, day), (hour, minute, second)) = (date_of(seconds / 86_400), time_of(seconds));
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// Hour, minute and second.
fn time_of(seconds: u64) -> (u64, u64, u64) {
    (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60)
}

/// The date (year, month, day) that begins `days` days after 1970-01-01. Years are counted from March, so that the day
/// that leap years add is their last, in eras of 400 years, which are all 146,097 days long.
fn date_of(days: u64) -> (u64, u64, u64) {
    let since_march_0 = days + 719_468;
    let (era, day_of_era) = (since_march_0 / 146_097, since_march_0 % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn known_moments() {
        let utc = |seconds| compact_utc(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(super::utc(1_767_225_599_999_999_999), "2025-12-31 23:59:59 UTC");
        assert_eq!(utc(0), "19700101-000000");
        assert_eq!(utc(951_782_399), "20000228-235959");
        assert_eq!(utc(951_782_400), "20000229-000000");
        assert_eq!(utc(1_767_225_599), "20251231-235959");
        assert_eq!(utc(4_107_542_400), "21000301-000000");
    }

    #[test]
    fn every_day_of_four_centuries_follows_the_one_before() {
        let is_next =
            |(y, m, d): (u64, u64, u64), next| next == (y, m, d + 1) || next == (y, m + 1, 1) || next == (y + 1, 1, 1);
        assert!((0..146_097).all(|day| is_next(date_of(day), date_of(day + 1))));
        assert_eq!(date_of(146_097), (2370, 1, 1));
    }
}

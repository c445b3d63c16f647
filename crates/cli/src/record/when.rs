//! Which steps, and how much of the past: what a person types, and as the recorded processes read it.

/// The first steps of a job are not like the others.
const FIRST_SAMPLED: u32 = 10;

/// The keywords of `torch.profiler.schedule`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Schedule(Vec<(&'static str, u32)>);

/// As the recorded processes read it: `wait:1+active:3`.
impl std::fmt::Display for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, (name, value)) in self.0.iter().enumerate() {
            write!(f, "{}{name}:{value}", if at > 0 { "+" } else { "" })?;
        }
        Ok(())
    }
}

/// `active` steps of each `every`.
pub(super) fn sampled(every: u32, active: u32) -> Schedule {
    let wait = every.saturating_sub(active);
    Schedule(vec![("wait", wait), ("active", active), ("skip_first", FIRST_SAMPLED.min(wait)), ("skip_first_wait", 1)])
}

/// `100..110`, `100..` or `100`.
pub(super) fn steps(text: &str) -> Result<Schedule, String> {
    let expected = || "expected steps as 100..110, 100.. or 100".to_string();
    let number = |text: &str| text.trim().parse::<u32>().map_err(|_| expected());
    let (first, last) = match text.split_once("..") {
        None => (number(text)?, Some(number(text)?)),
        Some((first, "")) => (number(first)?, None),
        Some((first, last)) => (number(first)?, Some(number(last)?)),
    };
    let active = match last {
        Some(last) if last < first => return Err("the last step is before the first".into()),
        Some(last) => (last - first).saturating_add(1),
        None => u32::MAX,
    };
    Ok(Schedule(vec![("wait", 0), ("active", active), ("skip_first", first), ("repeat", 1)]))
}

/// `wait=1,warmup=1,active=3,repeat=2`.
pub(super) fn schedule(text: &str) -> Result<Schedule, String> {
    const KEYWORDS: [&str; 6] = ["wait", "warmup", "active", "repeat", "skip_first", "skip_first_wait"];
    let mut found: Vec<(&'static str, u32)> = Vec::new();
    for pair in text.split(',') {
        let (name, value) =
            pair.split_once('=').ok_or_else(|| format!("expected a keyword and a number in {pair:?}"))?;
        let name = KEYWORDS.into_iter().find(|keyword| *keyword == name.trim());
        let name = name.ok_or_else(|| format!("expected one of {} in {pair:?}", KEYWORDS.join(", ")))?;
        let value = value.trim().parse().map_err(|_| format!("expected a number of steps in {pair:?}"))?;
        if found.iter().any(|(known, _)| *known == name) {
            return Err(format!("{name} is given twice"));
        }
        found.push((name, value));
    }
    match found.iter().find(|(name, _)| *name == "active") {
        Some((_, 1..)) => Ok(Schedule(found)),
        _ => Err("a schedule needs active=N, of at least one step".into()),
    }
}

/// Seconds, of `30s`, `500ms`, `2m`, `1h` or `30`.
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[number.len()..] {
        "ms" => 0.001,
        "s" | "" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("expected a time as 30s, 500ms or 2m".into()),
    };
    let seconds = number.parse::<f64>().map(|number| number * unit);
    match seconds {
        Ok(seconds) if seconds > 0.0 && seconds < 1e9 => Ok(seconds),
        _ => Err("expected a time as 30s, 500ms or 2m".into()),
    }
}

/// A number above 1.
pub(super) fn times(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(times) if times > 1.0 && times.is_finite() => Ok(times),
        _ => Err("expected a number above 1, as 3: three times the median".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(parsed: Result<Schedule, String>, expected: &str) {
        assert_eq!(parsed.map_or_else(|error| error, |schedule| schedule.to_string()), expected);
    }

    #[test]
    fn steps_become_a_schedule() {
        check(steps("100..110"), "wait:0+active:11+skip_first:100+repeat:1");
        check(steps("7"), "wait:0+active:1+skip_first:7+repeat:1");
        check(steps("7.."), "wait:0+active:4294967295+skip_first:7+repeat:1");
        check(steps("9..7"), "the last step is before the first");
        check(steps("..7"), "expected steps as 100..110, 100.. or 100");
        check(steps("-1..7"), "expected steps as 100..110, 100.. or 100");
    }

    #[test]
    fn a_schedule_is_checked() {
        check(schedule("wait=1,active=3, repeat=2"), "wait:1+active:3+repeat:2");
        check(schedule("wait=1"), "a schedule needs active=N, of at least one step");
        check(schedule("active=0"), "a schedule needs active=N, of at least one step");
        check(schedule("active=1,active=2"), "active is given twice");
        check(schedule("active"), "expected a keyword and a number in \"active\"");
        check(schedule("active=x"), "expected a number of steps in \"active=x\"");
        assert!(schedule("awake=1").unwrap_err().starts_with("expected one of wait, warmup"));
    }

    #[test]
    fn sampling_leaves_out_the_first_steps_where_there_is_room() {
        check(Ok(sampled(1_000, 5)), "wait:995+active:5+skip_first:10+skip_first_wait:1");
        check(Ok(sampled(4, 3)), "wait:1+active:3+skip_first:1+skip_first_wait:1");
        check(Ok(sampled(2, 5)), "wait:0+active:5+skip_first:0+skip_first_wait:1");
    }

    #[test]
    fn times_are_read() {
        assert_eq!(
            [seconds("30s"), seconds("500ms"), seconds("2m"), seconds("1.5")],
            [Ok(30.0), Ok(0.5), Ok(120.0), Ok(1.5)]
        );
        assert!(["0s", "-1s", "s", "1d", "inf", "nan", ""].into_iter().all(|text| seconds(text).is_err()));
        assert!(times("3").is_ok() && times("1").is_err() && times("nan").is_err());
    }
}

//! What stands behind the `?` of an address, checked: every parameter is known, and none is too long.

use crate::failure::Failure;
use axum::http::StatusCode;
use std::str::FromStr;
use stepscope_base::Span;
use stepscope_engine::{self as engine, EngineError, Ranks, Selection};

/// Bytes of a query that are looked at.
const MAX_BYTES: usize = 16 << 10;
/// What any request may have: who asks, and what the page has an answer of already.
const OF_ALL: [&str; 2] = ["token", "v"];

/// The parameters of a request. One without a value counts as not there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// The parameters in `raw`, which may be of those that are `known`.
    ///
    /// # Errors
    /// When one is not known, or there is too much of them.
    pub(crate) fn parse(raw: Option<&str>, known: &[&str]) -> Result<Self, Failure> {
        let raw = raw.unwrap_or_default();
        if raw.len() > MAX_BYTES {
            let what = format!("the query has {} bytes, but {MAX_BYTES} are the most", raw.len());
            return Err(Failure::new(StatusCode::URI_TOO_LONG, what));
        }
        let pairs: Vec<(String, String)> = form_urlencoded::parse(raw.as_bytes()).into_owned().collect();
        let is_known = |name: &str| known.contains(&name) || OF_ALL.contains(&name);
        if let Some((name, _)) = pairs.iter().find(|(name, _)| !is_known(name)) {
            let hint = match known {
                [] => "it takes none".to_string(),
                known => format!("it takes {}", known.join(", ")),
            };
            return Err(Failure::bad_request(format!("there is no parameter {name:?}")).hint(hint));
        }
        Ok(Self(pairs.into_iter().filter(|(_, value)| !value.is_empty()).collect()))
    }

    /// The text of a parameter; the last, when it is there several times.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A parameter that must be there.
    pub(crate) fn needed_text(&self, name: &str) -> Result<&str, Failure> {
        self.text(name).ok_or_else(|| Failure::bad_request(format!("the parameter {name:?} is missing")))
    }

    /// Every text of a parameter.
    pub(crate) fn texts<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The number that a parameter is.
    pub(crate) fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, Failure> {
        let read = |text: &str| text.parse::<T>().map_err(|_| not_a_number(name, text));
        self.text(name).map(read).transpose()
    }

    /// The number that a parameter is, which must be there.
    pub(crate) fn needed_number<T: FromStr>(&self, name: &str) -> Result<T, Failure> {
        let text = self.needed_text(name)?;
        text.parse().map_err(|_| not_a_number(name, text))
    }

    /// The numbers in a list with commas; at most `at_most` of them.
    pub(crate) fn numbers<T: FromStr>(&self, name: &str, at_most: usize) -> Result<Vec<T>, Failure> {
        let Some(text) = self.text(name) else { return Ok(Vec::new()) };
        let count = text.split(',').count();
        if count > at_most {
            let what = format!("{name:?} has {count} numbers, but {at_most} are the most");
            return Err(Failure::bad_request(what));
        }
        text.split(',').map(|number| number.parse().map_err(|_| not_a_number(name, number))).collect()
    }

    /// From `start_ns` to `end_ns`, of which one may be left out; none when both are.
    pub(crate) fn window(&self) -> Result<Option<Span>, Failure> {
        Ok(engine::window(self.number("start_ns")?, self.number("end_ns")?)?)
    }

    /// The window, which must be there.
    pub(crate) fn needed_window(&self) -> Result<Span, Failure> {
        self.window()?.ok_or_else(|| Failure::bad_request("the parameters \"start_ns\" and \"end_ns\" are missing"))
    }

    /// What part of a run is asked for: ranks, step, window.
    pub(crate) fn selection(&self) -> Result<Selection, Failure> {
        let ranks = self.text("rank").map(str::parse::<Ranks>).transpose().map_err(EngineError::from)?;
        let (ranks, step) = (ranks.unwrap_or_default(), self.number("step")?);
        Ok(Selection { ranks, step, window: self.window()?, ..Selection::default() })
    }
}

fn not_a_number(name: &str, text: &str) -> Failure {
    let short: String = text.chars().take(40).collect();
    Failure::bad_request(format!("{name} is {short:?}: not an integer in range"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_and_empty_ones_are_not_there() {
        let query = Query::parse(Some("q=a%20%26b+c&rank=&rows=1,2"), &["q", "rank", "rows"]).unwrap();
        assert_eq!((query.text("q"), query.text("rank")), (Some("a &b c"), None));
        assert_eq!(query.numbers::<u32>("rows", 2).unwrap(), [1, 2]);
        assert!(query.numbers::<u32>("rows", 1).is_err() && query.number::<i64>("q").is_err());
    }

    #[test]
    fn what_is_not_known_or_too_long_is_refused() {
        assert!(Query::parse(Some("token=x&v=3"), &[]).is_ok());
        assert_eq!(Query::parse(Some("srot=a"), &["sort"]).unwrap_err().status(), StatusCode::BAD_REQUEST);
        let long = format!("q={}", "x".repeat(MAX_BYTES));
        assert_eq!(Query::parse(Some(&long), &["q"]).unwrap_err().status(), StatusCode::URI_TOO_LONG);
    }

    #[test]
    fn a_window_does_not_end_before_it_begins() {
        let window = |raw| Query::parse(Some(raw), &["start_ns", "end_ns"]).unwrap().window();
        assert_eq!(window("").unwrap(), None);
        assert_eq!(window("start_ns=-5&end_ns=9").unwrap(), Some(Span::new(-5, 9)));
        assert!(window("start_ns=5").unwrap().is_some_and(|window| window.contains(1 << 60) && !window.contains(4)));
        assert!(window("end_ns=5").unwrap().is_some_and(|window| window.contains(-9) && !window.contains(5)));
        for raw in ["start_ns=6&end_ns=5", "start_ns=1e3&end_ns=9", "start_ns=1&end_ns=99999999999999999999"] {
            assert!(window(raw).is_err(), "{raw}");
        }
        let error = format!("{:?}", window("start_ns=6&end_ns=5").unwrap_err());
        assert!(error.contains("the window ends before it begins") && error.contains("earlier moment"), "{error}");
    }
}

//! Options of an analysis as a person writes them, checked against what it accepts.

use crate::EngineError;
use stepscope_analyses::{Analysis, Compat, GroupBy, Selection};
use stepscope_base::Span;

/// `--group-by`, `--compat`, `--bucket`, `--depth` and `--top` as written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OptionTexts {
    /// What a row stands for: `module`.
    pub group_by: Option<String>,
    /// Whose definition is used: `tb`.
    pub compat: Option<String>,
    /// Width of a curve's buckets in ms, with an optional fraction: `0.5`.
    pub bucket_ms: Option<String>,
    /// How deep a tree is shown: `2`.
    pub depth: Option<String>,
    /// How many rows of each depth are shown: `3`.
    pub top: Option<String>,
}

/// `selection` with the options in `texts`.
///
/// # Errors
/// [`EngineError::NotAccepted`] when `analysis` does not accept one of them.
pub fn with_options(analysis: &Analysis, selection: Selection, texts: &OptionTexts) -> Result<Selection, EngineError> {
    let accepted = analysis.options;
    let refuse = |option: &'static str, value: &str, accepted: Vec<&'static str>| {
        Err(EngineError::NotAccepted { analysis: analysis.name, option, value: value.into(), accepted })
    };
    let mut selection = selection;
    if let Some(text) = &texts.group_by {
        selection.group_by = GroupBy::from_name(text).filter(|choice| accepted.group_by.contains(choice));
        if selection.group_by.is_none() {
            return refuse("group-by", text, accepted.group_by.iter().map(|choice| choice.as_str()).collect());
        }
    }
    if let Some(text) = &texts.compat {
        selection.compat = Compat::from_name(text).filter(|choice| accepted.compat.contains(choice));
        if selection.compat.is_none() {
            return refuse("compat", text, accepted.compat.iter().map(|choice| choice.as_str()).collect());
        }
    }
    if let Some(text) = &texts.bucket_ms {
        selection.bucket_ns = ns_of_ms(text).filter(|_| accepted.bucket);
        if selection.bucket_ns.is_none() {
            return refuse("bucket", text, if accepted.bucket { vec!["milliseconds above 0"] } else { vec![] });
        }
    }
    if let Some(text) = &texts.depth {
        selection.depth = text.parse().ok().filter(|depth| accepted.tree && *depth >= 0);
        if selection.depth.is_none() {
            return refuse("depth", text, if accepted.tree { vec!["a number from 0"] } else { vec![] });
        }
    }
    if let Some(text) = &texts.top {
        selection.top = text.parse().ok().filter(|top| accepted.tree && *top > 0);
        if selection.top.is_none() {
            return refuse("top", text, if accepted.tree { vec!["a number from 1"] } else { vec![] });
        }
    }
    Ok(selection)
}

/// The window between two moments of which one or both may be left out; `None` without either.
///
/// # Errors
/// [`EngineError::WindowEndsFirst`] when it ends before it begins.
pub fn window(start_ns: Option<i64>, end_ns: Option<i64>) -> Result<Option<Span>, EngineError> {
    match (start_ns, end_ns) {
        (Some(start_ns), Some(end_ns)) if start_ns > end_ns => Err(EngineError::WindowEndsFirst { start_ns, end_ns }),
        _ => Ok(Selection::window_of(start_ns, end_ns)),
    }
}

/// Whole nanoseconds, above 0, of decimal milliseconds.
fn ns_of_ms(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 9 || fraction.len() > 6 || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    format!("{whole}{fraction:0<6}").parse().ok().filter(|ns| *ns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_become_whole_nanoseconds() {
        assert_eq!(ns_of_ms("10"), Some(10_000_000));
        assert_eq!(ns_of_ms("0.5"), Some(500_000));
        assert_eq!(ns_of_ms("0.000001"), Some(1));
        for text in ["", "0", "-1", "1e3", ".5", "1.0000001", "9999999999"] {
            assert_eq!(ns_of_ms(text), None, "{text}");
        }
    }

    #[test]
    fn a_window_that_ends_before_it_begins_is_an_error_that_says_what_to_do() {
        assert_eq!(window(None, None), Ok(None));
        assert_eq!(window(Some(5), Some(5)), Ok(Some(Span::new(5, 5))));
        assert!(window(Some(5), None).is_ok_and(|window| window.is_some()));
        let error = window(Some(5), Some(4)).unwrap_err();
        assert_eq!(error.to_string(), "the window ends before it begins: start_ns is 5, end_ns is 4");
        assert!(error.hint().is_some_and(|hint| hint.contains("earlier moment")));
    }

    #[test]
    fn what_an_analysis_does_not_accept_is_refused() {
        let analysis = stepscope_analyses::find("findings").expect("in the catalogue");
        let texts = OptionTexts { group_by: Some("module".into()), ..OptionTexts::default() };
        let error = with_options(analysis, Selection::default(), &texts).unwrap_err();
        assert_eq!(error.to_string(), "findings does not accept group-by \"module\"");
        assert!(error.hint().is_some());
    }
}

//! The runs of a query, which workers are told with it: functions such as `step_of` look into their tables.

use crate::session::Run;
use datafusion::common::extensions_options;
use datafusion::config::ConfigExtension;
use std::fmt::Write;
use std::path::PathBuf;

extensions_options! {
    /// Names and folders.
    pub(super) struct RunsOfQuery {
        /// As JSON in ASCII, which is all that a header may have.
        pub json: String, default = String::new()
    }
}

impl ConfigExtension for RunsOfQuery {
    const PREFIX: &'static str = "stepscope";
}

impl RunsOfQuery {
    pub(super) fn of(runs: &[Run]) -> Self {
        let named: Vec<_> = runs.iter().map(|run| (&run.name, run.folder.to_string_lossy())).collect();
        let json = serde_json::to_string(&named).unwrap_or_default();
        let mut ascii = String::with_capacity(json.len());
        for unit in json.encode_utf16() {
            match u8::try_from(unit) {
                Ok(letter) if letter.is_ascii() => ascii.push(char::from(letter)),
                // Only a text has others.
                _ => drop(write!(ascii, "\\u{unit:04x}")),
            }
        }
        Self { json: ascii }
    }

    /// They are told no more than functions need.
    pub(super) fn runs(&self) -> Vec<Run> {
        let named: Vec<(String, PathBuf)> = serde_json::from_str(&self.json).unwrap_or_default();
        named.into_iter().map(|(name, folder)| Run { name, folder, inputs: Vec::new() }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_have_any_letters() {
        let run = |name: &str, folder: &str| Run { name: name.into(), folder: folder.into(), inputs: Vec::new() };
        let of = RunsOfQuery::of(&[run("läuft 🚀", "/tmp/ä\"b"), run("b", "/c")]);
        assert!(of.json.is_ascii());
        let found: Vec<_> = of.runs().into_iter().map(|run| (run.name, run.folder)).collect();
        assert_eq!(found, [("läuft 🚀".into(), "/tmp/ä\"b".into()), ("b".into(), PathBuf::from("/c"))]);
        assert_eq!(RunsOfQuery::default().runs().len(), 0);
    }
}

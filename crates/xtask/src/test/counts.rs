//! How many tests passed and failed, from what `cargo test`, pytest and vitest print.

use std::ops::Add;

/// Numbers of tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    /// Tests that passed.
    pub(crate) passed: usize,
    /// Tests that failed, or could not be built.
    pub(crate) failed: usize,
    /// Tests that were left out.
    pub(crate) skipped: usize,
}

impl Counts {
    /// These counts; with one failure when there is none although the command failed, as when it could not build.
    pub(crate) fn at_least_one_failure_unless(self, succeeded: bool) -> Self {
        if succeeded { self } else { Self { failed: self.failed.max(1), ..self } }
    }
}

impl Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
        }
    }
}

/// The sum of cargo's `test result:` lines, one a test binary.
pub(crate) fn cargo_counts(written: &str) -> Counts {
    let lines = written.lines().filter_map(|line| line.strip_prefix("test result: "));
    // "ok. 3 passed; 1 failed; …": what it says before the first number is known from the numbers.
    lines
        .map(|line| line.split_once(". ").map_or(line, |(_, counts)| counts))
        .map(counts_in)
        .fold(Counts::default(), Add::add)
}

/// The counts in pytest's last line, `=== 1 failed, 3 passed, 2 skipped in 0.12s ===`.
pub(crate) fn pytest_counts(written: &str) -> Counts {
    let is_summary = |line: &&str| line.starts_with("==") && line.contains(" in ");
    written.lines().rev().find(is_summary).map(|line| counts_in(line.trim_matches(['=', ' ']))).unwrap_or_default()
}

/// The counts in vitest's line, `      Tests  1 failed | 3 passed | 2 skipped (6)`.
pub(crate) fn vitest_counts(written: &str) -> Counts {
    let line = written.lines().rev().find_map(|line| line.trim_start().strip_prefix("Tests "));
    line.map(|line| counts_in(&line.replace('|', ","))).unwrap_or_default()
}

/// Adds up `12 passed, 1 failed; 3 ignored`.
fn counts_in(text: &str) -> Counts {
    let mut counts = Counts::default();
    for part in text.split([',', ';']) {
        let mut words = part.split_whitespace();
        let (Some(Ok(number)), Some(what)) = (words.next().map(str::parse::<usize>), words.next()) else { continue };
        match what {
            "passed" | "xfailed" => counts.passed += number,
            "failed" | "error" | "errors" | "xpassed" => counts.failed += number,
            "skipped" | "ignored" => counts.skipped += number,
            _ => {}
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_counts_every_binary() {
        let written = "running 4 tests\ntest a ... ok\n\
            test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
            test result: FAILED. 5 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n";
        assert_eq!(cargo_counts(written), Counts { passed: 8, failed: 2, skipped: 1 });
    }

    #[test]
    fn pytest_counts_its_last_line() {
        let written = "tests/a.py ..F\n=== short test summary info ===\n\
            ==== 1 failed, 2 passed, 3 skipped, 1 warning, 2 errors in 4.56s (0:00:04) ====\n";
        assert_eq!(pytest_counts(written), Counts { passed: 2, failed: 3, skipped: 3 });
    }

    #[test]
    fn vitest_counts_tests_and_not_files() {
        let written = "\n Test Files  1 failed | 6 passed (7)\n      Tests  1 failed | 61 passed | 2 skipped (64)\n";
        assert_eq!(vitest_counts(written), Counts { passed: 61, failed: 1, skipped: 2 });
        assert_eq!(vitest_counts("      Tests  12 passed (12)\n"), Counts { passed: 12, failed: 0, skipped: 0 });
    }

    #[test]
    fn a_failed_build_counts_as_a_failure() {
        let nothing = cargo_counts("error: could not compile\n");
        assert_eq!(nothing.at_least_one_failure_unless(false).failed, 1);
        assert_eq!(nothing.at_least_one_failure_unless(true).failed, 0);
    }

    #[test]
    fn no_summary_counts_nothing() {
        assert_eq!(pytest_counts("Traceback (most recent call last):\n"), Counts::default());
    }
}

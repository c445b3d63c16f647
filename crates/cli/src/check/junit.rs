//! Checks as JUnit XML, as pipelines show tests.

use super::judged::{Check, Outcome, Status};
use super::summary::explained;
use crate::failure::Failure;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

/// A check is a test of the suite that is called like the run. One that was not judged is an error, not a failure.
pub(super) fn junit(outcome: &Outcome) -> Result<String, Failure> {
    let mut suite = TestSuite::new(outcome.run.name.as_str());
    suite.add_test_cases(outcome.checks.iter().map(test_case));
    let mut report = Report::new("stepscope check");
    report.add_test_suite(suite);
    report.to_string().map_err(|error| Failure::new(format!("cannot write JUnit XML: {error}")))
}

fn test_case(check: &Check) -> TestCase {
    let mut status = match check.status {
        Status::Holds => TestCaseStatus::success(),
        Status::Fails => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Status::NotJudged => TestCaseStatus::non_success(NonSuccessKind::Error),
    };
    // Some programs show the message, others only the text below it.
    if check.status != Status::Holds {
        status.set_type(check.status.words()).set_message(check.says.as_str()).set_description(explained(check));
    }
    let mut case = TestCase::new(check.name.as_str(), status);
    case.set_classname("stepscope.check");
    if check.status == Status::Holds {
        case.set_system_out(explained(check));
    }
    case
}

//! Every analysis of the catalogue has a file whose comment is its reference page, with four headings that each say
//! something, and tests in the same file or, where they are many, in `tests.rs` of its folder.

use super::Problem;
use crate::checkout::Checkout;

const FOLDER: &str = "crates/analyses/src";
const HEADINGS: [&str; 4] = ["Definition", "Units", "Source", "Edge cases"];

pub(super) fn check(checkout: &Checkout) -> Vec<Problem> {
    let path = format!("{FOLDER}/catalogue.rs");
    let Some(catalogue) = checkout.file(&path) else { return vec![Problem::new(path, "is missing")] };
    let Some(names) = registered(&catalogue.text()) else {
        return vec![Problem::new(path, "has no list `catalogue_of![…]`")];
    };
    names.iter().flat_map(|name| check_analysis(checkout, name)).collect()
}

/// The names in `catalogue_of![…]`.
fn registered(catalogue: &str) -> Option<Vec<String>> {
    let (_, list) = catalogue.rsplit_once("catalogue_of![")?;
    let (list, _) = list.split_once(']')?;
    Some(list.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_string).collect())
}

fn check_analysis(checkout: &Checkout, name: &str) -> Vec<Problem> {
    let path = format!("{FOLDER}/{name}.rs");
    let Some(file) = checkout.file(&path) else { return vec![Problem::new(path, "is in the catalogue, but missing")] };
    let text = file.text();
    let comment: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim).collect();
    let missing = HEADINGS.iter().filter(|heading| !says_something(&comment, heading));
    let mut problems: Vec<Problem> =
        missing.map(|heading| Problem::new(&path, format!("its comment says nothing under `# {heading}`"))).collect();
    let beside = checkout.file(&format!("{FOLDER}/{name}/tests.rs")).filter(|_| text.contains("\nmod tests;"));
    let beside = beside.map(|file| file.text()).unwrap_or_default();
    let tests = text.split_once("\nmod tests {").map_or(beside.as_ref(), |(_, tests)| tests);
    if !tests.contains("#[test]") && !tests.contains("proptest!") {
        problems.push(Problem::new(&path, "has no tests"));
    }
    problems
}

/// True when there is text between the heading and the next one.
fn says_something(comment: &[&str], heading: &str) -> bool {
    let from_heading = comment.iter().skip_while(|line| line.strip_prefix("# ") != Some(heading)).skip(1);
    from_heading.take_while(|line| !line.starts_with("# ")).any(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CATALOGUE: &str = "macro_rules! catalogue_of {}\nfn catalogue() { catalogue_of![waiting,] }\n";
    const COMPLETE: &str = "//! # Definition\n//! Time waited.\n//!\n//! # Units\n//! ns\n//! # Source\n//! Slices.\n\
        //! # Edge cases\n//! None waits: 0.\n\nfn waiting() {}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn t() {}\n}\n";

    fn checked(analysis: &str) -> Vec<String> {
        let files = [("crates/analyses/src/catalogue.rs", CATALOGUE), ("crates/analyses/src/waiting.rs", analysis)];
        check(&Checkout::sample(&files)).into_iter().map(|problem| problem.says).collect()
    }

    #[test]
    fn a_complete_analysis_is_fine() {
        assert_eq!(checked(COMPLETE), [""; 0]);
    }

    #[test]
    fn a_missing_heading_is_a_problem() {
        let says = "its comment says nothing under `# Units`";
        assert_eq!(checked(&COMPLETE.replace("# Units", "Units:")), [says]);
    }

    #[test]
    fn a_heading_without_text_is_a_problem() {
        assert_eq!(checked(&COMPLETE.replace("//! ns\n", "//!\n")), ["its comment says nothing under `# Units`"]);
    }

    #[test]
    fn tests_may_stand_in_a_file_of_their_own() {
        let analysis = &COMPLETE.replace("mod tests {\n    #[test]\n    fn t() {}\n}\n", "mod tests;\n");
        assert_eq!(checked(analysis), ["has no tests"]);
        let files = [
            ("crates/analyses/src/catalogue.rs", CATALOGUE),
            ("crates/analyses/src/waiting.rs", analysis),
            ("crates/analyses/src/waiting/tests.rs", "#[test]\nfn t() {}\n"),
        ];
        assert_eq!(check(&Checkout::sample(&files)).len(), 0);
    }

    #[test]
    fn an_analysis_without_tests_is_a_problem() {
        assert_eq!(checked(&COMPLETE.replace("#[test]", "")), ["has no tests"]);
    }

    #[test]
    fn a_missing_file_is_a_problem() {
        let checkout = Checkout::sample(&[("crates/analyses/src/catalogue.rs", CATALOGUE)]);
        assert_eq!(check(&checkout)[0].place, "crates/analyses/src/waiting.rs");
    }
}

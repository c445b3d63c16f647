//! A crate depends on the crates that its row of ARCHITECTURE.md's table names, and on no other of ours; and what stands
//! before the table, the diagram and what it leaves out, names every crate.

use super::Problem;
use crate::checkout::Checkout;
use std::collections::{BTreeMap, BTreeSet};

const PAGE: &str = "ARCHITECTURE.md";

/// Crate name → names of other crates, as folders are named.
type Arrows = BTreeMap<String, BTreeSet<String>>;

pub(super) fn check(checkout: &Checkout) -> Vec<Problem> {
    let page = checkout.file(PAGE).map(|page| page.text()).unwrap_or_default();
    let allowed = allowed(&page);
    if allowed.is_empty() {
        return vec![Problem::new(PAGE, "has no table with the columns `crate` and `depends on`")];
    }
    let drawn = drawn(&page);
    let actual = actual(checkout);
    let mut problems = Vec::new();
    for (name, targets) in &actual {
        let Some(allowed) = allowed.get(name) else {
            problems.push(Problem::new(format!("crates/{name}"), format!("has no row in {PAGE}")));
            continue;
        };
        if !drawn.contains(name.as_str()) {
            problems.push(Problem::new(format!("crates/{name}"), format!("is not in the diagram of {PAGE}")));
        }
        let says = |target: &String| format!("depends on `{target}`, which {PAGE} does not allow");
        let place = format!("crates/{name}/Cargo.toml");
        problems.extend(targets.difference(allowed).map(|target| Problem::new(&place, says(target))));
    }
    let gone = allowed.keys().filter(|name| !actual.contains_key(*name));
    problems.extend(gone.map(|name| Problem::new(PAGE, format!("has a row for `{name}`, which is no crate"))));
    problems
}

/// The table: its `crate` column names a crate, its `depends on` column the crates it may depend on.
fn allowed(page: &str) -> Arrows {
    let mut rows = page.lines().skip_while(|line| !is_header(line)).take_while(|line| line.starts_with('|'));
    let Some(header) = rows.next() else { return Arrows::new() };
    let column = |title: &str| cells(header).iter().position(|cell| cell == title).expect("is_header found it");
    let (name, targets) = (column("crate"), column("depends on"));
    let rows = rows.skip(1).map(cells).filter(|cells| cells.len() > name.max(targets));
    rows.map(|cells| (cells[name].clone(), names_in(&cells[targets]))).collect()
}

/// The words before the table.
fn drawn(page: &str) -> BTreeSet<&str> {
    let before = page.lines().take_while(|line| !is_header(line));
    before.flat_map(|line| line.split(|letter: char| !letter.is_alphanumeric() && letter != '_')).collect()
}

fn is_header(line: &str) -> bool {
    let cells = cells(line);
    ["crate", "depends on"].iter().all(|title| cells.iter().any(|cell| cell == title))
}

/// A table row's cells, without backquotes.
fn cells(line: &str) -> Vec<String> {
    line.trim().trim_matches('|').split('|').map(|cell| cell.replace('`', "").trim().to_string()).collect()
}

/// `base, trace`; a dash is none.
fn names_in(cell: &str) -> BTreeSet<String> {
    cell.split(',').map(str::trim).filter(|name| !matches!(*name, "" | "–" | "-")).map(str::to_string).collect()
}

/// What the manifests say under `[dependencies]`.
fn actual(checkout: &Checkout) -> Arrows {
    let manifests = checkout.files.iter().filter_map(|file| {
        let name = file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
        Some((name.to_string(), stepscope_dependencies(&file.text())))
    });
    manifests.collect()
}

fn stepscope_dependencies(manifest: &str) -> BTreeSet<String> {
    let mut section = "";
    let mut names = BTreeSet::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        }
        let key = line.trim_start_matches("[dependencies.").split(['.', '=', ']', ' ']).next().unwrap_or_default();
        let is_dependency = section == "[dependencies]" || line.starts_with("[dependencies.");
        if let Some(name) = key.strip_prefix("stepscope-").filter(|_| is_dependency) {
            names.insert(name.replace('-', "_"));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "`base`\nrecorder_torch ─▶ recorder\n\n| crate | what | depends on |\n|---|---|---|\n| `base` | sets | – |\n\
        | `recorder` | core | base |\n| `recorder_torch` | hook | recorder |\n\nText.\n";

    fn checked(recorder_torch: &str) -> Vec<String> {
        let checkout = Checkout::sample(&[
            ("ARCHITECTURE.md", TABLE),
            ("crates/base/Cargo.toml", "[dependencies]\nlibc.workspace = true\n"),
            ("crates/recorder/Cargo.toml", "[dependencies]\nstepscope-base.workspace = true\n"),
            ("crates/recorder_torch/Cargo.toml", recorder_torch),
        ]);
        check(&checkout).into_iter().map(|problem| format!("{}: {}", problem.place, problem.says)).collect()
    }

    #[test]
    fn arrows_of_the_table_are_fine() {
        assert_eq!(checked("[dependencies]\nstepscope-recorder = { path = \"../recorder\" }\n"), [""; 0]);
    }

    #[test]
    fn an_arrow_that_the_table_lacks_is_a_problem() {
        let says = "crates/recorder_torch/Cargo.toml: depends on `base`, which ARCHITECTURE.md does not allow";
        assert_eq!(checked("[dependencies]\nstepscope-base.workspace = true\n"), [says]);
        assert_eq!(checked("[dependencies.stepscope-base]\nworkspace = true\n"), [says]);
    }

    #[test]
    fn tests_may_depend_on_anything() {
        assert_eq!(checked("[dev-dependencies]\nstepscope-base.workspace = true\n"), [""; 0]);
    }

    #[test]
    fn crates_and_rows_match_one_to_one() {
        let checkout = Checkout::sample(&[
            ("ARCHITECTURE.md", TABLE),
            ("crates/base/Cargo.toml", ""),
            ("crates/new/Cargo.toml", ""),
        ]);
        let places: Vec<String> = check(&checkout).into_iter().map(|problem| problem.says).collect();
        assert_eq!(
            places,
            [
                "has no row in ARCHITECTURE.md",
                "has a row for `recorder`, which is no crate",
                "has a row for `recorder_torch`, which is no crate",
            ]
        );
    }

    #[test]
    fn a_crate_that_is_not_drawn_is_a_problem() {
        let page = TABLE.replace("recorder_torch ─▶", "recorder_torchx ─▶");
        let manifests = ["base", "recorder", "recorder_torch"].map(|name| format!("crates/{name}/Cargo.toml"));
        let mut files: Vec<(&str, &str)> = manifests.iter().map(|path| (path.as_str(), "")).collect();
        files.push(("ARCHITECTURE.md", &page));
        let problems = check(&Checkout::sample(&files));
        assert_eq!(problems, [Problem::new("crates/recorder_torch", "is not in the diagram of ARCHITECTURE.md")]);
    }

    #[test]
    fn a_missing_table_is_a_problem() {
        assert_eq!(check(&Checkout::sample(&[("ARCHITECTURE.md", "# Crates\n")])).len(), 1);
    }
}

//! `cargo xtask tidy`: the rules that the compiler does not know, so that prose and structure cannot rot.
//!
//! A rule is one file below: a pure function from the checkout's files to the problems it finds, and tests that show it
//! failing.

mod analyses;
mod arrows;
mod commands;
mod dependencies;
mod links;
mod machine_paths;
mod names;
mod promises;
mod reachable;
mod rust_code;
mod unsafe_code;
mod words;

use crate::checkout::Checkout;
use crate::test::Counts;

/// Something that breaks a rule.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Problem {
    /// The file, and the line where there is one.
    place: String,
    /// What is wrong with it.
    says: String,
}

impl Problem {
    fn new(place: impl Into<String>, says: impl Into<String>) -> Self {
        Self { place: place.into(), says: says.into() }
    }

    /// At a line of a file, counted from zero.
    fn at_line(path: &str, line: usize, says: impl Into<String>) -> Self {
        Self::new(format!("{path}:{}", line + 1), says)
    }
}

/// A rule of the project.
struct Rule {
    name: &'static str,
    check: fn(&Checkout) -> Vec<Problem>,
}

const RULES: &[Rule] = &[
    Rule { name: "crates depend only on what ARCHITECTURE.md allows", check: arrows::check },
    Rule { name: "every analysis says what it is and is tested", check: analyses::check },
    Rule { name: "dependencies come from the public registry", check: dependencies::check },
    Rule { name: "links lead somewhere", check: links::check },
    Rule { name: "every page can be reached from README", check: reachable::check },
    Rule { name: "pages, messages and comments use the glossary's words", check: words::check },
    Rule { name: "no path of somebody's machine", check: machine_paths::check },
    Rule { name: "files are named for what they hold", check: names::check },
    Rule { name: "README's commands exist", check: promises::check },
    Rule { name: "messages tell to type commands that exist", check: commands::check },
    Rule { name: "unsafe code only where it may be", check: unsafe_code::check },
];

/// Checks every rule and prints what breaks one.
pub(crate) fn run(arguments: &[String]) -> Result<bool, String> {
    if !arguments.is_empty() {
        return Err("`cargo xtask tidy` takes no arguments".into());
    }
    Ok(check_checkout()?.failed == 0)
}

/// Checks every rule, each counted as a test. An error when the files cannot be listed.
pub(crate) fn check_checkout() -> Result<Counts, String> {
    let checkout = Checkout::read()?;
    let mut counts = Counts::default();
    for rule in RULES {
        let problems = (rule.check)(&checkout);
        println!("{} {}", if problems.is_empty() { "ok     " } else { "BROKEN " }, rule.name);
        for Problem { place, says } in &problems {
            println!("        {place}: {says}");
        }
        counts.passed += usize::from(problems.is_empty());
        counts.failed += usize::from(!problems.is_empty());
    }
    Ok(counts)
}

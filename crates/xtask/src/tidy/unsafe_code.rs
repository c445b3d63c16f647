//! Unsafe code is only in the crates that cannot do without: the recorder, and the mapped files it writes. That each
//! block says why it is sound is clippy's to check.

use super::Problem;
use super::rust_code::without_comments_and_strings;
use crate::checkout::{Checkout, File};

pub(super) fn check(checkout: &Checkout) -> Vec<Problem> {
    checkout.with_extension("rs").filter(|file| !may_have_it(file)).flat_map(problems_of).collect()
}

fn may_have_it(file: &File) -> bool {
    let mut parts = file.parts();
    parts.next() == Some("crates") && parts.next().is_some_and(|name| name.starts_with("recorder") || name == "capture")
}

fn problems_of(file: &File) -> Vec<Problem> {
    let code = without_comments_and_strings(&file.text());
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let lines = code.lines().enumerate();
    let lines = lines.filter(|(_, line)| line.split(|character| !is_word(character)).any(|word| word == "unsafe"));
    lines
        .map(|(index, _)| Problem::at_line(&file.path, index, "unsafe code is for `recorder*` and `capture`"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(path: &str, text: &str) -> Vec<String> {
        check(&Checkout::sample(&[(path, text)])).into_iter().map(|problem| problem.place).collect()
    }

    #[test]
    fn unsafe_code_elsewhere_is_a_problem() {
        let text = "fn f(p: *const u8) -> u8 {\n    unsafe { *p }\n}\nunsafe impl Send for A {}\n";
        assert_eq!(places("crates/trace/src/lib.rs", text), ["crates/trace/src/lib.rs:2", "crates/trace/src/lib.rs:4"]);
    }

    #[test]
    fn unsafe_code_in_the_recorder_is_fine() {
        assert_eq!(places("crates/recorder_torch/src/lib.rs", "unsafe { f() }"), [""; 0]);
        assert_eq!(places("crates/capture/src/lib.rs", "unsafe { f() }"), [""; 0]);
    }

    #[test]
    fn the_word_in_prose_is_fine() {
        let text =
            "// unsafe here\n#![deny(unsafe_code)]\nconst A: &str = \"unsafe\";\nconst B: &str = r#\"\"unsafe\"#;\n";
        assert_eq!(places("crates/trace/src/lib.rs", text), [""; 0]);
    }
}

//! No file, folder or module is called by a word that says nothing about what it holds.

use super::Problem;
use crate::checkout::{Checkout, File};

const EMPTY_WORDS: [&str; 6] = ["util", "utils", "helpers", "common", "misc", "manager"];

pub(super) fn check(checkout: &Checkout) -> Vec<Problem> {
    let code = ["rs", "py", "ts", "tsx"].into_iter().flat_map(|extension| checkout.with_extension(extension));
    code.flat_map(|file| in_path(file).into_iter().chain(inline_modules(file))).collect()
}

fn says_nothing(name: &str) -> bool {
    name.split('_').any(|word| EMPTY_WORDS.contains(&word))
}

fn in_path(file: &File) -> Option<Problem> {
    let mut stems = file.parts().map(|part| part.split('.').next().unwrap_or(part));
    let name = stems.find(|stem| says_nothing(stem))?;
    Some(Problem::new(&file.path, format!("`{name}` says nothing about what is in it")))
}

/// Modules written inside another file: `mod utils {`.
fn inline_modules(file: &File) -> Vec<Problem> {
    let text = file.text();
    let modules = text.lines().enumerate().filter_map(|(index, line)| {
        let line = line.trim().strip_suffix('{')?.trim_end();
        let (before, name) = line.rsplit_once("mod ")?;
        (before.is_empty() || before.starts_with("pub")).then(|| (index, name.to_string()))
    });
    let empty = modules.filter(|(_, name)| says_nothing(name));
    empty.map(|(index, name)| Problem::at_line(&file.path, index, format!("`mod {name}` says nothing"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(files: &[(&str, &str)]) -> Vec<String> {
        check(&Checkout::sample(files)).into_iter().map(|problem| problem.place).collect()
    }

    #[test]
    fn names_that_say_nothing_are_problems() {
        let files = [
            ("crates/a/src/utils.rs", ""),
            ("crates/a/src/string_helpers.rs", ""),
            ("crates/common/src/lib.rs", ""),
            ("python/stepscope/misc.py", ""),
        ];
        assert_eq!(places(&files).len(), files.len());
    }

    #[test]
    fn modules_inside_a_file_count_too() {
        assert_eq!(
            places(&[("crates/a/src/lib.rs", "fn a() {}\npub(crate) mod helpers {\n}\n")]),
            ["crates/a/src/lib.rs:2"]
        );
    }

    #[test]
    fn names_that_contain_such_a_word_are_fine() {
        assert_eq!(places(&[("crates/a/src/gpu_utilization.rs", "mod tests {\n}"), ("docs/common.md", "")]), [""; 0]);
    }
}

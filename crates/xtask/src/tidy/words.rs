//! Pages, error messages and help texts use the words of `docs/glossary.md`: none that it lists in bold.

use super::Problem;
use super::links::prose;
use crate::checkout::{Checkout, File};

const GLOSSARY: &str = "docs/glossary.md";
/// Each argument of the command line is documented by a comment that the command prints.
const COMMAND_LINE: &str = "crates/cli/src/";

pub(super) fn check(checkout: &Checkout) -> Vec<Problem> {
    let Some(glossary) = checkout.file(GLOSSARY) else {
        return vec![Problem::new(GLOSSARY, "is missing: it lists the words to avoid")];
    };
    let refused = refused(&glossary.text());
    if refused.is_empty() {
        return vec![Problem::new(GLOSSARY, "lists no word in bold")];
    }
    let pages = checkout.with_extension("md").filter(|page| page.path != GLOSSARY);
    let pages = pages.flat_map(|page| problems(page, prose(&page.text()), &refused));
    let sources = checkout.with_extension("rs").filter(|file| file.path.contains("/src/"));
    pages.chain(sources.flat_map(|file| problems(file, messages(file), &refused))).collect()
}

/// The words in bold of the tables, in lower case.
fn refused(glossary: &str) -> Vec<String> {
    let rows = glossary.lines().filter(|line| line.starts_with('|'));
    rows.flat_map(|row| row.split("**").skip(1).step_by(2).map(str::to_lowercase)).collect()
}

/// The lines of a source that a user reads: messages of errors, and help of the command line.
fn messages(file: &File) -> Vec<(usize, String)> {
    let is_help = file.path.starts_with(COMMAND_LINE);
    let is_read = |line: &str| line.contains("#[error(") || (is_help && line.starts_with("    /// "));
    let text = file.text();
    text.lines().enumerate().filter(|(_, line)| is_read(line)).map(|(index, line)| (index, line.to_string())).collect()
}

fn problems(file: &File, lines: Vec<(usize, String)>, refused: &[String]) -> Vec<Problem> {
    let found = |(index, line): (usize, String)| {
        let line = line.to_lowercase();
        let word = refused.iter().find(|word| has_word(&line, word))?;
        Some(Problem::at_line(&file.path, index, format!("`{word}`: {GLOSSARY} has another word")))
    };
    lines.into_iter().filter_map(found).collect()
}

/// True when `line` has `word`, and not as a part of a longer one.
fn has_word(line: &str, word: &str) -> bool {
    let is_letter = |character: Option<char>| character.is_some_and(char::is_alphanumeric);
    line.match_indices(word).any(|(at, found)| {
        !is_letter(line[..at].chars().next_back()) && !is_letter(line[at + found.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "| word | means | not |\n|---|---|---|\n| cache | Kept. | **hoard**, pile |\n";

    fn places(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<(&str, &str)> = [(GLOSSARY, LIST)].into_iter().chain(files.iter().copied()).collect();
        check(&Checkout::sample(&files)).into_iter().map(|problem| problem.place).collect()
    }

    #[test]
    fn words_in_bold_are_refused_in_pages() {
        let page = "A pile.\nHoard it.\n`hoard`\n```\nhoard\n```\nhoarding\n";
        assert_eq!(places(&[("README.md", page)]), ["README.md:2"]);
    }

    #[test]
    fn words_in_bold_are_refused_in_messages() {
        let source = "/// A hoard.\n#[error(\"no hoard\")]\n    /// hoard\n";
        assert_eq!(places(&[("crates/a/src/error.rs", source)]), ["crates/a/src/error.rs:2"]);
        assert_eq!(places(&[("crates/cli/src/a.rs", source)]), ["crates/cli/src/a.rs:2", "crates/cli/src/a.rs:3"]);
    }

    #[test]
    fn a_glossary_must_be_there() {
        assert_eq!(check(&Checkout::sample(&[("README.md", "")])).len(), 1);
        assert_eq!(check(&Checkout::sample(&[(GLOSSARY, "# Words\n")])).len(), 1);
    }
}

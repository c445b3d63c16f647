//! Pages, error messages, help texts and comments use the words of `docs/glossary.md`: none that it lists in bold.

use super::Problem;
use super::links::prose;
use crate::checkout::{Checkout, File};

const GLOSSARY: &str = "docs/glossary.md";
/// Endings of the sources whose comments are read.
const SOURCES: [&str; 5] = ["rs", "py", "ts", "tsx", "css"];
/// What begins and ends a docstring.
const QUOTES: &str = "\"\"\"";

pub(super) fn check(checkout: &Checkout) -> Vec<Problem> {
    let Some(glossary) = checkout.file(GLOSSARY) else {
        return vec![Problem::new(GLOSSARY, "is missing: it lists the words to avoid")];
    };
    let refused = refused(&glossary.text());
    if refused.is_empty() {
        return vec![Problem::new(GLOSSARY, "lists no word in bold")];
    }
    let pages = checkout.with_extension("md").filter(|page| page.path != GLOSSARY);
    let pages = pages.map(|page| (page, page.text()));
    let sources = SOURCES.into_iter().flat_map(|ending| checkout.with_extension(ending));
    let sources = sources.map(|file| (file, comments(file)));
    pages.chain(sources).flat_map(|(file, text)| problems(file, prose(&text), &refused)).collect()
}

/// The words in bold of the tables, in lower case.
fn refused(glossary: &str) -> Vec<String> {
    let rows = glossary.lines().filter(|line| line.starts_with('|'));
    rows.flat_map(|row| row.split("**").skip(1).step_by(2).map(str::to_lowercase)).collect()
}

/// The comments, docstrings and messages of errors in a source, each in its line. Help texts are comments, too.
fn comments(file: &File) -> String {
    let is_python = file.path.ends_with(".py");
    let marks: &[&str] = if is_python { &["#", QUOTES] } else { &["//", "/*", "#[error("] };
    let text = file.text();
    let mut is_docstring = false;
    let mut comments = Vec::new();
    for line in text.lines() {
        let is_continued = is_docstring || !is_python && line.trim_start().starts_with("* ");
        is_docstring ^= is_python && line.matches(QUOTES).count() % 2 == 1;
        let begin = if is_continued { Some(0) } else { marks.iter().filter_map(|mark| line.find(*mark)).min() };
        comments.push(begin.map_or("", |at| &line[at..]));
    }
    comments.join("\n")
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
        let source = "hoard(\"hoard\")\n#[error(\"no hoard\")]\n";
        assert_eq!(places(&[("crates/a/src/error.rs", source)]), ["crates/a/src/error.rs:2"]);
    }

    #[test]
    fn words_in_bold_are_refused_in_comments() {
        let source = "hoard() // A hoard.\n/** A `hoard`.\n * A hoard. */\nhoard(\"hoard\")\n";
        for path in ["crates/a/tests/a.rs", "web/a.ts", "web/a.tsx", "web/a.css"] {
            assert_eq!(places(&[(path, source)]), [format!("{path}:1"), format!("{path}:3")]);
        }
        let source = "hoard()  # A hoard.\n\"\"\"Keeps it.\n\nA hoard.\"\"\"\nhoard(\"hoard\")\n";
        assert_eq!(places(&[("python/a.py", source)]), ["python/a.py:1", "python/a.py:4"]);
    }

    #[test]
    fn a_glossary_must_be_there() {
        assert_eq!(check(&Checkout::sample(&[("README.md", "")])).len(), 1);
        assert_eq!(check(&Checkout::sample(&[(GLOSSARY, "# Words\n")])).len(), 1);
    }
}

//! Every relative link of every page leads to a file that exists, and to a heading of it.

use super::Problem;
use crate::checkout::{Checkout, File};
use std::collections::HashMap;

pub(super) fn check(checkout: &Checkout) -> Vec<Problem> {
    let mut problems = Vec::new();
    for page in checkout.with_extension("md") {
        for (index, line) in prose(&page.text()) {
            let dead = targets(&line).into_iter().filter_map(|target| why_dead(checkout, page, &target));
            problems.extend(dead.map(|says| Problem::at_line(&page.path, index, says)));
        }
    }
    problems
}

/// The pages that `page` links to, from the root.
pub(super) fn pages_linked(page: &File) -> Vec<String> {
    let targets = prose(&page.text()).into_iter().flat_map(|(_, line)| targets(&line));
    let paths = targets.filter_map(|target| resolve(&page.path, target.split('#').next()?));
    paths.filter(|path| path.ends_with(".md")).collect()
}

/// The lines outside code blocks, numbered from zero, without code in backquotes.
pub(super) fn prose(text: &str) -> Vec<(usize, String)> {
    let mut is_code = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            lines.push((index, line.split('`').step_by(2).collect::<Vec<_>>().join("`")));
        }
    }
    lines
}

/// What a line links to: `[text](target)`, `[name]: target`.
fn targets(line: &str) -> Vec<String> {
    let inline = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    let definition = line.strip_prefix('[').and_then(|rest| rest.split_once("]: ")).map(|(_, target)| target.trim());
    inline.chain(definition).map(|target| target.trim_matches(['<', '>']).to_string()).collect()
}

/// Why nobody gets to `target` from `page`; `None` when it can be reached, or is an address on the web.
fn why_dead(checkout: &Checkout, page: &File, target: &str) -> Option<String> {
    let is_address = target.contains("://") || target.starts_with("mailto:");
    if is_address {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let Some(path) = resolve(&page.path, path) else { return Some(format!("{target} is outside the repository")) };
    if !checkout.has(&path) {
        return Some(format!("{target} leads to no file"));
    }
    let linked = checkout.file(&path).filter(|file| file.path.ends_with(".md") && !anchor.is_empty())?;
    (!anchors(&linked.text()).iter().any(|known| known == anchor)).then(|| format!("{target} leads to no heading"))
}

/// `target` of a link on `page`, from the root; `None` when it leaves the root.
fn resolve(page: &str, target: &str) -> Option<String> {
    if target.is_empty() {
        return Some(page.to_string());
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// The anchors of a page's headings, as code hosts make them: lower case, spaces to dashes, no other punctuation; a
/// heading that comes again gets a number.
fn anchors(text: &str) -> Vec<String> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut anchors = Vec::new();
    for (_, line) in headings(text) {
        let is_kept = |character: &char| character.is_alphanumeric() || matches!(character, '-' | '_' | ' ');
        let anchor: String = line.to_lowercase().chars().filter(is_kept).collect::<String>().replace(' ', "-");
        let times = seen.entry(anchor.clone()).and_modify(|times| *times += 1).or_default();
        anchors.push(if *times == 0 { anchor } else { format!("{anchor}-{times}") });
    }
    anchors
}

/// The text of the headings outside code blocks, links reduced to their text.
fn headings(text: &str) -> Vec<(usize, String)> {
    let mut is_code = false;
    let mut headings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        let title = line.trim_start_matches('#');
        if !is_code && line.starts_with('#') && title.starts_with(' ') {
            let without_targets = title
                .split("](")
                .enumerate()
                .map(|(part, text)| if part == 0 { text } else { text.split_once(')').map_or("", |(_, after)| after) });
            headings.push((index, without_targets.collect::<String>().trim().to_string()));
        }
    }
    headings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(page: &str) -> Vec<String> {
        let other = "# One page\n## What it's for: `x`\n## Again\n## Again\n```\n# no heading\n```\n";
        let files = [("docs/page.md", page), ("docs/other.md", other), ("src/lib.rs", "")];
        let line = |problem: Problem| format!("{}: {}", problem.place, problem.says);
        check(&Checkout::sample(&files)).into_iter().map(line).collect()
    }

    #[test]
    fn links_that_lead_somewhere_are_fine() {
        let page = "# Here\n[a](other.md) [b](./other.md#one-page) [c](../src) [d](#here) [e](https://example.org/x#y)\n\
            [f](other.md#what-its-for-x) [g](other.md#again-1 \"title\")\n\n[h]: ../src/lib.rs\n";
        assert_eq!(problems(page), [""; 0]);
    }

    #[test]
    fn a_link_to_no_file_is_a_problem() {
        assert_eq!(problems("# Here\n\nSee [a](gone.md)."), ["docs/page.md:3: gone.md leads to no file"]);
        assert_eq!(problems("[a]: ../gone.rs"), ["docs/page.md:1: ../gone.rs leads to no file"]);
        assert_eq!(problems("[a](../../x.md)"), ["docs/page.md:1: ../../x.md is outside the repository"]);
    }

    #[test]
    fn a_link_to_no_heading_is_a_problem() {
        assert_eq!(problems("[a](other.md#gone)"), ["docs/page.md:1: other.md#gone leads to no heading"]);
        assert_eq!(problems("[a](#no-heading)"), ["docs/page.md:1: #no-heading leads to no heading"]);
    }

    #[test]
    fn code_links_to_nothing() {
        assert_eq!(problems("`[a](gone.md)`\n```\n[b](gone.md)\n```\n"), [""; 0]);
    }
}

//! Nothing in the repository names a folder of somebody's machine: neither text nor what is recorded into a fixture.

use super::Problem;
use crate::checkout::Checkout;

/// Folders at the root of a file system in which people and build machines keep their own files.
const OWN_FOLDERS: [&str; 4] = ["home", "root", "work", "Users"];

pub(super) fn check(checkout: &Checkout) -> Vec<Problem> {
    let patterns: Vec<String> = OWN_FOLDERS.iter().map(|folder| format!("/{folder}/")).collect();
    let mut problems = Vec::new();
    for file in &checkout.files {
        let found = patterns.iter().filter_map(|pattern| {
            let position = position_of_path(&file.bytes, pattern.as_bytes())?;
            let line = file.bytes[..position].iter().filter(|byte| **byte == b'\n').count();
            Some(Problem::at_line(&file.path, line, format!("names a machine's own folder, {pattern}…")))
        });
        problems.extend(found);
    }
    problems
}

/// Where `pattern` starts a path, not goes on with one as in `docs` + `pattern` or a web address.
fn position_of_path(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    let goes_on = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'~' | b'}' | b'>');
    let mut starts =
        (0..bytes.len().saturating_sub(pattern.len() - 1)).filter(|start| bytes[*start..].starts_with(pattern));
    starts.find(|start| *start == 0 || !goes_on(bytes[start - 1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str) -> Vec<String> {
        check(&Checkout::sample(&[("a.md", text)])).into_iter().map(|problem| problem.place).collect()
    }

    #[test]
    fn a_path_of_a_machine_is_a_problem() {
        for folder in OWN_FOLDERS {
            assert_eq!(places(&format!("text\nsee \"/{folder}/me/trace.json\"")), ["a.md:2"]);
            assert_eq!(places(&format!("/{folder}/me")), ["a.md:1"]);
        }
    }

    #[test]
    fn a_folder_of_that_name_elsewhere_is_fine() {
        for folder in OWN_FOLDERS {
            assert_eq!(places(&format!("https://example.org/{folder}/me, docs/{folder}/me, {folder}/me")), [""; 0]);
        }
    }
}

//! What opens a line of source in somebody's editor: an address that the editor has registered for itself.

use std::path::Path;
use std::str::FromStr;

/// Editors that are known by name.
const KNOWN: [(&str, &str); 3] = [
    ("vscode", "vscode://file/{file}:{line}"),
    ("cursor", "cursor://file/{file}:{line}"),
    ("idea", "idea://open?file=/{file}&line={line}"),
];
/// Addresses that would run in the page or leave it.
const REFUSED: [&str; 6] = ["javascript", "data", "vbscript", "file", "http", "https"];

/// An editor, as the address that opens a file in it. `{file}` stands for its path without the first `/`, `{line}` for
/// the line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Editor(String);

impl Editor {
    /// The address with `{file}` and `{line}` in it.
    pub fn template(&self) -> &str {
        &self.0
    }

    /// The address that opens a line of a file.
    pub fn url(&self, file: &Path, line: usize) -> String {
        let path = file.to_string_lossy();
        self.0.replace("{line}", &line.to_string()).replace("{file}", &encoded(path.trim_start_matches('/')))
    }
}

impl FromStr for Editor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((_, template)) = KNOWN.iter().find(|(name, _)| *name == text) {
            return Ok(Self((*template).into()));
        }
        let names = KNOWN.map(|(name, _)| name).join(", ");
        let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        let is_plain = |scheme: &String| {
            scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
                && !REFUSED.contains(&scheme.as_str())
        };
        match scheme.filter(is_plain) {
            Some(_) if text.contains("{file}") => Ok(Self(text.into())),
            Some(_) => Err("the address has no {file} in it".into()),
            None => Err(format!("give {names}, or an address such as vscode://file/{{file}}:{{line}}")),
        }
    }
}

/// A path as it stands in an address.
fn encoded(path: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    path.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_editor_opens_a_line() {
        let url = |editor: &str| editor.parse::<Editor>().unwrap().url(Path::new("/a b/{line}.py"), 7);
        assert_eq!(url("vscode"), "vscode://file/a%20b/%7Bline%7D.py:7");
        assert_eq!(url("idea"), "idea://open?file=/a%20b/%7Bline%7D.py&line=7");
        assert_eq!(url("zed://file/{file}:{line}"), "zed://file/a%20b/%7Bline%7D.py:7");
    }

    #[test]
    fn what_opens_no_editor_is_refused() {
        for text in [
            "emacs",
            "",
            "javascript://{file}",
            "JavaScript://x{file}",
            "https://evil/{file}",
            "vscode://file/x",
            "://{file}",
            "a b://{file}",
        ] {
            assert!(text.parse::<Editor>().is_err(), "{text}");
        }
    }
}

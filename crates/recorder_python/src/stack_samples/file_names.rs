//! How files of Python are shown, and which of them are of libraries: of Python itself and of installed packages.

use std::collections::BTreeMap;

/// The longest list; of a longer one nothing is said, since what it leaves out would count as files of the program.
const MOST_BYTES: usize = 8 << 10;
/// Stands for a list that is too long: no file begins so.
const TOO_MANY: &str = "…";

/// Files that were shown, by what paths begin with.
pub(super) struct FileNames {
    /// What paths are shown without, the first that fits.
    prefixes: Vec<String>,
    /// Those of them that are of libraries.
    libraries: Vec<String>,
    /// Of what shown paths begin with, as `json/` and `threading.py`: whether all such files are of libraries.
    first_parts: BTreeMap<String, bool>,
    has_changed: bool,
}

impl FileNames {
    pub(super) fn new(prefixes: Vec<String>, libraries: Vec<String>) -> Self {
        Self { prefixes, libraries, first_parts: BTreeMap::new(), has_changed: false }
    }

    /// A path as it is shown.
    pub(super) fn short<'a>(&mut self, path: &'a str) -> &'a str {
        let Some(prefix) = self.prefixes.iter().find(|prefix| path.starts_with(prefix.as_str())) else { return path };
        let short = &path[prefix.len()..];
        let first_part = short.find('/').map_or(short, |end| &short[..=end]);
        let is_library = self.libraries.contains(prefix);
        match self.first_parts.get_mut(first_part) {
            Some(known) => {
                self.has_changed |= *known && !is_library;
                *known &= is_library;
            }
            None => {
                self.has_changed |= is_library;
                self.first_parts.insert(first_part.to_string(), is_library);
            }
        }
        short
    }

    /// What paths of libraries begin with, separated by line breaks, where it is not what it was last.
    pub(super) fn new_libraries(&mut self) -> Option<String> {
        if !std::mem::take(&mut self.has_changed) {
            return None;
        }
        let libraries = self.first_parts.iter().filter(|(_, is_library)| **is_library);
        let list = libraries.map(|(first_part, _)| first_part.as_str()).collect::<Vec<_>>().join("\n");
        Some(if list.len() > MOST_BYTES { TOO_MANY.into() } else { list })
    }
}

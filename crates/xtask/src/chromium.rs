//! The browser that tests and benches drive.

use std::path::PathBuf;

/// What Chromium and Chrome are called where they are installed.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// The browser: `CHROMIUM`, or the first of the usual names in `PATH`.
pub(crate) fn find() -> Result<PathBuf, String> {
    let chosen = std::env::var_os("CHROMIUM").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    find_in(chosen, std::env::split_paths(&path))
}

fn find_in(chosen: Option<PathBuf>, folders: impl Iterator<Item = PathBuf>) -> Result<PathBuf, String> {
    if let Some(chosen) = chosen {
        let missing = || format!("CHROMIUM names no file: {}", chosen.display());
        return if chosen.is_file() { Ok(chosen) } else { Err(missing()) };
    }
    let mut programs = folders.flat_map(|folder| NAMES.map(|name| folder.join(name)));
    programs.find(|program| program.is_file()).ok_or_else(|| {
        "no Chromium and no Chrome in PATH\nhint: on Debian `apt install chromium`, or name one: CHROMIUM=/path/to/chrome"
            .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_chosen_comes_before_what_is_in_path() {
        let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let (file, none) = (here.join("Cargo.toml"), here.join("nothing"));
        assert_eq!(find_in(Some(file.clone()), std::iter::empty()), Ok(file));
        assert!(find_in(Some(none), std::iter::empty()).unwrap_err().contains("nothing"));
    }

    #[test]
    fn without_one_it_is_said_what_to_install() {
        let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        assert!(find_in(None, std::iter::once(here)).unwrap_err().contains("apt install chromium"));
    }
}

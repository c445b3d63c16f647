//! Where programs keep what they can make again.

use std::path::PathBuf;

/// The folder of this program in the user's cache; `None` when the system does not say where that is.
pub fn cache_folder() -> Option<PathBuf> {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = of("XDG_CACHE_HOME").or_else(|| of("LOCALAPPDATA")).or_else(|| Some(of("HOME")?.join(".cache")))?;
    Some(cache.join("stepscope"))
}

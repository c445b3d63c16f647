//! The secret in the address that the command prints: who has it may ask.
//!
//! A server on a port that a person named keeps its secret in the user's state folder, so that pages that are open, and
//! links, work again after a restart. On any other port it is new each time.

use std::fmt::Write;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use subtle::ConstantTimeEq;

/// How long a token is good for after the last start of a server with it.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 3600);
/// Characters of a token.
const LENGTH: usize = 32;

/// 128 random bits, written in hexadecimal.
#[derive(Clone)]
pub(crate) struct Token(String);

impl Token {
    /// A new one.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub(crate) fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })))
    }

    /// The one that `text` is.
    pub(crate) fn given(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The one that the last server on `port` had, or a new one, kept in `folder` for the next.
    ///
    /// # Errors
    /// When the system has no random bytes. A folder that cannot be written is none: the next server then has another.
    pub(crate) fn load_or_create(folder: &Path, port: u16) -> Result<Self, getrandom::Error> {
        let path = folder.join(format!("{port}.token"));
        let token = match read(&path) {
            Some(known) => Self(known),
            None => Self::random()?,
        };
        // Written again in any case: how old the file is says when it was last used.
        let _ = write(folder, &path, &token.0);
        Ok(token)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `offered` is it. How long that takes tells nothing but its length.
    pub(crate) fn is(&self, offered: &str) -> bool {
        self.0.as_bytes().ct_eq(offered.as_bytes()).into()
    }
}

/// The folder of the user in which tokens are kept; none where there is no home.
pub(crate) fn state_folder() -> Option<PathBuf> {
    let named = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = named.or_else(|| Some(std::env::home_dir()?.join(".local/state")))?;
    Some(folder.join("stepscope/view"))
}

/// The token in a file that nobody else can read, and that was used lately.
fn read(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    let metadata = file.metadata().ok()?;
    let is_fresh = metadata.modified().ok()?.elapsed().is_ok_and(|age| age < KEPT_FOR);
    if !metadata.is_file() || !is_private(&metadata) || !is_fresh {
        return None;
    }
    let mut text = String::new();
    file.take(LENGTH as u64 + 1).read_to_string(&mut text).ok()?;
    (text.len() == LENGTH && text.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(text)
}

#[cfg(unix)]
fn is_private(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.mode() & 0o077 == 0
}

#[cfg(not(unix))]
fn is_private(_metadata: &fs::Metadata) -> bool {
    true
}

/// Writes a file of its own name, and puts it in its place: it is never half there, and never readable by others.
fn write(folder: &Path, path: &Path, text: &str) -> io::Result<()> {
    let (mut builder, mut options) = (DirBuilder::new(), OpenOptions::new());
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
        builder.mode(0o700);
        options.mode(0o600);
    }
    builder.recursive(true).create(folder)?;
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let written = options.open(&new).and_then(|mut file| file.write_all(text.as_bytes()));
    written.and_then(|()| fs::rename(&new, path)).inspect_err(|_| drop(fs::remove_file(&new)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[test]
    fn tokens_are_long_and_never_the_same() {
        let (one, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert_eq!(one.as_str().len(), 32);
        assert!(one.is(one.as_str()) && !one.is(other.as_str()) && !one.is("") && !one.is(&one.as_str()[..31]));
    }
    #[test]
    fn the_next_server_on_a_port_has_the_token_of_the_last() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("state/view");
        let kept = |port| Token::load_or_create(&folder, port).unwrap().0;
        let first = kept(8000);
        assert_eq!(kept(8000), first);
        assert_ne!(kept(8001), first);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
        // A folder that cannot be written still gives a token.
        assert_eq!(Token::load_or_create(&folder.join("8000.token"), 1).unwrap().0.len(), LENGTH);
    }

    #[cfg(unix)]
    #[test]
    fn a_token_that_others_could_read_or_that_is_old_or_none_is_not_taken() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.token");
        let kept = || Token::load_or_create(folder.path(), 1).unwrap().0;
        let first = kept();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let second = kept();
        assert_ne!(second, first);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        File::options().write(true).open(&path).unwrap().set_modified(SystemTime::now() - KEPT_FOR).unwrap();
        let third = kept();
        assert_ne!(third, second);
        for text in ["", "short", &"x".repeat(LENGTH), &format!("{third}0")] {
            fs::write(&path, text).unwrap();
            assert_ne!(kept(), *text);
        }
    }
}

//! A file that is there whole or not at all.

use crate::ExportError;
use crate::direct::DirectFile;
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// A file under way. It has another name in the same folder until [`Destination::finish`] renames it; when it is
/// dropped before, nothing is left.
#[derive(Debug)]
pub struct Destination {
    path: PathBuf,
    beside: PathBuf,
    is_finished: bool,
}

impl Destination {
    /// Makes the file beside `path`, with `write` its content, and renames it. A file at `path` is replaced.
    ///
    /// # Errors
    /// [`ExportError::Write`]; `path` is then as it was.
    pub fn write(
        path: &Path,
        write: impl FnOnce(&mut (dyn Write + Send)) -> std::io::Result<()>,
    ) -> Result<(), ExportError> {
        let (destination, file) = Self::create(path)?;
        let mut buffered = BufWriter::with_capacity(1 << 18, file);
        let written = write(&mut buffered).and_then(|()| buffered.flush());
        written.and_then(|()| destination.finish()).map_err(|source| ExportError::Write { path: path.into(), source })
    }

    /// As [`write`](Self::write), for a large file that is not read soon.
    ///
    /// # Errors
    /// [`ExportError::Write`]; `path` is then as it was.
    pub(crate) fn write_large(
        path: &Path,
        write: impl FnOnce(&mut (dyn Write + Send)) -> std::io::Result<()>,
    ) -> Result<(), ExportError> {
        let (destination, file) = Self::create(path)?;
        let mut direct = DirectFile::new(file);
        let written = write(&mut direct).and_then(|()| direct.flush());
        written.and_then(|()| destination.finish()).map_err(|source| ExportError::Write { path: path.into(), source })
    }

    /// The file beside `path`, open.
    ///
    /// # Errors
    /// [`ExportError::Write`].
    pub fn create(path: &Path) -> Result<(Self, File), ExportError> {
        let failed = |source| ExportError::Write { path: path.into(), source };
        let name = path.file_name().ok_or_else(|| failed(ErrorKind::IsADirectory.into()))?.to_string_lossy();
        if stepscope_store::is_folder(path) {
            return Err(failed(ErrorKind::IsADirectory.into()));
        }
        // What goes to a store is made on disk, and sent when it is whole.
        let of_store = stepscope_store::is_remote(path).then(|| std::env::temp_dir().join(name.as_ref()));
        let place = of_store.as_deref().unwrap_or(path);
        let numbered = |number: u32| place.with_file_name(format!(".{name}.{}-{number}.part", std::process::id()));
        for number in 0.. {
            let beside = numbered(number);
            match File::create_new(&beside) {
                Ok(file) => return Ok((Self { path: path.into(), beside, is_finished: false }, file)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists && number < 100 => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Err(failed(ErrorKind::AlreadyExists.into()))
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// When it cannot be renamed.
    pub fn finish(mut self) -> std::io::Result<()> {
        if stepscope_store::is_remote(&self.path) {
            return stepscope_store::upload(&self.beside, &self.path);
        }
        std::fs::rename(&self.beside, &self.path)?;
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        if !self.is_finished {
            // Nobody can be told here; the failure that led here is told.
            let _ = std::fs::remove_file(&self.beside);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        let broken = Destination::write(&path, |out| {
            out.write_all(b"half")?;
            Err(std::io::Error::from(ErrorKind::StorageFull))
        });
        assert!(broken.unwrap_err().hint().is_some());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        Destination::write(&path, |out| out.write_all(b"whole")).unwrap();
        Destination::write(&path, |out| out.write_all(b"again")).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"again");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(Destination::write(&folder.path().join("no/a.json"), |_| Ok(())).unwrap_err().hint().is_some());
        assert!(Destination::write(folder.path(), |_| Ok(())).is_err());
    }
}

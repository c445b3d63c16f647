//! What a trace can be written as, told by the ending of a file's name.

use crate::ExportError;
use std::path::Path;

/// A form of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// JSON as Kineto writes it, for `chrome://tracing`, TensorBoard and programs that read traces of `torch.profiler`.
    Chrome {
        /// Packed by gzip.
        is_packed: bool,
    },
    /// Perfetto's own protobuf.
    Perfetto {
        /// Packed by gzip.
        is_packed: bool,
    },
    /// The table of slices in one Parquet file.
    Slices,
    /// Every table as a Parquet file of one folder.
    Tables,
}

impl Format {
    /// The format that the ending of `path` stands for; upper and lower case are the same. A folder is there already,
    /// or its name ends in a slash.
    ///
    /// # Errors
    /// [`ExportError::UnknownFormat`].
    pub fn of_path(path: &Path) -> Result<Self, ExportError> {
        const ENDINGS: [(&str, Format); 7] = [
            (".json", Format::Chrome { is_packed: false }),
            (".json.gz", Format::Chrome { is_packed: true }),
            (".pftrace", Format::Perfetto { is_packed: false }),
            (".perfetto-trace", Format::Perfetto { is_packed: false }),
            (".pftrace.gz", Format::Perfetto { is_packed: true }),
            (".parquet", Format::Slices),
            ("/", Format::Tables),
        ];
        let name = path.as_os_str().to_string_lossy().to_lowercase();
        let by_name = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, format)| *format);
        let known = if path.is_dir() { Some(Self::Tables) } else { by_name };
        known.ok_or_else(|| ExportError::UnknownFormat { path: path.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_says_what_a_file_becomes() {
        let of = |path: &str| Format::of_path(Path::new(path)).ok();
        assert_eq!(of("a.pt.trace.json.gz"), Some(Format::Chrome { is_packed: true }));
        assert_eq!(of("A.JSON"), Some(Format::Chrome { is_packed: false }));
        assert_eq!(of("a.pftrace.gz"), Some(Format::Perfetto { is_packed: true }));
        assert_eq!(of("a.parquet"), Some(Format::Slices));
        assert_eq!(of("tables/"), Some(Format::Tables));
        assert_eq!(of("a.csv"), None);
        assert_eq!(of("json"), None);
        assert!(Format::of_path(Path::new("a.csv")).unwrap_err().hint().is_some());
    }
}

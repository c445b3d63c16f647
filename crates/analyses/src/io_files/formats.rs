//! The format of a file, which the ending of its name says. Asked once a file.
//!
//! The table is `data/file_formats.txt`.

use std::sync::LazyLock;
use stepscope_base::StringTable;

const TABLE: &str = include_str!("../../data/file_formats.txt");

/// Formats with what paths of their files end with.
static ROWS: LazyLock<Vec<(&'static str, Vec<&'static str>)>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    let row = |line: &'static str| {
        let (format, endings) = line.split_once('\t').unwrap_or_else(|| panic!("a row has two cells: {line}"));
        (format, endings.split(' ').collect())
    };
    lines.map(row).collect()
});

const COMPRESSED: [&str; 6] = [".gz", ".zst", ".zstd", ".xz", ".bz2", ".lz4"];

/// The format of a file among all files that are known. Tokens of Megatron's data sets are in a file `.bin` with an index
/// `.idx` beside it.
pub(super) fn format_of(path: &str, known: &StringTable) -> Option<&'static str> {
    let is_indexed =
        |path: &str| path.strip_suffix(".bin").is_some_and(|stem| known.find(&format!("{stem}.idx")).is_some());
    let path = if is_indexed(path) { ".idx" } else { path };
    let lower = path.to_ascii_lowercase();
    let path = without_shard(COMPRESSED.iter().find_map(|ending| lower.strip_suffix(ending)).unwrap_or(&lower));
    let fits = |ending: &&str| if ending.ends_with('/') { path.contains(ending) } else { path.ends_with(ending) };
    ROWS.iter().find(|(_, endings)| endings.iter().any(fits)).map(|(format, _)| *format)
}

/// A path without the number of its shard: `-00000-of-00128`.
fn without_shard(path: &str) -> &str {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let stem = || {
        let (stem, of) = path.rsplit_once("-of-")?;
        let (stem, shard) = stem.rsplit_once('-')?;
        (number(shard) && number(of)).then_some(stem)
    };
    stem().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_ending_of_a_name_says_the_format() {
        let mut known = StringTable::default();
        known.intern("/data/wiki_text_document.idx");
        let formats = [
            ("/data/train-000000.tar", Some("tar")),
            ("train-00000-of-00128.parquet", Some("parquet")),
            ("/data/train.tfrecord-00000-of-01024", Some("tfrecord")),
            ("/data/pile/00.jsonl.zst", Some("json")),
            ("/data/a.tar.gz", Some("tar")),
            ("/data/lmdb/data.mdb", Some("lmdb")),
            ("/data/IMG_1.JPG", Some("image")),
            ("/data/era5.zarr/t2m/0.0.0", Some("zarr")),
            ("/data/wiki_text_document.bin", Some("mmap_index")),
            ("/data/other.bin", None),
            ("/data/2-of-3", None),
            ("/data/tar", None),
            ("socket:[12]", None),
            ("", None),
        ];
        assert_eq!(formats.map(|(path, _)| (path, format_of(path, &known))), formats);
    }

    #[test]
    fn each_ending_has_one_format() {
        let endings: Vec<&str> = ROWS.iter().flat_map(|(_, endings)| endings).copied().collect();
        assert_eq!(endings.iter().collect::<BTreeSet<_>>().len(), endings.len());
        let format = |ending: &str| format_of(&format!("/a{ending}"), &StringTable::default());
        for (name, endings) in ROWS.iter() {
            assert!(endings.iter().all(|ending| format(ending) == Some(name)), "{name}");
        }
    }
}

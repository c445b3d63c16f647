//! Source files that a run's stacks name, and what of them may be shown: nothing that no stack names, and nothing
//! outside of the folders that were allowed, wherever links lead.

use crate::failure::Failure;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use stepscope_engine::Trace;
use stepscope_trace::{Frame, SliceKind};

/// Bytes of a file that are read.
const MAX_BYTES: u64 = 8 << 20;
/// Characters of a line that are shown.
const MAX_LINE: usize = 2_000;
/// Lines that are shown on each side.
pub(crate) const MAX_AROUND: usize = 2_000;

/// The files that stacks name, as they name them.
pub(crate) struct SourceFiles(BTreeSet<String>);

/// Lines of a file.
#[derive(Debug)]
pub(crate) struct Excerpt {
    /// The number of the first line, counted from 1.
    pub(crate) first_line: usize,
    pub(crate) lines: Vec<String>,
    /// Where the file is.
    pub(crate) path: PathBuf,
}

impl SourceFiles {
    /// The files that stacks, Python calls and samples of `trace` name.
    pub(crate) fn of(trace: &Trace) -> Self {
        let mut texts: BTreeSet<_> = trace.ops.info.iter().map(|info| info.stack).collect();
        let calls = trace.slices.ids().filter(|id| trace.slices.kind(*id) == SliceKind::PythonFunction);
        texts.extend(calls.map(|id| trace.slices.name[id.index()]));
        let samples = trace.stack_samples.iter().filter_map(|sample| sample.stack);
        let samples: BTreeSet<_> = samples.collect();
        texts.extend(samples.into_iter().flat_map(|stack| trace.stacks.frames(stack)));
        let frames = texts.into_iter().flat_map(|text| Frame::of_stack(trace.strings.get(text)));
        Self(frames.filter_map(|frame| frame.file).map(str::to_string).collect())
    }

    /// The lines around `line` of the file that stacks call `name`, below one of `roots`. `None` when it is not there,
    /// or lies elsewhere: what lies where is nobody's business.
    ///
    /// # Errors
    /// When no stack names it.
    pub(crate) fn read(
        &self,
        name: &str,
        line: usize,
        around: usize,
        roots: &[PathBuf],
    ) -> Result<Option<Excerpt>, Failure> {
        if !self.0.contains(name) {
            let failure = Failure::not_found("no stack of this run names this file").at(name);
            return Err(failure.hint("only files that appear in stacks are shown, by the names that they have there"));
        }
        let Some(path) = roots.iter().find_map(|root| below(root, name)) else { return Ok(None) };
        let Some(text) = read_text(&path) else { return Ok(None) };
        let first = line.saturating_sub(around.min(MAX_AROUND)).max(1);
        let count = line.max(1).saturating_sub(first) + around.min(MAX_AROUND) + 1;
        let lines = text.lines().skip(first - 1).take(count).map(|line| line.chars().take(MAX_LINE).collect());
        Ok(Some(Excerpt { first_line: first, lines: lines.collect(), path }))
    }
}

/// Where `name` lies below `root`, when it does, links followed.
fn below(root: &Path, name: &str) -> Option<PathBuf> {
    let path = root.join(name).canonicalize().ok()?;
    (path.starts_with(root) && path.is_file()).then_some(path)
}

fn read_text(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn files(names: &[&str]) -> SourceFiles {
        SourceFiles(names.iter().map(|name| name.to_string()).collect())
    }

    #[test]
    fn lines_around_a_line_are_shown() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::write(root.join("a.py"), "1\n2\n3\n4\n5\n").unwrap();
        let read = |line, around| {
            let excerpt = files(&["a.py"]).read("a.py", line, around, std::slice::from_ref(&root)).unwrap().unwrap();
            (excerpt.first_line, excerpt.lines.join(""))
        };
        assert_eq!(read(3, 1), (2, "234".into()));
        assert_eq!(read(1, 1), (1, "12".into()));
        assert_eq!(read(0, 0), (1, "1".into()));
        assert_eq!(read(99, 0), (99, String::new()));
        assert_eq!(read(3, usize::MAX).1, "12345");
        assert_eq!(read(usize::MAX, usize::MAX).1, "");
    }

    #[test]
    fn nothing_outside_of_the_allowed_folders_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let (inside, outside) = (folder.path().join("in"), folder.path().join("out"));
        fs::create_dir(&inside).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret.py"), "secret").unwrap();
        fs::write(inside.join("own.py"), "own").unwrap();
        std::os::unix::fs::symlink(outside.join("secret.py"), inside.join("link.py")).unwrap();
        std::os::unix::fs::symlink(&outside, inside.join("folder")).unwrap();
        let root = inside.canonicalize().unwrap();
        let absolute = outside.join("secret.py").display().to_string();
        let own = root.join("own.py").display().to_string();
        let named = [
            "own.py",
            &own,
            "link.py",
            "folder/secret.py",
            "../out/secret.py",
            "in/../../out/secret.py",
            &absolute,
            ".",
            "/dev/zero",
        ];
        let found = files(&named);
        let is_shown = |name: &str| found.read(name, 1, 1, std::slice::from_ref(&root)).unwrap().is_some();
        assert_eq!(named.map(is_shown), [true, true, false, false, false, false, false, false, false]);
        let whole = files(&[]).read("own.py", 1, 1, &[root]).unwrap_err();
        assert_eq!(whole.status(), axum::http::StatusCode::NOT_FOUND);
    }
}

//! The folder of a new run.

use crate::failure::Failure;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use stepscope_base::utc;
use stepscope_run::NewRun;

/// Where runs go when nobody says where.
const DEFAULT_PARENT: &str = "stepscope-runs";

/// A run folder that was just made.
#[derive(Debug)]
pub(super) struct RunFolder {
    path: PathBuf,
    /// The folders that were made for it, outermost first.
    made: Vec<PathBuf>,
    /// Others record into it, too: nothing is taken back.
    is_shared: bool,
}

/// How long another command may take to make the folder's `run.json`.
const MAKING: Duration = Duration::from_secs(30);

impl RunFolder {
    /// Makes the folder of a new run of `command`. A folder that is there already must be empty.
    pub(super) fn create(path: &Path, command: &[OsString]) -> Result<Self, Failure> {
        check_is_free(path)?;
        let path =
            std::path::absolute(path).map_err(|error| Failure::file("cannot make the run's folder", path, &error))?;
        let mut made: Vec<PathBuf> = path.ancestors().take_while(|folder| !folder.exists()).map(Into::into).collect();
        made.reverse();
        let run = Self { path, made, is_shared: false };
        if let Err(error) = std::fs::create_dir_all(&run.path) {
            let failure = Failure::file("cannot make the run's folder", &run.path, &error);
            run.discard();
            return Err(failure.hint("name a folder that you may write to with -o"));
        }
        let facts = NewRun { command: command.iter().map(|word| word.to_string_lossy().into_owned()).collect() };
        if let Err(error) = stepscope_run::create(&run.path, &facts) {
            let failure = Failure::run(&error, &run.path);
            run.discard();
            return Err(failure);
        }
        Ok(run)
    }

    /// Joins the run that is in the folder, or makes it. Several commands may do so at the same moment.
    pub(super) fn join(path: &Path, command: &[OsString]) -> Result<Self, Failure> {
        let begun = Instant::now();
        let failure = |error| Failure::file("cannot make the run's folder", path, &error);
        // With its last name, which `.` does not have.
        let full = path.canonicalize().or_else(|_| std::path::absolute(path)).map_err(failure)?;
        let path = full.as_path();
        let failure = |error| Failure::file("cannot make the run's folder", path, &error);
        // Who makes this file, beside the folder, makes the run; the others wait for it.
        let mut name = OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(".begun");
        let marker = path.with_file_name(name);
        while !path.join("run.json").is_file() {
            path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(failure)?;
            match std::fs::File::create_new(&marker) {
                Ok(_) => {
                    let made = Self::create_unless_there(path, command);
                    let _ = std::fs::remove_file(&marker);
                    made?;
                }
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failure(error)),
                Err(_) if begun.elapsed() > MAKING => {
                    let failure =
                        Failure::new("another command with --join has not created the run in time").at(path.display());
                    return Err(failure.hint(format!("if there is none, remove {}", marker.display())));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
        Self::joined(path)
    }

    fn create_unless_there(path: &Path, command: &[OsString]) -> Result<(), Failure> {
        if path.join("run.json").is_file() { Ok(()) } else { Self::create(path, command).map(drop) }
    }

    fn joined(path: &Path) -> Result<Self, Failure> {
        if stepscope_run::is_over(path) {
            return Err(Failure::new("this run has already finished")
                .at(path.display())
                .hint("name another folder with -o"));
        }
        let path =
            std::path::absolute(path).map_err(|error| Failure::file("cannot find the run's folder", path, &error))?;
        Ok(Self { path, made: Vec::new(), is_shared: true })
    }

    /// Its absolute path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Asks all processes of the run to keep what is in their rings: they look for such folders.
    pub(super) fn keep(&self) {
        // Nobody can be told who is not looking at the run itself.
        let _ = std::fs::create_dir_all(self.path.join("kept").join(utc::compact_utc(SystemTime::now()) + "-signal"));
    }

    /// Takes back what [`RunFolder::create`] made: nothing was recorded.
    pub(super) fn discard(&self) {
        if self.is_shared {
            return;
        }
        // What cannot be removed stays: the failure that led here is what a person is told.
        if self.made.contains(&self.path) {
            let _ = std::fs::remove_dir_all(&self.path);
        } else {
            let entries = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
            entries.for_each(|entry| {
                drop(std::fs::remove_file(entry.path()).or_else(|_| std::fs::remove_dir_all(entry.path())))
            });
        }
        self.made.iter().rev().for_each(|folder| drop(std::fs::remove_dir(folder)));
    }
}

fn check_is_free(path: &Path) -> Result<(), Failure> {
    let hint = "name another folder with -o, or remove this one first";
    if stepscope_run::is_run_folder(path) {
        return Err(Failure::new("this folder already holds a run").at(path.display()).hint(hint));
    }
    match std::fs::read_dir(path) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(Failure::new("the run's folder is not empty").at(path.display()).hint(hint)),
        },
        Err(_) if path.exists() && !path.is_dir() => {
            let failure = Failure::new("a run is a folder, but this is a file");
            Err(failure.at(path.display()).hint("name a new folder with -o"))
        }
        Err(error) if path.exists() => Err(Failure::file("cannot read the run's folder", path, &error)),
        Err(_) => Ok(()),
    }
}

/// `stepscope-runs/<time>-<name>`, with a number when that is taken.
pub(super) fn default_path(command: &[OsString], time: &str) -> PathBuf {
    let name = format!("{time}-{}", job_name(command));
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let paths = std::iter::once(name.clone()).chain(numbered).map(|name| Path::new(DEFAULT_PARENT).join(name));
    paths.take(1_000).find(|path| !path.exists()).unwrap_or_else(|| Path::new(DEFAULT_PARENT).join(name))
}

/// What a person calls the job: its Python script, else its Python module, else its program.
fn job_name(command: &[OsString]) -> String {
    let words: Vec<String> = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let stem = |path: &str| Path::new(path).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let script = words.iter().find(|word| word.ends_with(".py")).and_then(|word| stem(word));
    let module_of = |words: &[String]| (words[0] == "-m").then(|| words[1].rsplit('.').next().map(str::to_string))?;
    let module = words.windows(2).find_map(module_of);
    let name = script.or(module).or_else(|| stem(&words[0])).unwrap_or_default();
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || "._-".contains(*c);
    let name: String = name.chars().map(|c| if is_plain(&c) { c } else { '_' }).take(40).collect();
    if name.is_empty() { "job".into() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(command: &str) -> String {
        job_name(&command.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn a_job_is_called_after_its_script_its_module_or_its_program() {
        assert_eq!(name("python -u work/train.py --lr 1"), "train");
        assert_eq!(name("torchrun --nproc-per-node 4 pre train.py"), "train");
        assert_eq!(name("python -m package.train"), "train");
        assert_eq!(name("/usr/bin/python3.11 -c pass"), "python3");
        assert_eq!(name("./it's"), "it_s");
    }

    #[test]
    fn what_was_made_is_taken_back() {
        let parent = tempfile::tempdir().unwrap();
        let run = RunFolder::create(&parent.path().join("runs/a"), &["x".into()]).unwrap();
        assert!(run.path().is_dir());
        run.discard();
        assert!(!parent.path().join("runs").exists());
        let empty = parent.path().join("empty");
        std::fs::create_dir(&empty).unwrap();
        RunFolder::create(&empty, &["x".into()]).unwrap().discard();
        assert_eq!(std::fs::read_dir(&empty).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_in_use_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        std::fs::write(parent.path().join("notes"), "mine").unwrap();
        assert!(RunFolder::create(parent.path(), &["x".into()]).is_err());
        assert!(RunFolder::create(&parent.path().join("notes"), &["x".into()]).is_err());
        assert!(parent.path().join("notes").exists());
    }

    #[test]
    fn many_commands_join_one_run_at_the_same_moment() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("runs/shared");
        let join = || RunFolder::join(&path, &["x".into()]).map(|run| run.path().to_path_buf());
        let joined = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(join)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(joined.iter().all(|run| run.as_ref().is_ok_and(|run| *run == path)));
        let left: Vec<_> = std::fs::read_dir(&path).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(left, ["run.json"]);
        // Nothing of it is taken back: others are in it.
        RunFolder::join(&path, &["y".into()]).unwrap().discard();
        assert!(path.join("run.json").is_file());
    }

    #[test]
    fn a_run_that_is_over_and_a_folder_of_other_things_are_not_joined() {
        let parent = tempfile::tempdir().unwrap();
        std::fs::write(parent.path().join("notes"), "").unwrap();
        assert!(RunFolder::join(parent.path(), &["x".into()]).is_err());
        let over = parent.path().join("over");
        RunFolder::create(&over, &["x".into()]).unwrap();
        std::fs::create_dir_all(over.join("rank=0")).unwrap();
        std::fs::write(over.join("rank=0/part-1-1.parquet"), "").unwrap();
        assert!(RunFolder::join(&over, &["x".into()]).is_err());
    }
}

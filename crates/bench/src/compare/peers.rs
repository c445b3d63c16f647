//! Other programs that read the same traces, each run in a process of its own and measured from outside.

use serde::Deserialize;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A peer, and what it does.
#[derive(Debug)]
pub(crate) struct Peer {
    /// What the table calls it.
    pub(crate) name: &'static str,
    script: &'static str,
    mode: &'static str,
    /// Up to how many times the limit it runs.
    limit_factor: u64,
}

/// What is compared with import.
pub(crate) const READERS: [Peer; 4] = [
    Peer { name: "orjson, parse alone, .json", script: "orjson_parse.py", mode: "load", limit_factor: 10 },
    Peer { name: "Holistic Trace Analysis, .json", script: "holistic.py", mode: "load", limit_factor: 1 },
    Peer { name: "  with its temporal breakdown", script: "holistic.py", mode: "breakdown", limit_factor: 1 },
    Peer { name: "TensorBoard plugin, .json", script: "tensorboard_plugin.py", mode: "load", limit_factor: 1 },
];

/// What is compared with opening a job of several ranks, in a folder. Its search for stragglers fails on the names that
/// NCCL's kernels have now, and is left out.
pub(crate) const RANKS: Peer = Peer {
    name: "8 ranks, Holistic Trace Analysis, without stragglers",
    script: "holistic.py",
    mode: "ranks",
    limit_factor: 1,
};

/// What a peer's process took, without what it takes to start and import its library.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerSpent {
    /// Seconds on the clock.
    pub(crate) wall_s: f64,
    /// Seconds on processors.
    pub(crate) cpu_s: f64,
    /// Added to the peak of resident memory.
    pub(crate) peak_added_bytes: u64,
}

/// Where peers are, and how far they go.
#[derive(Debug)]
pub(crate) struct Peers {
    /// Python that has their packages; none, no peer.
    pub(crate) python: Option<PathBuf>,
    /// Folder with their scripts.
    pub(crate) scripts: PathBuf,
    /// The largest text that they run on.
    pub(crate) limit_bytes: u64,
}

/// What `measure.py` prints.
#[derive(Deserialize)]
pub(crate) struct Process {
    /// Seconds on the clock.
    pub(crate) wall_s: f64,
    /// Seconds on processors.
    pub(crate) cpu_s: f64,
    /// The peak of resident memory.
    pub(crate) peak_bytes: u64,
    failure: Option<String>,
}

impl Peers {
    /// Runs a peer on a file of that much text; an error says why there is no number.
    pub(crate) fn run(&self, peer: &Peer, file: &Path, text_bytes: u64) -> Result<PeerSpent, String> {
        if text_bytes > self.limit_bytes.saturating_mul(peer.limit_factor) {
            return Err("not run: above the limit for it".into());
        }
        self.difference(peer.script, (&["start"], &[peer.mode]), file)
    }

    /// What one call of Holistic Trace Analysis's temporal breakdown takes, loading not counted.
    pub(crate) fn holistic_breakdown(&self, file: &Path, text_bytes: u64) -> Result<PeerSpent, String> {
        const TIMES: u32 = 10;
        if text_bytes > self.limit_bytes {
            return Err("not run: above the limit for it".into());
        }
        let ten = self.difference("holistic.py", (&["load"], &["breakdown", &TIMES.to_string()]), file)?;
        let times = f64::from(TIMES);
        Ok(PeerSpent { wall_s: ten.wall_s / times, cpu_s: ten.cpu_s / times, ..ten })
    }

    /// What a script takes in one mode beyond another; a mode may have further words, after the file.
    fn difference(&self, script: &str, modes: (&[&str], &[&str]), file: &Path) -> Result<PeerSpent, String> {
        let [less, more] = [modes.0, modes.1].map(|mode| self.process(script, mode, file));
        let (less, more) = (less?, more?);
        Ok(PeerSpent {
            wall_s: (more.wall_s - less.wall_s).max(0.0),
            cpu_s: (more.cpu_s - less.cpu_s).max(0.0),
            peak_added_bytes: more.peak_bytes.saturating_sub(less.peak_bytes),
        })
    }

    fn process(&self, script: &str, mode: &[&str], file: &Path) -> Result<Process, String> {
        let words = [mode[0].as_ref(), file.as_os_str()].into_iter().chain(mode[1..].iter().map(OsStr::new));
        self.program(&self.scripts.join(script), &words.collect::<Vec<_>>())
    }

    /// Runs a program, or a script of Python, with these words.
    pub(crate) fn program(&self, program: &Path, words: &[&OsStr]) -> Result<Process, String> {
        let python = self.python.as_ref().ok_or("not run: no Python with its packages")?;
        let mut command = Command::new(python);
        command.arg(self.scripts.join("measure.py")).arg(program).args(words);
        let output = command.output().map_err(|error| format!("cannot run Python: {error}"))?;
        let process: Process = serde_json::from_slice(&output.stdout).map_err(|_| {
            let said = String::from_utf8_lossy(&output.stderr);
            format!("failed: {}", said.trim().lines().last().unwrap_or("no word about why"))
        })?;
        match process.failure {
            Some(failure) => Err(format!("failed: {failure}")),
            None => Ok(process),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_cannot_run_says_why() {
        let peers =
            |python: Option<&str>| Peers { python: python.map(Into::into), scripts: "".into(), limit_bytes: 100 };
        let run = |python, bytes| peers(python).run(&READERS[1], Path::new("a.json"), bytes).map(drop).unwrap_err();
        assert_eq!(run(None, 100), "not run: no Python with its packages");
        assert_eq!(run(None, 101), "not run: above the limit for it");
        assert!(run(Some("/nonexistent/python"), 100).starts_with("cannot run Python"));
    }
}

//! `ranks`: jobs of many ranks. Traces of each are generated, opened twice, and compared with a peer; more and more ranks;
//! and clocks put together in memory.

mod alignment;
mod files;
mod job;
mod opened;

use crate::compare::peers::{self, Peers};
use crate::resources::timed;
use crate::text_table::{TextTable, grouped, megabytes};
use alignment::Aligned;
use files::{Files, RankSize, Wanted};
use opened::{Opened, QUESTIONS};
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What `ranks` is told.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Where traces are generated; each folder is removed once it is measured
    #[arg(long)]
    folder: PathBuf,
    /// Keep the traces
    #[arg(long)]
    keep: bool,
    /// Some parts alone
    #[arg(long, value_delimiter = ',', default_values_t = [Part::Open, Part::Linear, Part::Align])]
    only: Vec<Part>,
    /// Ranks of the job that is opened
    #[arg(long, default_value_t = 8)]
    ranks: usize,
    /// Megabytes of text of each of them
    #[arg(long, default_value_t = 20)]
    mb: u64,
    /// Write gzipped traces
    #[arg(long)]
    gz: bool,
    /// Numbers of ranks that are compared with each other, with small traces
    #[arg(long, value_delimiter = ',', default_value = "8,64,512")]
    linear: Vec<usize>,
    /// Steps of those, of six collectives each
    #[arg(long, default_value_t = 10)]
    steps: u64,
    /// Ranks whose clocks are put together
    #[arg(long, default_value_t = 1_024)]
    align_ranks: usize,
    /// Collectives of each of them
    #[arg(long, default_value_t = 1_000)]
    align_collectives: usize,
    /// The command whose report is measured
    #[arg(long)]
    stepscope: Option<PathBuf>,
    /// Python that has the peer's package; without it the peer does not run
    #[arg(long)]
    python: Option<PathBuf>,
    /// Folder with the peers' scripts
    #[arg(long, default_value = "benches/peers")]
    scripts: PathBuf,
    /// Measure one thing here, not in a child process
    #[arg(long, hide = true)]
    here: bool,
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Part {
    /// A job is opened twice, with all that a person asks of it
    Open,
    /// More and more ranks
    Linear,
    /// Clocks of many ranks in memory
    Align,
}

impl std::fmt::Display for Part {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Open => "open",
            Self::Linear => "linear",
            Self::Align => "align",
        })
    }
}

/// Goals of the largest job, 128 ranks of 100 MB, which hold for smaller ones too.
const OPEN_GOAL: &str = "128 x 100 MB: 30 s, 4 GB";
const AGAIN_GOAL: &str = "1 s";
const MATCHING_GOAL: &str = "200 B";
const ALIGN_GOAL: &str = "1,024 x 10,000: 10 s";

/// Measures and prints.
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    if arguments.here {
        return run_here(arguments);
    }
    for part in [Part::Open, Part::Linear, Part::Align].into_iter().filter(|part| arguments.only.contains(part)) {
        match part {
            Part::Open => open(arguments)?,
            Part::Linear => linear(arguments)?,
            Part::Align => align(arguments)?,
        }
    }
    Ok(())
}

/// Prints, as JSON, what this process measured.
fn run_here(arguments: &Arguments) -> Result<(), String> {
    let json = match arguments.only[0] {
        Part::Align => serde_json::to_string(&alignment::measure(arguments.align_ranks, arguments.align_collectives)),
        Part::Open | Part::Linear => serde_json::to_string(&opened::measure(&arguments.folder)?),
    };
    println!("{}", json.expect("plain data"));
    Ok(())
}

/// What a process of its own measures.
fn child<T: DeserializeOwned>(part: Part, folder: &Path, arguments: &Arguments) -> Result<T, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{part}: {error}");
    let mut child = Command::new(std::env::current_exe().map_err(|error| failed(&error))?);
    child.args(["ranks", "--here", "--only", &part.to_string(), "--folder"]).arg(folder);
    child.args(["--align-ranks", &arguments.align_ranks.to_string()]);
    child.args(["--align-collectives", &arguments.align_collectives.to_string()]);
    let output = child.output().map_err(|error| failed(&error))?;
    if !output.status.success() {
        return Err(failed(&format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim())));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| failed(&error))
}

/// Generated traces, removed when no longer needed.
struct Folder {
    path: PathBuf,
    files: Files,
    is_kept: bool,
}

impl Folder {
    fn written(arguments: &Arguments, name: &str, wanted: &Wanted) -> Result<Self, String> {
        let path = arguments.folder.join(name);
        let failed = |error: std::io::Error| format!("cannot write: {error}: {}", path.display());
        if path.exists() {
            std::fs::remove_dir_all(&path).map_err(failed)?;
        }
        std::fs::create_dir_all(&path).map_err(failed)?;
        let mut folder = Self { path: path.clone(), files: Files::default(), is_kept: arguments.keep };
        let (files, spent) = timed(|| files::write(wanted, &path));
        folder.files = files.map_err(failed)?;
        let (ranks, text) = (grouped(wanted.ranks as u64), megabytes(folder.files.text_bytes));
        let collectives = folder.files.collectives;
        println!("{ranks} ranks, {text} of text, {collectives} collectives each, written in {:.1} s", spent.wall_s);
        Ok(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.is_kept {
            // What is left is the person's to remove; the measurement is not wrong.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// Opens a job twice, and eight of its ranks beside the peer.
fn open(arguments: &Arguments) -> Result<(), String> {
    let size = RankSize::Bytes(arguments.mb * 1_000_000);
    let folder = Folder::written(arguments, "job", &Wanted { ranks: arguments.ranks, size, is_packed: arguments.gz })?;
    let peers = Peers { python: arguments.python.clone(), scripts: arguments.scripts.clone(), limit_bytes: u64::MAX };
    let mut table = TextTable::new(&["", "wall s", "CPU s", "peak", "goal"]);
    if let Some(program) = &arguments.stepscope {
        let report = peers.program(program, &["report".as_ref(), folder.path.as_os_str()]);
        add_process(&mut table, "stepscope report", report.map(|of| (of.wall_s, of.cpu_s, Some(of.peak_bytes))));
    }
    let first: Opened = child(Part::Open, &folder.path, arguments)?;
    let second: Opened = child(Part::Open, &folder.path, arguments)?;
    add_opened(&mut table, "first opening", &first, OPEN_GOAL);
    table.add(cells("  read, one clock", first.open.wall_s, first.open.cpu_s, first.peak_open_bytes, ""));
    for (name, spent) in QUESTIONS.iter().zip(&first.answers) {
        table.add(cells(&format!("  {name}"), spent.wall_s, spent.cpu_s, None, ""));
    }
    add_opened(&mut table, "second opening", &second, AGAIN_GOAL);
    let few = Few::of(&folder, arguments)?;
    beside_peer(&mut table, &few, &peers, arguments)?;
    println!("{}", table.text());
    say_straggler(&first, arguments.ranks);
    Ok(())
}

/// How often ours and the peer run, in turn: of each the quickest counts.
const TURNS: usize = 3;

/// What ours and the peer take for the same ranks.
fn beside_peer(table: &mut TextTable, few: &Few, peers: &Peers, arguments: &Arguments) -> Result<(), String> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        ours.push(child::<Opened>(Part::Open, &few.path, arguments)?);
        let peer = peers.run(&peers::RANKS, &few.path, 0);
        let is_failed = peer.is_err();
        theirs.push(peer.map(|of| (of.wall_s, of.cpu_s, Some(of.peak_added_bytes))));
        if is_failed {
            break;
        }
    }
    let quickest = ours.iter().min_by(|a, b| a.all.cpu_s.total_cmp(&b.all.cpu_s)).expect("a turn");
    add_opened(table, "8 ranks", quickest, "");
    let quickest = theirs.into_iter().reduce(|best, next| match (&best, &next) {
        (Ok(a), Ok(b)) if a.1 <= b.1 => best,
        _ => next,
    });
    add_process(table, peers::RANKS.name, quickest.expect("a turn"));
    Ok(())
}

/// The first ranks of a job in a folder of their own, which is removed.
struct Few {
    path: PathBuf,
}

impl Few {
    fn of(job: &Folder, arguments: &Arguments) -> Result<Self, String> {
        let few = Self { path: arguments.folder.join("few") };
        few.link(&job.path).map_err(|error| format!("cannot link: {error}: {}", few.path.display()))?;
        Ok(few)
    }

    fn link(&self, job: &Path) -> std::io::Result<()> {
        if self.path.exists() {
            std::fs::remove_dir_all(&self.path)?;
        }
        std::fs::create_dir_all(&self.path)?;
        let files = std::fs::read_dir(job)?.map(|file| Ok(file?.path())).collect::<std::io::Result<Vec<_>>>()?;
        // Those of the first host.
        let is_of_first = |name: &&std::ffi::OsStr| name.to_string_lossy().starts_with("node0_");
        for (file, name) in files.iter().filter_map(|file| Some((file, file.file_name().filter(is_of_first)?))) {
            std::fs::hard_link(file, self.path.join(name))?;
        }
        Ok(())
    }
}

impl Drop for Few {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Opens jobs of more and more ranks.
fn linear(arguments: &Arguments) -> Result<(), String> {
    let heading = ["ranks", "MB", "wall s", "CPU s", "peak", "CPU ms a rank", "peak a rank"];
    let mut table = TextTable::new(&heading);
    for &ranks in &arguments.linear {
        let wanted = Wanted { ranks, size: RankSize::Thin(arguments.steps), is_packed: arguments.gz };
        let folder = Folder::written(arguments, "linear", &wanted)?;
        let opened: Opened = child(Part::Linear, &folder.path, arguments)?;
        let a_rank = |value: f64| value / ranks as f64;
        table.add(vec![
            grouped(ranks as u64),
            format!("{:.0}", folder.files.text_bytes as f64 * 1e-6),
            format!("{:.2}", opened.all.wall_s),
            format!("{:.2}", opened.all.cpu_s),
            opened.peak_bytes.map_or("–".into(), megabytes),
            format!("{:.2}", a_rank(opened.all.cpu_s * 1e3)),
            opened.peak_bytes.map_or("–".into(), |bytes| format!("{:.0} kB", a_rank(bytes as f64 * 1e-3))),
        ]);
        say_straggler(&opened, ranks);
        let mut steps: Vec<(&str, f64)> =
            QUESTIONS.iter().copied().zip(opened.answers.iter().map(|of| of.cpu_s)).collect();
        steps.push(("open", opened.open.cpu_s));
        steps.sort_by(|a, b| b.1.total_cmp(&a.1));
        let steps: Vec<String> = steps.iter().map(|(name, cpu_s)| format!("{name} {cpu_s:.2}")).collect();
        println!("  CPU s: {}", steps.join(", "));
    }
    println!("{}", table.text());
    Ok(())
}

/// Puts clocks together in memory.
fn align(arguments: &Arguments) -> Result<(), String> {
    let aligned: Aligned = child(Part::Align, &arguments.folder, arguments)?;
    let (ranks, collectives) = (arguments.align_ranks as u64, arguments.align_collectives as u64);
    println!("{} ranks, {} collectives each, in memory", grouped(ranks), grouped(collectives));
    let mut table = TextTable::new(&["", "wall s", "CPU s", "added", "goal"]);
    table.add(cells("to one clock", aligned.align.wall_s, aligned.align.cpu_s, aligned.align_bytes, ALIGN_GOAL));
    table.add(cells("  matching", aligned.matching.wall_s, aligned.matching.cpu_s, aligned.matching_bytes, ""));
    let each = |bytes: Option<u64>| {
        bytes.map_or("–".into(), |bytes| format!("{:.0} B", bytes as f64 / aligned.parts.max(1) as f64))
    };
    let mut add = |name: &str, value: String, goal: &str| {
        table.add(vec![name.into(), String::new(), String::new(), value, goal.into()]);
    };
    add("bytes a collective and rank, one clock", each(aligned.align_bytes), MATCHING_GOAL);
    add("bytes a collective and rank, matching", each(aligned.matching_bytes), MATCHING_GOAL);
    add("clocks are off by, before", format!("{} ns", grouped(aligned.planted_ns.unsigned_abs())), "");
    add("clocks are off by, after", format!("{} ns", grouped(aligned.error_ns.unsigned_abs())), "");
    println!("{}", table.text());
    Ok(())
}

fn cells(name: &str, wall_s: f64, cpu_s: f64, bytes: Option<u64>, goal: &str) -> Vec<String> {
    let bytes = bytes.map_or(String::new(), megabytes);
    vec![name.into(), format!("{wall_s:.2}"), format!("{cpu_s:.2}"), bytes, goal.into()]
}

fn add_opened(table: &mut TextTable, name: &str, opened: &Opened, goal: &str) {
    table.add(cells(name, opened.all.wall_s, opened.all.cpu_s, opened.peak_bytes, goal));
}

fn add_process(table: &mut TextTable, name: &str, spent: Result<(f64, f64, Option<u64>), String>) {
    table.add(match spent {
        Ok((wall_s, cpu_s, bytes)) => cells(name, wall_s, cpu_s, bytes, ""),
        Err(reason) => vec![name.into(), reason],
    });
}

fn say_straggler(opened: &Opened, ranks: usize) {
    let planted = job::Job::straggler(ranks) as u32;
    let found = opened.straggler.map_or("none".into(), |rank| format!("rank {rank}"));
    println!("  {} slices of {} ranks; slow is rank {planted}, found: {found}", grouped(opened.slices), opened.ranks);
}

//! Opening an input, with a bar on standard error for a person who waits.

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use stepscope_engine::{self as engine, Align, EngineError, Joining, OpenOptions, OpenedRun, Progress, Regex, Trace};

/// How several inputs become one run.
#[derive(Args)]
pub(crate) struct JoinArguments {
    /// How the clocks of ranks are put together: base, as the files state them; collectives, as the collectives show it
    /// that ranks leave together; none, all begin together. auto takes collectives where no clock is stated, or where they
    /// contradict it
    #[arg(long, value_name = "HOW", value_enum, default_value = "auto")]
    align: How,
    /// Add NS to the clock of a rank before clocks are put together, as in 3=-1500000; once for each rank
    #[arg(long = "offset", value_name = "RANK=NS", value_parser = offset, allow_hyphen_values = true)]
    offsets: Vec<(u32, i64)>,
    /// Where a file does not say its rank, the rank is what this regular expression finds in its path: its group called
    /// rank, else its first group
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    rank_from: Option<Regex>,
    /// Take all files for ranks of one job, also those of another time or of another number of ranks
    #[arg(long)]
    join: bool,
}

fn offset(text: &str) -> Result<(u32, i64), String> {
    let parts = text.split_once('=').and_then(|(rank, ns)| Some((rank.parse().ok()?, ns.parse().ok()?)));
    parts.ok_or_else(|| "expected a rank and whole nanoseconds, as in 3=-1500000".to_string())
}

fn pattern(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| error.to_string())
}

#[derive(Clone, Copy, ValueEnum)]
enum How {
    Auto,
    Base,
    Collectives,
    None,
}

/// How much memory a run of many files may take.
#[derive(Args)]
pub(crate) struct MemoryArgument {
    /// How much memory events of a run of many files may take together, as in 8GiB: the ranks looked at last stay, and
    /// what needs more is read rank by rank. Without it, three quarters of what is free
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    memory: Option<u64>,
}

fn bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 8] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
    ];
    let unit = UNITS.iter().find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, *bytes)));
    let (number, bytes) = unit.unwrap_or((text, 1));
    let number = number.trim().parse::<u64>().ok().and_then(|number| number.checked_mul(bytes));
    number.ok_or_else(|| "expected a whole number of bytes, as in 8GiB or 500MB".to_string())
}

impl MemoryArgument {
    /// The bytes that it says.
    pub(crate) fn bytes(&self) -> Option<u64> {
        self.memory
    }

    /// `options` with what it spells.
    pub(crate) fn with(&self, options: OpenOptions) -> OpenOptions {
        OpenOptions { max_memory: self.memory, ..options }
    }
}

impl JoinArguments {
    /// Whether all that is named is one run.
    pub(crate) fn is_one_job(&self) -> bool {
        self.join
    }

    /// What they spell.
    pub(crate) fn options(&self) -> OpenOptions {
        let align = match self.align {
            How::Auto => Align::Auto,
            How::Base => Align::Base,
            How::Collectives => Align::Collectives,
            How::None => Align::None,
        };
        let joining = Joining { rank_from: self.rank_from.clone(), is_one_job: self.join };
        OpenOptions { align, offsets: self.offsets.clone(), joining, ..OpenOptions::default() }
    }
}

/// Nothing is shown of what takes no longer than this.
const PATIENCE: Duration = Duration::from_millis(500);
const REFRESH: Duration = Duration::from_millis(100);

/// Opens what `inputs` name, with all events, as `options` say.
///
/// # Errors
/// As [`engine::open_run`].
pub(crate) fn open_whole(inputs: &[PathBuf], options: &OpenOptions) -> Result<Trace, EngineError> {
    with_bar(|progress| engine::open_run_with_progress(inputs, options, progress))
}

/// Opens what `inputs` name, of several files only as much as has to be known of all, as `options` say.
///
/// # Errors
/// As [`engine::open_run`].
pub(crate) fn open(inputs: &[PathBuf], options: &OpenOptions) -> Result<OpenedRun, EngineError> {
    with_bar(|progress| OpenedRun::open(inputs, options, progress))
}

/// What `open` gives; a bar shows how far it is.
fn with_bar<T>(open: impl FnOnce(&Progress) -> T) -> T {
    let progress = Progress::default();
    if !std::io::stderr().is_terminal() {
        return open(&progress);
    }
    let (done, is_done) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn({
            let progress = progress.clone();
            move || {
                if is_done.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
                let bar = bar(progress.total_bytes());
                while is_done.recv_timeout(REFRESH) == Err(RecvTimeoutError::Timeout) {
                    bar.set_position(progress.done_bytes());
                    if progress.done_bytes() == progress.total_bytes() {
                        bar.set_message("linking");
                    }
                    bar.tick();
                }
                bar.finish_and_clear();
            }
        });
        let opened = open(&progress);
        drop(done);
        opened
    })
}

fn bar(total_bytes: u64) -> ProgressBar {
    let known = "{msg} {wide_bar} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec}";
    let text = if total_bytes == 0 { "{spinner} {msg}" } else { known };
    let style = ProgressStyle::with_template(text).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::with_draw_target(Some(total_bytes), ProgressDrawTarget::stderr()).with_style(style);
    bar.with_message("reading")
}

//! Opening an input, with a bar on standard error for a person who waits.

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use stepscope_engine::{self as engine, Align, EngineError, Progress, Trace};

/// How the clocks of a run are put together.
#[derive(Args, Clone, Copy)]
pub(crate) struct ClockArguments {
    /// How the clocks of ranks are put together: as the files state them, or by the collectives that ranks leave together;
    /// auto takes those where no clock is stated, or where they contradict it
    #[arg(long, value_name = "HOW", value_enum, default_value = "auto")]
    align: How,
}

#[derive(Clone, Copy, ValueEnum)]
enum How {
    Auto,
    Base,
    Collectives,
}

impl ClockArguments {
    /// What it spells.
    pub(crate) fn align(self) -> Align {
        match self.align {
            How::Auto => Align::Auto,
            How::Base => Align::Base,
            How::Collectives => Align::Collectives,
        }
    }
}

/// Nothing is shown of what takes no longer than this.
const PATIENCE: Duration = Duration::from_millis(500);
const REFRESH: Duration = Duration::from_millis(100);

/// Opens what `inputs` name, on clocks as `align` says.
///
/// # Errors
/// As [`engine::open_run`].
pub(crate) fn open(inputs: &[PathBuf], align: Align) -> Result<Trace, EngineError> {
    let progress = Progress::default();
    if !std::io::stderr().is_terminal() {
        return engine::open_run_with_progress(inputs, align, &progress);
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
        let trace = engine::open_run_with_progress(inputs, align, &progress);
        drop(done);
        trace
    })
}

fn bar(total_bytes: u64) -> ProgressBar {
    let known = "{msg} {wide_bar} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec}";
    let text = if total_bytes == 0 { "{spinner} {msg}" } else { known };
    let style = ProgressStyle::with_template(text).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::with_draw_target(Some(total_bytes), ProgressDrawTarget::stderr()).with_style(style);
    bar.with_message("reading")
}

//! Which lines of a stack are the program's own, and none of PyTorch, of Python's modules and of packages that it calls.

use crate::AnalysisContext;
use crate::context::Shared;
use crate::host_lines::{HostTime, samples_of};
use crate::host_threads::{Doing, Threads};
use crate::windows::contains;
use rustc_hash::{FxHashMap, FxHashSet};
use stepscope_base::{IntervalSet, StringId};
use stepscope_trace::{StackSample, Trace, TrackId};

/// Files of code that PyTorch makes: `<eval_with_key>.3`.
const MADE_CODE: &str = "<eval_with_key>";
/// Files of Python's own modules that are part of the interpreter.
const FROZEN: &str = "<frozen ";
/// Where a program begins that is started with `python -m`.
const RUN_AS_MODULE: &str = "<frozen runpy>";
/// A line that runs the loop is in this part of the samples of operators.
const PART_AROUND_LOOP: f64 = 0.9;
/// Fewer samples do not show which one that is.
const LEAST_SAMPLES: usize = 3;

/// What runs the whole loop of a thread: nearly all samples in operators go through it.
#[derive(Default)]
struct AroundLoop {
    /// Lines: `trainer.train()`.
    lines: FxHashSet<StringId>,
    /// Packages, by what their files begin with: `transformers/`.
    packages: FxHashSet<String>,
}

/// What runs the loops, by the thread that runs the steps.
pub(super) struct OwnLines(FxHashMap<TrackId, AroundLoop>);

impl Shared for OwnLines {
    fn compute(context: &AnalysisContext<'_>) -> Self {
        let times: &Vec<HostTime> = context.get();
        let of_thread = |time: &HostTime| {
            let thread = context.get::<Threads>().get(context.trace, time.track);
            // What collects garbage does so in the middle of anything.
            let operators = thread.doing(Doing::Op).intersect(&time.steps);
            (time.track, around_loop(context.trace, time.track, &operators))
        };
        Self(times.iter().map(of_thread).collect())
    }
}

/// What nearly all samples of a thread in operators of the steps go through.
fn around_loop(trace: &Trace, thread: TrackId, operators: &IntervalSet) -> AroundLoop {
    let samples = samples_of(trace, thread).iter().filter(|sample| contains(operators.spans(), sample.time_ns));
    let (mut lines, mut packages) = (FxHashMap::<StringId, usize>::default(), FxHashMap::<&str, usize>::default());
    let mut all = 0;
    for stack in samples.filter_map(|sample| sample.stack) {
        all += 1;
        let frames: FxHashSet<StringId> = trace.stacks.frames(stack).collect();
        let of_stack: FxHashSet<&str> = frames.iter().map(|frame| first_part(trace.strings.get(*frame))).collect();
        frames.into_iter().for_each(|frame| *lines.entry(frame).or_default() += 1);
        of_stack.into_iter().for_each(|package| *packages.entry(package).or_default() += 1);
    }
    let least = (PART_AROUND_LOOP * all as f64).ceil() as usize;
    let is_around = |count: &usize| all >= LEAST_SAMPLES && *count >= least;
    lines.retain(|_, count| is_around(count));
    packages.retain(|_, count| is_around(count));
    AroundLoop { lines: lines.into_keys().collect(), packages: packages.into_keys().map(str::to_string).collect() }
}

impl OwnLines {
    /// A stack of a thread, the outermost frame first, up to its last line that is the program's own.
    pub(super) fn part(&self, trace: &Trace, track: TrackId, stack: Vec<StringId>) -> Vec<StringId> {
        let libraries = &trace.processes[trace.tracks[track.index()].process.index()].library_files;
        own_part(trace, libraries, self.0.get(&track).unwrap_or(&AroundLoop::default()), stack)
    }
}

/// A stack up to its last line that is the program's own. Where that one runs the whole loop, it says nothing: then up to
/// the last line of the package that runs the loop for it, as `transformers/`, if there is one. A program that is a package
/// itself, started with `python -m`, is where Python's own start is left. Where all of a stack is PyTorch's, all of it.
/// `libraries` is what the files of Python itself and of packages begin with, in order.
fn own_part(trace: &Trace, libraries: &[String], around_loop: &AroundLoop, mut stack: Vec<StringId>) -> Vec<StringId> {
    let text = |frame: &StringId| trace.strings.get(*frame);
    let is_pytorchs = |frame: &str| frame.starts_with("torch/") || frame.starts_with(MADE_CODE);
    let is_library =
        |frame: &str| libraries.binary_search_by(|library| library.as_str().cmp(first_part(frame))).is_ok();
    let is_packages = |frame: &str| !is_pytorchs(frame) && !frame.starts_with(FROZEN);
    let is_own = |frame: &str| is_packages(frame) && !is_library(frame);
    // A compiler calls much that is not its own. Compiled code is called from one of its files.
    let compiles = |frame: &StringId| {
        text(frame).starts_with("torch/_dynamo/") && !text(frame).starts_with("torch/_dynamo/eval_frame.py")
    };
    let called = &stack[..stack.iter().position(compiles).unwrap_or(stack.len())];
    let last = |is_such: &dyn Fn(&str) -> bool| called.iter().rposition(|frame| is_such(text(frame)));
    let last_of = |package: &str| last(&|frame| is_packages(frame) && first_part(frame) == package);
    // PyTorch may stand between: `torch.no_grad` does around `generate`.
    let package_from = |from: usize| called[from..].iter().map(text).find(|frame| is_packages(frame)).map(first_part);
    let own = match last(&is_own) {
        Some(at) if around_loop.lines.contains(&called[at]) => {
            let package = package_from(at + 1).filter(|package| around_loop.packages.contains(*package));
            package.and_then(last_of).or(Some(at))
        }
        None if called.first().is_some_and(|frame| text(frame).starts_with(RUN_AS_MODULE)) => {
            package_from(0).and_then(last_of)
        }
        own => own,
    };
    let own = own.or_else(|| last(&|frame| !is_pytorchs(frame)));
    stack.truncate(own.map_or(stack.len(), |at| at + 1));
    stack
}

/// What a file begins with, in front of its line: `json/` or `threading.py`.
fn first_part(frame: &str) -> &str {
    let file = stepscope_trace::Frame::parse(frame).file.unwrap_or(frame);
    file.find('/').map_or(file, |end| &file[..=end])
}

/// The frames of a sample; none where its stack could not be read.
pub(super) fn outermost_first(trace: &Trace, sample: &StackSample) -> Vec<StringId> {
    let mut frames: Vec<StringId> = sample.stack.into_iter().flat_map(|stack| trace.stacks.frames(stack)).collect();
    frames.reverse();
    frames
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Selection;
    use crate::advice::advice;
    use crate::advice::tests::{drawn_ms, drawn_us};
    use stepscope_trace::SliceRole;

    /// The last line of a stack that is taken for the program's own, in a process with these libraries.
    fn last_line(frames: &[&str], libraries: &[&str], around_loop: &[&str]) -> String {
        let mut trace = drawn_us("", 1);
        let stack = frames.iter().map(|frame| trace.strings.intern(frame)).collect();
        let around = AroundLoop {
            lines: around_loop.iter().map(|frame| trace.strings.intern(frame)).collect(),
            packages: around_loop.iter().map(|frame| first_part(frame).to_string()).collect(),
        };
        let libraries: Vec<String> = libraries.iter().map(ToString::to_string).collect();
        let part = own_part(&trace, &libraries, &around, stack);
        trace.strings.get(part[part.len() - 1]).to_string()
    }

    #[test]
    fn what_pytorch_runs_is_not_the_programs_line() {
        let last = |frames: &[&str]| last_line(frames, &[], &[]);
        let main = "main.py(1): main";
        assert_eq!(last(&[main, "torch/optim/sgd.py(3): step"]), main);
        assert_eq!(last(&[main, "torch/_dynamo/a.py(3): b", "dis.py(4): dis"]), main);
        let model = "model.py(4): forward";
        assert_eq!(last(&[main, "torch/_dynamo/eval_frame.py(3): b", model]), model);
        assert_eq!(last(&[main, "torch/nn/a.py(3): b", model]), model);
        assert_eq!(last(&[model, "torch/_dynamo/eval_frame.py(3): b", "<eval_with_key>.3(8): forward"]), model);
        assert_eq!(last(&["torch/optim/sgd.py(3): step"]), "torch/optim/sgd.py(3): step");
    }

    #[test]
    fn what_a_library_runs_is_the_line_that_calls_it() {
        let (main, log) = ("main.py(1): main", "json_log.py(9): log");
        let frames = [main, log, "json/encoder.py(200): encode", "threading.py(3): wait"];
        assert_eq!(last_line(&frames, &["json/", "threading.py", "torch/"], &[]), log);
        assert_eq!(last_line(&frames, &["json/", "torch/"], &[]), "threading.py(3): wait");
        assert_eq!(last_line(&[main, "<frozen posixpath>(3): join"], &[], &[]), main);
        assert_eq!(last_line(&["threading.py(1): run", log, "json/a.py(2): b"], &["json/", "threading.py"], &[]), log);
        assert_eq!(
            last_line(&["threading.py(1): run", "tqdm/a.py(2): b"], &["threading.py", "tqdm/"], &[]),
            "tqdm/a.py(2): b"
        );
    }

    /// The line of what Python does beside operators, of a loop that is in `main.py` and all of whose samples are in `f.py`,
    /// a library's.
    fn line_beside(operators: &str, collections: &str) -> Option<String> {
        let steps = ["0", "1", "2"].map(|step| step.repeat(20)).concat();
        let [ops, collections] = [operators, collections].map(|row| format!("{row:.<20}").repeat(3));
        let samples = "f|".repeat(60);
        let rows = format!("rank 0 step {steps}\nrank 0 cpu 1 {ops}\nrank 0 python 1 {collections}\n");
        let mut trace = drawn_ms(&format!("{rows}rank 0 samples 1 {samples}\n"));
        trace.processes[0].library_files = vec!["f.py".into()];
        let name = trace.strings.intern("g");
        trace.roles.push((name, SliceRole::GarbageCollection));
        let rows = advice(&trace, &Selection::default());
        rows.into_iter().find(|row| row.rule.as_str() == "host.python").and_then(|row| row.line)
    }

    #[test]
    fn what_runs_the_loop_is_what_operators_are_called_through() {
        assert_eq!(line_beside("aaaaaaaa", "").as_deref(), Some("f.py(7): f"), "it calls the operators, too");
        assert_eq!(line_beside("", "..gggggg").as_deref(), Some("main.py(1): main"));
    }

    #[test]
    fn a_line_that_runs_the_loop_is_left_for_the_package_of_the_loop() {
        let (main, libraries) = ("main.py(1): main", ["json/", "torch/", "transformers/"]);
        let (trainer, writer) = ("transformers/trainer.py(3): train", "transformers/state.py(8): save");
        let frames = [main, trainer, writer, "json/encoder.py(200): encode"];
        assert_eq!(last_line(&frames, &libraries, &[]), main);
        assert_eq!(last_line(&frames, &libraries, &[main, trainer]), writer);
        let own = "callbacks.py(4): on_step_end";
        let frames = [main, trainer, own, "json/encoder.py(200): encode"];
        assert_eq!(last_line(&frames, &libraries, &[main, trainer]), own);
    }

    #[test]
    fn pytorch_may_stand_between_the_loop_and_its_package() {
        let (main, libraries) = ("main.py(1): main", ["json/", "torch/", "vlm/"]);
        let (inference, forward) = ("torch/utils/_contextlib.py(3): decorate_context", "vlm/model.py(8): forward");
        let dumps = "json/encoder.py(200): encode";
        let frames = [main, inference, forward, dumps];
        assert_eq!(last_line(&frames, &libraries, &[main, "vlm/model.py(9): forward"]), forward);
        // What is not around the loop does not run it.
        assert_eq!(last_line(&[main, inference, dumps], &libraries, &[main]), main);
        assert_eq!(last_line(&[main, dumps], &libraries, &[main]), main);
    }

    #[test]
    fn a_program_that_is_a_package_is_where_it_is_started() {
        let (run, train) = ("<frozen runpy>(198): _run_module_as_main", "vlm/train.py(5): save");
        let frames = [run, "<frozen runpy>(88): _run_code", train, "json/encoder.py(200): encode"];
        assert_eq!(last_line(&frames, &["json/", "vlm/"], &[]), train);
    }
}

//! Traces as PyTorch's profiler writes them, of any size.
//!
//! Rows, their arguments, their order and every blank are those of Kineto. The layout of the text, the order of sections,
//! flows and the rows of data parallelism follow the real trace `a100_ddp_nccl_rank` (two ranks, NCCL, written in 2024);
//! operators, shapes, Python calls, memory and kernels of the forward pass follow `h100_qwen_stacks_memory`, a decoder on
//! an H100 recorded with shapes, stacks and memory in 2025; arguments with shapes and autograd's numbers are laid out as in
//! `mi250_toy_train`. `generate --describe FILE` prints the shape of any trace, so that both can be laid side by side.
//!
//! A job repeats one step, told once as a [`Script`]: what the threads do, with all text that is the same in every step.
//! Each step gets times of its own, physically possible ones: calls lie inside their callers, device work starts after
//! its launch and in the order of its stream. Since a file has section after section, each over all steps, the steps are
//! run again for each section; memory stays at one step whatever the size.

mod autograd;
mod builder;
mod document;
mod inputs;
mod kernels;
mod memory;
mod random;
mod rows;
mod script;
mod sections;
mod sink;
#[cfg(test)]
mod tests;
mod timeline;
mod workload;

use rows::END;
use script::{Script, Thread};
use sections::{Numbers, Section, StepRows};
use sink::Sink;
use std::io::{self, Write};
use timeline::{START_NS, Timeline};

/// How much to write. Steps are written whole: the result is as near as whole steps allow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Size {
    /// About this many bytes.
    Bytes(u64),
    /// About this many rows of `traceEvents`.
    Events(u64),
}

/// What to write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Layers of the model: how many rows a step has.
    pub(crate) layers: u32,
    /// Every number follows from it.
    pub(crate) seed: u64,
    /// With Python calls.
    pub(crate) has_stacks: bool,
    /// With memory taken and given back.
    pub(crate) has_memory: bool,
}

/// What was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Written {
    /// Bytes of text.
    pub(crate) bytes: u64,
    /// Rows of `traceEvents`.
    pub(crate) events: u64,
    /// Steps of training.
    pub(crate) steps: u64,
}

/// The first step's number, and the first correlation id.
const FIRST_STEP: u64 = 6;
const FIRST_CORRELATION: u64 = 675_771;
const FIRST_SEQUENCE: u64 = 900;
/// The Python calls around all steps, outermost first.
const PYTHON_AROUND: [&str; 4] = [
    "train.py(212): <module>",
    "train.py(187): main",
    "torch/distributed/elastic/multiprocessing/errors/__init__.py(330): wrapper",
    "train.py(93): train_one_epoch",
];

/// Writes a trace of about the wanted size.
pub(crate) fn write(options: Options, size: Size, out: &mut dyn Write) -> io::Result<Written> {
    let job = Job { options, script: workload::step(options.layers) };
    let steps = job.steps_for(size)?;
    let mut sink = Sink::new(out);
    document::write_head(&mut sink, &options);
    let mut end_ns = START_NS;
    for section in job.sections() {
        if section == Section::Python {
            job.write_python_around(&mut sink, steps, end_ns)?;
        }
        end_ns = job.write_steps(&mut sink, section, 0..steps, steps, START_NS)?;
    }
    document::write_tail(&mut sink, end_ns)?;
    let written = Written { bytes: sink.bytes(), events: sink.rows(), steps };
    sink.finish()?;
    Ok(written)
}

/// A job whose steps are written.
struct Job {
    options: Options,
    script: Script,
}

impl Job {
    fn sections(&self) -> impl Iterator<Item = Section> {
        let Options { has_stacks, has_memory, .. } = self.options;
        Section::ALL.into_iter().filter(move |section| match section {
            Section::Memory => has_memory,
            Section::Python => has_stacks,
            _ => true,
        })
    }

    /// Writes one section of these steps out of `count`; when the last one ended.
    fn write_steps(
        &self,
        sink: &mut Sink<'_>,
        section: Section,
        steps: std::ops::Range<u64>,
        count: u64,
        start_ns: i64,
    ) -> io::Result<i64> {
        let mut times = Timeline::new(self.options.seed, start_ns);
        for step in steps {
            times.run(&self.script, step);
            let numbers = self.numbers(section, step, count);
            StepRows { sink, script: &self.script, times: &times, numbers }.write(section)?;
        }
        Ok(times.now_ns())
    }

    fn numbers(&self, section: Section, step: u64, count: u64) -> Numbers {
        let script = &self.script;
        let before = self.sections().take_while(|other| *other != section);
        let rows_before: u64 = before.map(|other| other.numbered_rows(script) * count).sum();
        let around = if section == Section::Python { PYTHON_AROUND.len() as u64 } else { 0 };
        Numbers {
            step: FIRST_STEP + step,
            external: 1 + step * script.externals(),
            sequence: FIRST_SEQUENCE + step * u64::from(script.sequences),
            arrow: 1 + step * u64::from(script.arrows),
            correlation: FIRST_CORRELATION + step * u64::from(script.correlations + 12),
            python: 1 + PYTHON_AROUND.len() as u64 + step * script.python.len() as u64,
            python_around: PYTHON_AROUND.len() as u64,
            index: rows_before + around + step * section.numbered_rows(script),
        }
    }

    /// The calls that last from before the first step to after the last.
    fn write_python_around(&self, sink: &mut Sink<'_>, steps: u64, end_ns: i64) -> io::Result<()> {
        let first = self.numbers(Section::Python, 0, steps).index - PYTHON_AROUND.len() as u64;
        for (place, name) in PYTHON_AROUND.iter().enumerate() {
            let inward_ns = 1_733 * place as i64;
            sink.text(&rows::head("python_function", name));
            sink.text(rows::on_thread(Thread::Main));
            sink.microseconds(START_NS - 30_000 + inward_ns);
            sink.text(", \"dur\": ");
            sink.microseconds(end_ns - START_NS + 60_000 - 2 * inward_ns);
            let parent = if place == 0 { "null".into() } else { place.to_string() };
            let (id, index) = (place + 1, first + place as u64);
            sink.text(&format!(
                ",\n    \"args\": {{\n      \"Python parent id\": {parent}, \"Python id\": {id}, \"Ev Idx\": {index}{END}"
            ));
            sink.end_row()?;
        }
        Ok(())
    }

    /// How many steps come nearest to the size.
    fn steps_for(&self, size: Size) -> io::Result<u64> {
        let mut steps: u64 = 1;
        // What a step takes grows with its numbers: measured in the middle, again when that has moved.
        for _ in 0..4 {
            let (bytes, events) = self.size_of_step(steps / 2, steps)?;
            let (wanted, of_step) = match size {
                Size::Bytes(wanted) => (wanted, bytes),
                Size::Events(wanted) => (wanted, events),
            };
            steps = ((wanted + of_step / 2) / of_step).max(1);
        }
        Ok(steps)
    }

    /// Bytes and rows of one step out of `count`.
    fn size_of_step(&self, step: u64, count: u64) -> io::Result<(u64, u64)> {
        let mut nowhere = io::sink();
        let mut sink = Sink::new(&mut nowhere);
        for section in self.sections() {
            self.write_steps(&mut sink, section, step..step + 1, count, START_NS)?;
        }
        Ok((sink.bytes(), sink.rows()))
    }
}

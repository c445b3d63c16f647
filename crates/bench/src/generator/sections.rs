//! The rows of one step, section by section, in the order in which Kineto writes sections.

mod device_rows;

use super::rows::{self, AUTOGRAD_TID, END, FlowEnd, PID};
use super::script::{OpRow, PythonRow, Script, Thread};
use super::sink::Sink;
use super::timeline::Timeline;
use std::io;

/// One kind of rows; each section has those of all steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Section {
    /// Operators of the backward pass's thread.
    Autograd,
    /// Operators and labels of the main thread.
    Main,
    /// Memory taken and given back.
    Memory,
    /// Python calls.
    Python,
    /// Runtime calls, and the device work of each before it.
    Device,
    /// Labels projected onto streams.
    Projections,
}

impl Section {
    /// In the order of the file.
    pub(super) const ALL: [Self; 6] =
        [Self::Autograd, Self::Main, Self::Memory, Self::Python, Self::Device, Self::Projections];

    /// Rows that count as `Ev Idx` in one step.
    pub(super) fn numbered_rows(self, script: &Script) -> u64 {
        let count = match self {
            Self::Autograd => script.autograd.len(),
            Self::Main => script.main.len(),
            Self::Memory => script.memory.len(),
            Self::Python => script.python.len(),
            Self::Device | Self::Projections => 0,
        };
        count as u64
    }
}

/// The first numbers of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    /// The step's own.
    pub(super) step: u64,
    pub(super) external: u64,
    pub(super) sequence: u64,
    pub(super) arrow: u64,
    pub(super) correlation: u64,
    pub(super) python: u64,
    /// The innermost Python call around all steps.
    pub(super) python_around: u64,
    /// Of the section that is written.
    pub(super) index: u64,
}

/// Writes the rows that one section has of one step.
pub(super) struct StepRows<'a, 'b> {
    pub(super) sink: &'a mut Sink<'b>,
    pub(super) script: &'a Script,
    pub(super) times: &'a Timeline,
    pub(super) numbers: Numbers,
}

impl StepRows<'_, '_> {
    /// Writes them.
    pub(super) fn write(mut self, section: Section) -> io::Result<()> {
        let script = self.script;
        let mut rows = 0..;
        match section {
            Section::Autograd => script.autograd.iter().try_for_each(|row| self.op(row, Thread::Autograd, &mut rows)),
            Section::Main => script.main.iter().try_for_each(|row| self.op(row, Thread::Main, &mut rows)),
            Section::Memory => self.memory(),
            Section::Python => script.python.iter().try_for_each(|row| self.python(row, &mut rows)),
            Section::Device => {
                self.overhead()?;
                script.calls.iter().try_for_each(|row| self.call(row))
            }
            Section::Projections => script
                .projections
                .iter()
                .zip(&self.times.projections)
                .try_for_each(|(row, (first, last))| self.projection(row, *first, *last)),
        }
    }

    fn op(&mut self, row: &OpRow, thread: Thread, rows: &mut impl Iterator<Item = u64>) -> io::Result<()> {
        let (begin, _) = self.host_row(&row.head, row.is_numbered, thread, row.slice);
        self.text_and_number(
            ",\n    \"args\": {\n      \"External id\": ",
            self.numbers.external + u64::from(row.external),
        );
        self.sink.text(",");
        let sequence = row.sequence.map(|(number, thread)| (self.numbers.sequence + u64::from(number), thread));
        let has_arguments = !row.arguments.is_empty();
        if !has_arguments {
            self.sink.text("\"Record function id\": 0, ");
        }
        if let Some((number, thread)) = sequence {
            self.text_and_number("\"Sequence number\": ", number);
            self.text_and_number(", \"Fwd thread id\": ", u64::from(thread));
            self.sink.text(", ");
        }
        if has_arguments {
            self.sink.text("\"Record function id\": 0, ");
            self.sink.text(&row.arguments);
        }
        self.end_with_index(rows)?;
        let Some(arrow) = row.arrow else { return Ok(()) };
        // Counted from the first of the backward pass.
        let id = self.numbers.arrow + u64::from(self.script.arrows - 1 - arrow);
        self.flow(thread == Thread::Main, "fwdbwd", id, (PID, tid(thread)), begin)
    }

    fn python(&mut self, row: &PythonRow, rows: &mut impl Iterator<Item = u64>) -> io::Result<()> {
        self.host_row(&row.head, false, Thread::Main, row.slice);
        let parent = row.parent.map_or(self.numbers.python_around, |parent| self.numbers.python + u64::from(parent));
        let place = rows.next().expect("numbers do not end");
        self.text_and_number(",\n    \"args\": {\n      \"Python parent id\": ", parent);
        self.text_and_number(", \"Python id\": ", self.numbers.python + place);
        if let Some(module) = row.module {
            self.text_and_number(", \"Python module id\": ", u64::from(module));
        }
        self.sink.text(", ");
        self.end_with_index(&mut std::iter::once(place))
    }

    fn memory(&mut self) -> io::Result<()> {
        for (place, (row, ns)) in self.script.memory.iter().zip(&self.times.memory).enumerate() {
            self.sink.text(
                "\n  {\n    \"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"s\": \"t\", \"name\": \"[memory]\",",
            );
            self.text_and_number("\n    \"pid\": ", u64::from(PID));
            self.text_and_number(", \"tid\": ", u64::from(tid(row.thread)));
            self.sink.text(",\n    \"ts\": ");
            self.sink.microseconds(*ns);
            self.sink.text(",\n    \"args\": {\n      ");
            self.sink.text(&row.arguments);
            self.end_with_index(&mut std::iter::once(place as u64))?;
        }
        Ok(())
    }

    /// A row of a slice up to its arguments; begin and end of the slice.
    fn host_row(&mut self, head: &str, is_numbered: bool, thread: Thread, slice: u32) -> (i64, i64) {
        let (begin, end) = self.times.slices[slice as usize];
        self.sink.text(head);
        if is_numbered {
            self.sink.number(self.numbers.step);
        }
        self.sink.text(rows::on_thread(thread));
        self.times(begin, end);
        (begin, end)
    }

    fn times(&mut self, begin: i64, end: i64) {
        self.sink.microseconds(begin);
        self.sink.text(", \"dur\": ");
        self.sink.microseconds(end - begin);
    }

    fn end_with_index(&mut self, rows: &mut impl Iterator<Item = u64>) -> io::Result<()> {
        let place = rows.next().expect("numbers do not end");
        self.text_and_number("\"Ev Idx\": ", self.numbers.index + place);
        self.sink.text(END);
        self.sink.end_row()
    }

    fn flow(&mut self, is_start: bool, category: &'static str, id: u64, at: (u32, u32), ns: i64) -> io::Result<()> {
        rows::flow(self.sink, FlowEnd { is_start, category, id, pid: at.0, tid: at.1, ns })
    }

    fn text_and_number(&mut self, text: &str, number: u64) {
        self.sink.text(text);
        self.sink.number(number);
    }
}

fn tid(thread: Thread) -> u32 {
    match thread {
        Thread::Main => PID,
        Thread::Autograd => AUTOGRAD_TID,
    }
}

//! Rows of the device: runtime calls with the work that they enqueue, synchronisation, labels projected onto streams.

use super::super::rows::{self, END, PID};
use super::super::script::{CallRow, Projection, Sync};
use super::{StepRows, tid};
use std::io;

impl StepRows<'_, '_> {
    /// The profiler's own time at the begin of a step.
    pub(super) fn overhead(&mut self) -> io::Result<()> {
        self.sink.text("\n  {\n    \"ph\": \"X\", \"cat\": \"overhead\", \"name\": \"Activity Buffer Request\", \"pid\": -1, \"tid\": 0,\n    \"ts\": ");
        let (begin, _) = self.times.slices[0];
        self.sink.microseconds(begin + 400);
        self.sink.text(", \"dur\": 1.187\n  },");
        self.sink.end_row()
    }

    pub(super) fn call(&mut self, row: &CallRow) -> io::Result<()> {
        let id = self.numbers.correlation + u64::from(row.correlation);
        if let Some(work) = row.work {
            self.work(work as usize, row.external, id)?;
        }
        let (begin, end) = self.host_row(&row.head, false, row.thread, row.slice);
        self.sink.text(",\n    \"args\": {\n      ");
        self.external(row.external);
        self.text_and_number("      \"cbid\": ", u64::from(row.cbid));
        self.text_and_number(", \"correlation\": ", id);
        self.sink.text(END);
        self.sink.end_row()?;
        self.flow(row.can_launch, "ac2g", id, (PID, tid(row.thread)), begin)?;
        if let Some(sync) = row.sync {
            self.sync(row, sync, (begin, end))?;
        }
        Ok(())
    }

    fn work(&mut self, place: usize, external: Option<u32>, id: u64) -> io::Result<()> {
        let (work, (start, end)) = (&self.script.works[place], self.times.works[place]);
        self.sink.text(&work.head);
        self.times(start, end);
        self.sink.text(",\n    \"args\": {\n      ");
        self.external(external);
        self.text_and_number(&work.place, id);
        self.sink.text(&work.arguments);
        if let Some(bytes) = work.bytes {
            self.text_and_number(",      \"bytes\": ", bytes);
            self.sink.text(&format!(", \"memory bandwidth (GB/s)\": {}", bytes as f64 / (end - start) as f64));
        }
        self.sink.text(END);
        self.sink.end_row()?;
        self.flow(false, "ac2g", id, (0, work.stream.number()), start)
    }

    /// What the device's profiler reports of a call that synchronises.
    fn sync(&mut self, row: &CallRow, sync: Sync, (begin, end): (i64, i64)) -> io::Result<()> {
        let id = self.numbers.correlation + u64::from(row.correlation);
        let (kind, stream, event) = match sync {
            Sync::Stream(stream) => ("Stream Sync", stream.number(), String::new()),
            Sync::Event(stream, other, record) => {
                let (other, record) = (other.number(), self.numbers.correlation + u64::from(record));
                let event = format!(
                    "      \"wait_on_stream\": {other},      \"wait_on_cuda_event_record_corr_id\": {record},      \"wait_on_cuda_event_id\": 9,"
                );
                ("Stream Wait Event", stream.number(), event)
            }
        };
        self.sink.text(&rows::head("cuda_sync", kind));
        self.sink.text(&format!("\", \"pid\": 0, \"tid\": {stream},\n    \"ts\": "));
        self.times(begin, end);
        self.sink.text(",\n    \"args\": {\n      ");
        self.external(row.external);
        self.sink.text(&format!(
            "      \"cuda_sync_kind\": \"{kind}\",{event}      \"stream\": {stream}, \"correlation\": {id},      \"device\": 0, \"context\": 1{END}"
        ));
        self.sink.end_row()?;
        self.flow(false, "ac2g", id, (0, stream), begin)
    }

    pub(super) fn projection(&mut self, row: &Projection, first: i64, last: i64) -> io::Result<()> {
        self.sink.text(&row.head);
        if row.is_numbered {
            self.sink.number(self.numbers.step);
        }
        self.sink.text(&rows::on_stream(row.stream));
        self.times(first - 1, last + 1);
        let external = self.numbers.external + u64::from(row.external);
        self.text_and_number(",\n    \"args\": {\n      \"External id\": ", external);
        self.sink.text(END);
        self.sink.end_row()
    }

    /// `"External id": 12,`, or blanks where there is none.
    fn external(&mut self, external: Option<u32>) {
        if let Some(external) = external {
            self.text_and_number("\"External id\": ", self.numbers.external + u64::from(external));
            self.sink.text(",");
        }
    }
}

//! Sampled quantities: those of DFTracer's service, and what was added up while recording.

use super::numbers;
use super::row::{Args, Row};
use super::text;
use rustc_hash::FxHashMap;
use stepscope_base::StringId;
use stepscope_trace::{Counter, IoAction, ProcessId, TraceBuilder};

#[derive(Clone, Copy, Debug)]
struct Sample {
    process: ProcessId,
    name: StringId,
    time_ns: i64,
    value: f64,
}

/// All samples so far.
#[derive(Debug, Default)]
pub(super) struct Samples {
    samples: Vec<Sample>,
    /// Sums over the threads of a process: of the same moment they are added up.
    sums: Vec<Sample>,
    names: FxHashMap<Vec<u8>, StringId>,
}

impl Samples {
    /// Adds a sample of each of a row's numbers; false when it has none.
    pub(super) fn add(&mut self, row: &Row<'_>, process: ProcessId, time_ns: i64, builder: &mut TraceBuilder) -> bool {
        let mut has_numbers = false;
        row.args.for_each(|key, written| {
            if let Some(value) = numbers::fraction(written).filter(|_| key != b"hhash") {
                has_numbers = true;
                let name = self.name(row, key, builder);
                self.samples.push(Sample { process, name, time_ns, value });
            }
        });
        has_numbers
    }

    /// Adds what a row sums up: how many calls, their time, and for reads and writes their bytes.
    pub(super) fn add_sums(
        &mut self,
        row: &Row<'_>,
        action: Option<IoAction>,
        (process, time_ns, unit_ns): (ProcessId, i64, i64),
        builder: &mut TraceBuilder,
    ) {
        let moves_bytes = action.is_some_and(IoAction::moves_bytes);
        let number = |keys: [&str; 2]| first_number(&row.args, keys);
        let sums = [
            ("calls", number(["dft_cnt", ""])),
            ("dur_ns", number(["dur_sum", "dur"]).map(|units| units * unit_ns as f64)),
            ("bytes", number(["ret_sum", "ret"]).filter(|_| moves_bytes)),
        ];
        for (what, value) in sums {
            let Some(value) = value else { continue };
            let name = self.name(row, what.as_bytes(), builder);
            self.sums.push(Sample { process, name, time_ns, value });
        }
    }

    /// Gives the builder one counter for each process and name, in the order in which they appeared.
    pub(super) fn finish(mut self, builder: &mut TraceBuilder) {
        self.sums.sort_by_key(|sample| (sample.process, sample.name, sample.time_ns));
        self.sums.dedup_by(|next, kept| {
            let is_same = (next.process, next.name, next.time_ns) == (kept.process, kept.name, kept.time_ns);
            kept.value += if is_same { next.value } else { 0.0 };
            is_same
        });
        self.samples.append(&mut self.sums);
        self.samples.sort_by_key(|sample| (sample.process, sample.name, sample.time_ns));
        for samples in self.samples.chunk_by(|a, b| (a.process, a.name) == (b.process, b.name)) {
            builder.add_counter(Counter {
                name: samples[0].name,
                process: samples[0].process,
                device: None,
                time_ns: samples.iter().map(|sample| sample.time_ns).collect(),
                value: samples.iter().map(|sample| sample.value).collect(),
            });
        }
    }

    /// `io vda bytes_read`: category, name and quantity. Names are padded in some rows (`net-    lo`).
    fn name(&mut self, row: &Row<'_>, quantity: &[u8], builder: &mut TraceBuilder) -> StringId {
        let key = [row.category, row.name, quantity].join(&b' ');
        if let Some(name) = self.names.get(&key) {
            return *name;
        }
        let part = |written: &[u8]| text::decode(written).text.split_whitespace().collect::<String>();
        let name = format!("{} {} {}", part(row.category), part(row.name), part(quantity));
        let name = builder.strings.intern(name.trim());
        self.names.insert(key, name);
        name
    }
}

/// The number of the first of `keys` that has one.
fn first_number(args: &Args<'_>, keys: [&str; 2]) -> Option<f64> {
    let mut found: Option<(usize, f64)> = None;
    args.for_each(|key, written| {
        let Some(at) = keys.iter().position(|wanted| wanted.as_bytes() == key) else { return };
        if let Some(value) = numbers::fraction(written).filter(|_| found.is_none_or(|(known, _)| at < known)) {
            found = Some((at, value));
        }
    });
    found.map(|(_, value)| value)
}

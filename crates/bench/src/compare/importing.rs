//! From a file to what can be asked questions: ours, packed and not, the gzip library alone, and the peers.

use super::inputs::Input;
use super::peers::{PeerSpent, Peers, READERS};
use crate::import::{Measured, measure};
use crate::inflate;
use crate::text_table::{TextTable, grouped, megabytes};
use std::path::Path;

/// Measures all inputs and prints one table.
pub(super) fn compare(inputs: &[Input], folder: &Path, peers: &Peers, repeat: u32) -> Result<(), String> {
    let heading = ["", "wall s", "CPU s", "MB/CPU-s", "events/CPU-s", "CPU to ours", "peak added", "peak to text"];
    let mut table = TextTable::new(&heading);
    for input in inputs {
        let (plain, packed) = (input.plain(folder), input.packed(folder));
        let ours = measure(&plain, repeat)?;
        let mut rows = Rows::new(&mut table, input, &ours);
        rows.add("Stepscope, .json", spent_of(&ours));
        rows.add("Stepscope, .json.gz", spent_of(&measure(&packed, repeat)?));
        let (_, spent) = inflate::measure(&packed, repeat)?;
        rows.add("gzip library alone, .json.gz", Ok((spent.wall_s, spent.cpu_s, None)));
        for peer in &READERS {
            let spent = peers.run(peer, &plain, ours.text_bytes);
            let cells = |spent: PeerSpent| (spent.wall_s, spent.cpu_s, Some(spent.peak_added_bytes));
            rows.add(peer.name, spent.map(cells));
        }
    }
    println!("{}", table.text());
    Ok(())
}

fn spent_of(measured: &Measured) -> Result<Cells, String> {
    let opened = &measured.opened;
    Ok((opened.spent.wall_s, opened.spent.cpu_s, opened.peak_added_bytes))
}

/// Wall seconds, CPU seconds, memory added.
type Cells = (f64, f64, Option<u64>);

/// The rows of one input.
struct Rows<'a> {
    table: &'a mut TextTable,
    text_bytes: u64,
    events: u64,
    our_cpu_s: f64,
}

impl<'a> Rows<'a> {
    fn new(table: &'a mut TextTable, input: &Input, ours: &Measured) -> Self {
        let (text_bytes, events) = (ours.text_bytes, ours.events);
        table.add(vec![format!("{}: {}, {} events", input.name(), megabytes(text_bytes), grouped(events))]);
        Self { table, text_bytes, events, our_cpu_s: ours.opened.spent.cpu_s }
    }

    fn add(&mut self, name: &str, cells: Result<Cells, String>) {
        let (wall_s, cpu_s, peak_bytes) = match cells {
            Ok(cells) => cells,
            Err(reason) => return self.table.add(vec![format!("  {name}"), reason]),
        };
        let (text_bytes, events) = (self.text_bytes as f64, self.events as f64);
        self.table.add(vec![
            format!("  {name}"),
            format!("{wall_s:.3}"),
            format!("{cpu_s:.3}"),
            format!("{:.0}", text_bytes * 1e-6 / cpu_s),
            grouped((events / cpu_s) as u64),
            format!("{:.2}x", cpu_s / self.our_cpu_s),
            peak_bytes.map_or("–".into(), megabytes),
            peak_bytes.map_or("–".into(), |bytes| format!("{:.2}x", bytes as f64 / text_bytes)),
        ]);
    }
}

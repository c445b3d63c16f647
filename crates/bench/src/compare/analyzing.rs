//! The questions: each analysis on a trace that is open, and the peer's that is most like one of ours.

use super::inputs::Input;
use super::peers::Peers;
use crate::{analyze, trace_text};
use std::path::Path;

/// Measures one input and prints its table.
pub(super) fn compare(input: &Input, folder: &Path, peers: &Peers, repeat: u32) -> Result<(), String> {
    let file = input.plain(folder);
    let analyzed = analyze::measure(&file, repeat)?;
    print!("{}", analyze::text(&analyzed));
    let text = trace_text::size_of(&file).map_err(|error| format!("{error}: {}", file.display()))?;
    let ours = analyzed.analyses.iter().find(|row| row.name == "temporal_breakdown").map(|row| row.spent.cpu_s);
    let peer = "Holistic Trace Analysis, get_temporal_breakdown";
    match peers.holistic_breakdown(&file, text.bytes) {
        Ok(spent) => {
            let ratio = ours.map_or_else(String::new, |ours| format!(", {:.0}x ours", spent.cpu_s / ours));
            println!("{peer}: {:.1} ms wall, {:.1} ms CPU{ratio}\n", spent.wall_s * 1e3, spent.cpu_s * 1e3);
        }
        Err(reason) => println!("{peer}: {reason}\n"),
    }
    Ok(())
}

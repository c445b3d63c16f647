//! An event as its source wrote it: what no column keeps can still be read there.

use crate::ImportError;
use crate::input::{self, Input, SharedText};
use crate::json::scanner::{Scanner, Stop};
use crate::progress::Progress;
use crate::window::{Blocks, MAX_ITEM_BYTES, Window};
use std::path::Path;
use stepscope_trace::{SliceId, Trace};

/// The text of the event that `slice` was read from; `None` when the trace does not come from a text, or the text is no
/// longer what it was. A compressed source is decompressed up to that place.
///
/// # Errors
/// When the source cannot be read any more.
pub fn source_text(trace: &Trace, slice: SliceId) -> Result<Option<String>, ImportError> {
    let place = trace.slices.source_place.get(slice.index()).copied().filter(|place| *place != u64::MAX);
    let Some((place, source)) = place.zip(trace.sources.first()) else { return Ok(None) };
    if source == "-" {
        return Ok(None);
    }
    let path = Path::new(source);
    let Input { blocks, shared, .. } = input::open(path, &Progress::default())?;
    let window = match shared {
        Some(SharedText::File(file)) => Window::new(Box::new(file.from(place)) as Box<dyn Blocks>, place),
        _ => {
            let mut window = Window::new(blocks, 0);
            while window.base() + window.bytes().len() as u64 <= place && window.slide(window.bytes().len()) {}
            let ahead = place.saturating_sub(window.base()) as usize;
            window.slide(ahead.min(window.bytes().len()));
            window
        }
    };
    Ok(event_at(window))
}

/// The object at the begin of the window.
fn event_at(mut window: Window<Box<dyn Blocks>>) -> Option<String> {
    loop {
        let mut scanner = Scanner::new(window.bytes());
        let result = scanner.skip_value();
        let len = scanner.at();
        match result {
            Ok(_) => {
                let text = &window.bytes()[..len];
                return text.starts_with(b"{").then(|| String::from_utf8_lossy(text).into_owned());
            }
            Err(Stop::End) if window.bytes().len() < MAX_ITEM_BYTES => {
                if !window.grow() {
                    return None;
                }
            }
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    #[test]
    fn every_slice_leads_back_to_its_event() {
        let folder = tempfile::tempdir().expect("a folder");
        let events: Vec<String> = (0..200)
            .map(|at| {
                format!(
                    "{{\"ph\": \"X\", \"name\": \"op{at}\", \"ts\": {}, \"dur\": 1, \"args\": {{\"Ev Idx\": {at}}}}}",
                    500 - at
                )
            })
            .collect();
        let text = format!("{{\"schemaVersion\": 1, \"traceEvents\": [\n{}\n]}}", events.join(",\n"));
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(text.as_bytes()).expect("packed");
        for (name, bytes) in [("t.json", text.into_bytes()), ("t.json.gz", packed.finish().expect("packed"))] {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).expect("written");
            let trace = crate::open(&path).expect("a trace");
            for slice in trace.slices.ids().step_by(17) {
                let number: usize = trace.slice_name(slice)[2..].parse().expect("a number");
                assert_eq!(source_text(&trace, slice).expect("readable").as_deref(), Some(events[number].as_str()));
            }
            std::fs::write(&path, "[]").expect("written");
            assert!(matches!(source_text(&trace, SliceId(5)), Ok(None) | Err(_)), "the source is another one now");
        }
    }
}

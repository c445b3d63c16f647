//! Where devices' time goes, as text: one line a device.

use super::section::heading;
use crate::bar::{Segment, stacked_bar, swatch};
use crate::color::{COMMUNICATION, COMPUTE, COPY, DIM, IDLE};
use crate::plural::plural;
use anstyle::Style;
use std::fmt::Write;
use stepscope_base::units::{format_count, format_ns, format_ratio};
use stepscope_engine::report::DeviceTime;

/// How a class is shown: (class, words, glyph, colour).
const CLASSES: [(&str, &str, char, Style); 4] = [
    ("compute", "compute", '█', COMPUTE),
    ("exposed_comm", "comm", '▓', COMMUNICATION),
    ("exposed_copy", "copy", '▒', COPY),
    ("idle", "idle", '·', IDLE),
];
/// Lines for at most this many devices.
const SHOWN: usize = 16;
/// Width of one share: `100.0 %`, and a gap.
const SHARE_WIDTH: usize = 9;

/// The narrowest bar that is worth drawing.
const BAR_MIN_WIDTH: usize = 10;

/// A number beside the shares: (name, width, value).
type Extra = (&'static str, usize, fn(&DeviceTime) -> String);
const EXTRAS: [Extra; 3] = [
    ("window", 10, |device| format_ns(device.breakdown.total_ns)),
    ("overlap", 9, |device| device.overlap_ratio.map_or("–".to_string(), format_ratio)),
    ("events", 10, |device| format_count(device.device_events)),
];

/// A section with a bar and the shares of each device; empty without device events.
pub(super) fn devices_text(devices: &[DeviceTime], ranks: &[u32], width: usize) -> String {
    if devices.is_empty() {
        return String::new();
    }
    let title = |device: &DeviceTime| match ranks {
        [_] => format!("GPU {}", device.device),
        _ => format!("rank {} GPU {}", device.rank, device.device),
    };
    let shown = &devices[..devices.len().min(SHOWN)];
    let title_width = shown.iter().map(|device| title(device).len()).max().unwrap_or(0);
    // What stands behind the bar gives way to it on narrow terminals.
    let shares_width = SHARE_WIDTH * CLASSES.len();
    let room = width.saturating_sub(2 + title_width + 2 + shares_width);
    let fits = |count: &usize| EXTRAS[..*count].iter().map(|extra| extra.1).sum::<usize>() + BAR_MIN_WIDTH <= room;
    let extras = &EXTRAS[..(0..=EXTRAS.len()).rev().find(fits).unwrap_or(0)];
    let bar_width = room.saturating_sub(extras.iter().map(|extra| extra.1).sum()).max(1);
    let note = "window: first to last device event; comm, copy: what compute does not hide";
    let mut text = heading("Device time", note, width);
    let _ = writeln!(text, "{}", column_names(2 + title_width + 2 + bar_width, extras));
    for device in shown {
        let name = title(device);
        let _ = writeln!(text, "  {name:title_width$}  {}", bar_and_numbers(device, bar_width, extras));
    }
    if devices.len() > SHOWN {
        let _ = writeln!(text, "  {DIM}… and {}{DIM:#}", plural((devices.len() - SHOWN) as u64, "more device"));
    }
    text
}

fn bar_and_numbers(device: &DeviceTime, bar_width: usize, extras: &[Extra]) -> String {
    let ratio = |class| device.breakdown.ratio_of(class);
    let segments = CLASSES.map(|(class, _, glyph, style)| Segment { ratio: ratio(class), glyph, style });
    let shares = CLASSES.map(|(class, ..)| format!("{:>SHARE_WIDTH$}", format_ratio(ratio(class))));
    let extras: String = extras.iter().map(|(_, width, value)| format!("{:>width$}", value(device))).collect();
    stacked_bar(&segments, bar_width) + &shares.concat() + &extras
}

/// The names of the numbers, each class with its swatch, right-aligned above them.
fn column_names(indent: usize, extras: &[Extra]) -> String {
    let class = |(_, words, glyph, style): &(&str, &str, char, Style)| {
        let blanks = " ".repeat(SHARE_WIDTH - words.len() - 2);
        let segment = Segment { ratio: 0.0, glyph: *glyph, style: *style };
        format!("{blanks}{} {DIM}{words}{DIM:#}", swatch(&segment))
    };
    let classes: String = CLASSES.iter().map(class).collect();
    let extras: String = extras.iter().map(|(words, width, _)| format!("{words:>width$}")).collect();
    format!("{:indent$}{classes}{DIM}{extras}{DIM:#}", "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_engine::report::report;
    use stepscope_engine::{OpenedRun, Selection};
    use stepscope_trace::drawn::drawn;

    #[test]
    fn a_line_a_device_that_fits_any_terminal() {
        let trace = drawn("rank 0 stream 7 CCCC..NN\nrank 12 stream 7 HHCC....C");
        let report = report(&OpenedRun::of(trace), &Selection::default(), "RUN").unwrap();
        for width in 60..=100 {
            let text = devices_text(&report.devices, &report.run.ranks, width);
            let text = anstream::adapter::strip_str(&text).to_string();
            assert_eq!(text.lines().count(), 4);
            assert!(text.lines().all(|line| stepscope_engine::width_of(line) <= width), "{width}:\n{text}");
        }
        let text = devices_text(&report.devices, &report.run.ranks, 70);
        let text = anstream::adapter::strip_str(&text).to_string();
        let last = text.lines().last().unwrap();
        assert!(
            last.starts_with("  rank 12 GPU 0  ") && last.ends_with("   33.3 %    0.0 %   22.2 %   44.4 %"),
            "{text}"
        );
    }
}

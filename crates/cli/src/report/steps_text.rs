//! How long steps take and where their time goes, as text.

use super::section::heading;
use crate::bar::{Segment, columns, stacked_bar, swatch};
use crate::color::{COMMUNICATION, COMPUTE, COPY, IDLE, INPUT, OPERATOR, RUNTIME};
use anstyle::Style;
use std::fmt::Write;
use stepscope_base::units::{format_count, format_ns, format_ratio};
use stepscope_engine::report::{Part, Report, StepSummary, class_words};
use stepscope_engine::width_of;

/// How a class of the breakdown is shown: (class, glyph, colour).
const CLASSES: [(&str, char, Style); 9] = [
    ("kernel", '█', COMPUTE),
    ("comm", '▓', COMMUNICATION),
    ("memcpy", '▒', COPY),
    ("memset", '░', COPY),
    ("runtime", '▚', RUNTIME),
    ("dataloader", '▞', INPUT),
    ("io", '▙', INPUT),
    ("cpu", '▄', OPERATOR),
    ("other", '·', IDLE),
];

/// The bar of an average step with its legend.
pub(super) fn breakdown_text(report: &Report, width: usize) -> String {
    let (Some(breakdown), Some(steps)) = (&report.step_breakdown, &report.steps) else { return String::new() };
    let of = match (steps.source, steps.averaged_count()) {
        ("whole", _) => "the whole recording".to_string(),
        (_, 1) => format!("step {}", steps.slowest.step),
        (_, count) => format!("mean of {} steps", format_count(count as i64)),
    };
    let total = format_ns(breakdown.total_ns);
    let mut text = heading("Where the time goes", &format!("{of}, {total}"), width);
    let parts: Vec<_> = breakdown.parts.iter().filter(|part| part.ns > 0).collect();
    let segments: Vec<Segment> = parts.iter().map(|part| segment(part)).collect();
    let _ = writeln!(text, "  {}", stacked_bar(&segments, width - 2));
    let words = |class: &'static str| match class {
        "other" if report.operators.count == 0 => "not recorded",
        class => class_words(class),
    };
    let word_width = parts.iter().map(|part| width_of(words(part.class))).max().unwrap_or(0);
    for (part, segment) in parts.iter().zip(&segments) {
        let (words, time, share) = (words(part.class), format_ns(part.ns), format_ratio(part.ratio));
        let _ = writeln!(text, "  {} {words:word_width$}  {time:>8}  {share:>7}", swatch(segment));
    }
    text
}

fn segment(part: &Part) -> Segment {
    // A class that is not known here looks like what was not recorded.
    let known = CLASSES.into_iter().find(|known| known.0 == part.class);
    let (_, glyph, style) = known.unwrap_or((part.class, '·', IDLE));
    Segment { ratio: part.ratio, glyph, style }
}

/// The line about all steps: how many, from how long to how long, which is the slowest.
pub(super) fn steps_text(report: &Report, width: usize) -> String {
    let Some(steps) = report.steps.as_ref().filter(|steps| steps.source != "whole" && steps.count > 1) else {
        return String::new();
    };
    let mut text = heading("Steps", &remark(steps), width);
    let line = format!(
        "mean {}   min {}   max {} ({})",
        format_ns(steps.mean_ns),
        format_ns(steps.min_ns),
        format_ns(steps.max_ns),
        which(steps, report.run.ranks.len() > 1),
    );
    let room = width.saturating_sub(2 + width_of(&line) + 3);
    // What was cut may be longer than any step: the first one most often holds all that came before it.
    let times: Vec<i64> = steps.steps.iter().map(|step| step.total_ns.min(steps.max_ns)).collect();
    let _ = writeln!(text, "  {line}   {OPERATOR}{}{OPERATOR:#}", columns(&times, room.min(48)));
    text
}

fn remark(steps: &StepSummary) -> String {
    let count = format_count(steps.count as i64);
    let how = match steps.source {
        "optimizer" => "from one optimizer step to the next",
        "kernels" => "inferred: the same kernels repeat",
        _ => "labelled by the job",
    };
    let cut = match steps.incomplete_count {
        0 => String::new(),
        cut if cut == steps.count => ", all cut at an end of the recording".to_string(),
        cut => format!(", {cut} cut at an end and left out"),
    };
    format!("{count}, {how}{cut}")
}

fn which(steps: &StepSummary, has_ranks: bool) -> String {
    let slowest = &steps.slowest;
    if has_ranks { format!("step {} of rank {}", slowest.step, slowest.rank) } else { format!("step {}", slowest.step) }
}

//! Bars as SVG. Widths are whole thousandths of the bar, rounded down, so that parts never overlap.

use super::escape::Escaped;
use std::fmt::Write;
use stepscope_base::units::{format_ns, format_ratio};
use stepscope_engine::report::{Breakdown, StepSummary, class_words};

/// A bar's width in units of its drawing.
const WIDTH: f64 = 1_000.0;
/// Steps drawn one by one; when there are more, a column stands for several and shows the longest.
const MAX_COLUMNS: usize = 200;

/// A bar of the parts, with a legend of those that have any time.
pub(super) fn breakdown_bar(breakdown: &Breakdown) -> String {
    let mut text = format!(
        "<svg class=\"bar\" viewBox=\"0 0 {WIDTH} 24\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">\n",
        Escaped(&format_ns(breakdown.total_ns))
    );
    let parts: Vec<_> = breakdown.parts.iter().filter(|part| part.ns > 0).collect();
    let mut x = 0.0;
    for part in &parts {
        let width = part.ratio * WIDTH;
        let words = class_words(part.class);
        let _ = writeln!(
            text,
            "<rect class=\"{}\" x=\"{x:.1}\" y=\"0\" width=\"{width:.1}\" height=\"24\"><title>{}: {}</title></rect>",
            part.class,
            Escaped(words),
            format_ns(part.ns)
        );
        x += width;
    }
    text.push_str("</svg>\n<ul class=\"legend\">\n");
    for part in parts {
        let (words, time, share) = (Escaped(class_words(part.class)), format_ns(part.ns), format_ratio(part.ratio));
        let _ = writeln!(text, "<li><i class=\"{}\"></i>{words} <b>{time}</b> {share}</li>", part.class);
    }
    text + "</ul>\n"
}

/// A column a step, its height relative to the longest; nothing when steps are not marked.
pub(super) fn steps_chart(steps: Option<&StepSummary>) -> String {
    let Some(steps) = steps.filter(|steps| steps.source != "whole" && steps.count > 1) else { return String::new() };
    let a_column = steps.steps.len().div_ceil(MAX_COLUMNS).max(1);
    let columns = steps.steps.len().div_ceil(a_column);
    let longest = steps.steps.iter().map(|step| step.total_ns).max().unwrap_or(0).max(1);
    let width = WIDTH / columns as f64;
    let inferred = if matches!(steps.source, "optimizer" | "kernels") { " inferred" } else { "" };
    let mut text = format!(
        "<p class=\"note\">{}{inferred} steps, mean {}, from {} to {}</p>\n\
         <svg class=\"columns\" viewBox=\"0 0 {WIDTH} 100\" preserveAspectRatio=\"none\" role=\"img\">\n",
        steps.count,
        format_ns(steps.mean_ns),
        format_ns(steps.min_ns),
        format_ns(steps.max_ns)
    );
    for (column, steps) in steps.steps.chunks(a_column).enumerate() {
        let Some(step) = steps.iter().max_by_key(|step| step.total_ns) else { continue };
        let height = (step.total_ns as f64 / longest as f64 * 100.0).max(1.0);
        let class = if step.is_complete { "step" } else { "step cut" };
        let (x, y, shown) = (column as f64 * width, 100.0 - height, width * 0.9);
        let _ = writeln!(
            text,
            "<rect class=\"{class}\" x=\"{x:.2}\" y=\"{y:.2}\" width=\"{shown:.2}\" height=\"{height:.2}\">\
             <title>step {} of rank {}: {}</title></rect>",
            step.step,
            step.rank,
            format_ns(step.total_ns)
        );
    }
    text + "</svg>\n"
}

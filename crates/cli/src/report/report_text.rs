//! The whole report as text.

use super::advice_text::advice_text;
use super::devices_text::devices_text;
use super::findings_text::findings_text;
use super::section::heading;
use super::steps_text::{breakdown_text, steps_text};
use super::top_text::top_text;
use crate::color::{DIM, HEADING, HINT};
use crate::line_wrap::wrap;
use crate::plural::plural;
use std::fmt::Write;
use stepscope_engine::report::{ProcessRow, Report};
use stepscope_engine::{fit_width, width_of};

/// `report` in lines of at most `width` columns; sections without content are left out.
pub(super) fn report_text(report: &Report, input: &str, width: usize) -> String {
    let name = fit_width(&report.run.name, width - "stepscope report  ".len());
    let mut text = format!("{DIM}stepscope report{DIM:#}  {HEADING}{name}{HEADING:#}\n");
    for line in joined(items(report), width) {
        let _ = writeln!(text, "{DIM}{line}{DIM:#}");
    }
    for line in report.joined.iter().flat_map(|joined| wrap(&joined.says, width)) {
        let _ = writeln!(text, "{DIM}{line}{DIM:#}");
    }
    text.push('\n');
    for sentence in &report.verdict {
        wrap(sentence, width - 2).iter().for_each(|line| text.push_str(&format!("  {line}\n")));
    }
    let sections = [
        advice_text(&report.advice, &report.coverage, &advice_command(report, input), width),
        breakdown_text(report, width),
        steps_text(report, width),
        devices_text(&report.devices, &report.run.ranks, width),
        top_text("Top operators", "operator", &report.operators, width),
        top_text("Top kernels", "kernel", &report.kernels, width),
        findings_text(&report.findings, width),
        next_text(report, width),
    ];
    for section in sections.iter().filter(|section| !section.is_empty()) {
        let _ = write!(text, "\n{section}");
    }
    text
}

fn advice_command(report: &Report, input: &str) -> String {
    let ranks = report.asked_ranks().map(|ranks| format!(" --rank {ranks}")).unwrap_or_default();
    let step = report.step.map(|step| format!(" --step {step}")).unwrap_or_default();
    format!("stepscope analyze advice {input}{ranks}{step}")
}

/// `items` in lines of at most `width` columns; no item is broken.
fn joined(items: Vec<String>, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for item in items {
        let item = fit_width(&item, width);
        match lines.last_mut() {
            Some(line) if width_of(line) + 3 + width_of(&item) <= width => line.push_str(&format!(" · {item}")),
            _ => lines.push(item),
        }
    }
    lines
}

/// What the report is about: the part asked for, the processes, what they ran on.
fn items(report: &Report) -> Vec<String> {
    let mut items = Vec::new();
    match (report.asked_ranks(), report.run.ranks.as_slice()) {
        (Some(rank), _) if report.rank.is_some() => items.push(format!("rank {rank}")),
        (Some(ranks), _) => items.push(format!("ranks {ranks}")),
        (None, [0] | []) => {}
        (None, [rank]) => items.push(format!("rank {rank}")),
        (None, ranks) => items.push(format!("{} ranks", ranks.len())),
    }
    items.extend(report.step.map(|step| format!("step {step}")));
    items.extend(processes(&report.processes));
    items.extend(report.environment.iter().map(|item| format!("{} {}", item.name, fit_width(&item.value, 60))));
    items
}

/// `2 processes: train.py (pid 41), 1 worker`; the names of at most two.
fn processes(processes: &[ProcessRow]) -> Option<String> {
    const NAMED: usize = 2;
    let (helpers, main): (Vec<_>, Vec<_>) = processes.iter().partition(|process| process.is_helper);
    let named = main.iter().filter(|process| !process.name.is_empty()).take(NAMED);
    let mut words: Vec<String> = named.map(|process| process_name(process)).collect();
    if main.len() > NAMED && !words.is_empty() {
        words.push(format!("{} more", main.len() - words.len()));
    }
    if !helpers.is_empty() {
        words.push(plural(helpers.len() as u64, "worker"));
    }
    let count = plural(processes.len() as u64, "process");
    let words = if words.is_empty() { String::new() } else { format!(": {}", words.join(", ")) };
    (!processes.is_empty()).then(|| count + &words)
}

fn process_name(process: &ProcessRow) -> String {
    let name = fit_width(&process.name, 40);
    process.pid.map_or(name.clone(), |pid| format!("{name} (pid {pid})"))
}

fn next_text(report: &Report, width: usize) -> String {
    if report.next.is_empty() {
        return String::new();
    }
    let command_width = report.next.iter().map(|next| width_of(&next.command)).max().unwrap_or(0).min(width - 2);
    let is_short = report.next.iter().any(|next| next.command.contains(" RUN"));
    let note = if is_short { "RUN: what you named" } else { "" };
    let mut text = heading("Next", note, width);
    for next in &report.next {
        let command = fit_width(&next.command, command_width);
        let blanks = " ".repeat(command_width - width_of(&command));
        let shows = fit_width(&next.shows, width.saturating_sub(command_width + 4));
        let _ = writeln!(text, "  {HINT}{command}{HINT:#}{blanks}  {DIM}{shows}{DIM:#}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_engine::{OpenedRun, Selection, report};
    use stepscope_trace::drawn::drawn;

    fn text_of(drawing: &str, width: usize) -> String {
        let report = report::report(&OpenedRun::of(drawn(drawing)), &Selection::default(), "runs/a").unwrap();
        anstream::adapter::strip_str(&report_text(&report, "runs/a", width)).to_string()
    }

    const WITH_GPU: &str = "
        rank 0 step      0000000000|1111111
        rank 0 cpu 1     aaaaaaaa...bbbbbb.
        rank 0 input 1   .........ii.......
        rank 0 launch 1  C..H........N.....
        rank 0 stream 7  .CCCCHH....K.NNNN.";

    #[test]
    fn every_line_fits_any_terminal() {
        for width in 60..=100 {
            let text = text_of(WITH_GPU, width);
            assert!(text.lines().all(|line| width_of(line) <= width), "{width}:\n{text}");
        }
    }

    #[test]
    fn advice_stands_behind_the_verdict_and_fits_any_terminal() {
        // What happens once is no habit.
        let row = |cells: &str| cells.chars().map(|cell| cell.to_string().repeat(125)).collect::<String>().repeat(8);
        let drawing = format!("rank 0 step {}\nrank 0 stream 7 {}", row("00000000"), row("CCCC..NN"));
        let text = text_of(&drawing, 80);
        let at = |title: &str| text.find(title).unwrap_or_else(|| panic!("{title:?} is not in\n{text}"));
        assert!(
            at("GPU 0 was idle") < at("\nAdvice  most to gain first") && at("\nAdvice") < at("\nWhere the time goes")
        );
        assert!(at("up to 2.00 ms, 25.0 %  comm.overlap") < at("stepscope analyze advice runs/a"), "{text}");
        for width in 60..=120 {
            let text = text_of(&drawing, width);
            assert!(text.lines().all(|line| width_of(line) <= width), "{width}:\n{text}");
        }
    }

    #[test]
    fn sections_without_content_are_left_out() {
        let sections = |drawing| {
            let text = text_of(drawing, 100);
            let titles = [
                "Advice",
                "Where the time goes",
                "Steps",
                "Device time",
                "Top operators",
                "Top kernels",
                "Findings",
                "Next",
            ];
            let is_there = |title: &&str| text.lines().any(|line| line.starts_with(*title));
            titles.into_iter().filter(is_there).collect::<Vec<_>>()
        };
        let all = ["Where the time goes", "Steps", "Device time", "Top operators", "Top kernels", "Findings", "Next"];
        assert_eq!(sections(WITH_GPU), all);
        assert_eq!(
            sections("rank 0 step 0011\nrank 0 cpu 1 aabb"),
            ["Where the time goes", "Steps", "Top operators", "Next"]
        );
        let device_alone = ["Where the time goes", "Device time", "Top kernels", "Findings", "Next"];
        assert_eq!(sections("rank 0 stream 7 CC..NN"), device_alone);
        assert_eq!(text_of("", 100), "stepscope report  drawn\n\n  Nothing was recorded: the trace holds no events.\n");
    }
}

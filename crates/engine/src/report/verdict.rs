//! What stands out, in sentences.

use super::coverage::WORTH_A_CHANGE;
use super::{AdviceRow, Breakdown, DeviceTime, RanksTogether, Report};
use std::collections::BTreeSet;
use stepscope_analyses::advice::TOO_FEW_SAMPLES;
use stepscope_base::units::{format_count, format_ns, format_ratio};
use stepscope_trace::FindingCode;

/// Shares below this are not worth a word.
const WORTH_SAYING: f64 = 0.01;
/// Words for at most this many shares in one sentence.
const SHARES_SAID: usize = 3;

pub(super) fn verdict(report: &Report) -> Vec<String> {
    if report.span_ns.is_none() {
        return vec!["Nothing was recorded: the trace holds no events.".into()];
    }
    let mut sentences: Vec<String> = answer(report).into_iter().collect();
    sentences.extend(few_steps(report).filter(|_| !sentences.is_empty()));
    if report.findings.iter().any(|finding| finding.code == FindingCode::ProcessRunning.code()) {
        sentences.push("The job is still being recorded: this is what it did so far.".into());
    }
    sentences.extend(report.ranks_together.iter().flat_map(RanksTogether::sentences));
    sentences.extend(device_sentence(&report.devices));
    sentences.extend(step_sentence(report));
    let unnamed = report.coverage.leaves_unnamed(report.step_breakdown.as_ref());
    // Where a device works, the host may be ahead of it, but for what holds steps up.
    if let Some(lacks) = unnamed.filter(|lacks| report.devices.is_empty() || *lacks == TOO_FEW_SAMPLES) {
        sentences.push(format!("Nothing names what runs outside of operators, with {}.", lacks.replace('`', "")));
    }
    sentences.extend(top_sentence(report));
    if let Some(ratio) = report.coverage.device_ns_linked_ratio.filter(|ratio| *ratio < 1.0 - WORTH_SAYING) {
        let missing = format_ratio(1.0 - ratio);
        sentences
            .push(format!("{missing} of the device time has no launch record, so no operator is charged with it."));
    }
    let severe = report.findings.iter().filter(|finding| finding.severity == "severe").count();
    if severe > 0 {
        let (are, numbers) = if severe == 1 { ("finding says", "that") } else { ("findings say", "that") };
        sentences.push(format!("{severe} {are} {numbers} data is missing: see the end of this report."));
    }
    sentences
}

/// What to mend first, or that nothing is worth it. A job that hangs has no such thing: that it hangs comes first.
fn answer(report: &Report) -> Option<String> {
    if report.ranks_together.as_ref().is_some_and(|ranks| !ranks.hangs.is_empty()) {
        return None;
    }
    let is_worth = |row: &&AdviceRow| row.gain_ratio.is_some_and(|ratio| ratio >= WORTH_A_CHANGE);
    // Of some faults nobody knows what they cost.
    let is_unknown = |row: &&AdviceRow| row.gain_ns.is_none() && row.priority != "low";
    let first = report.advice.iter().find(is_worth).or_else(|| report.advice.iter().find(is_unknown));
    first.map(|row| row.answer(report.run.ranks.len() > 1)).or_else(|| report.healthy.clone())
}

/// That what was seen in one step or two may be chance.
fn few_steps(report: &Report) -> Option<String> {
    let steps = report.steps.as_ref().filter(|steps| steps.source != "whole" && report.step.is_none())?;
    let whole: BTreeSet<i64> = steps.steps.iter().filter(|step| step.is_complete).map(|step| step.step).collect();
    let were = match whole.len() {
        1 => "Only one step was",
        2 => "Only two steps were",
        _ => return None,
    };
    Some(format!("{were} recorded whole: what happens there may be chance. Record ten or more."))
}

fn device_sentence(devices: &[DeviceTime]) -> Option<String> {
    let [device] = devices else { return several_devices_sentence(devices) };
    let breakdown = &device.breakdown;
    let idle = format_ratio(breakdown.ratio_of("idle"));
    let window = format_ns(breakdown.total_ns);
    let words = [("compute", "computing"), ("exposed_comm", "exposed communication"), ("exposed_copy", "copies")];
    let busy = shares(breakdown, &words, "");
    if breakdown.ns_of("idle") == 0 && breakdown.total_ns > 0 {
        let busy = if busy.is_empty() { String::new() } else { format!(": {busy}") };
        return Some(format!("GPU {} was never idle in {window}{busy}.", device.device));
    }
    let busy = if busy.is_empty() { String::new() } else { format!("; the rest is {busy}") };
    Some(format!("GPU {} was idle for {idle} of {window}{busy}.", device.device))
}

fn several_devices_sentence(devices: &[DeviceTime]) -> Option<String> {
    let total_ns: i64 = devices.iter().map(|device| device.breakdown.total_ns).sum();
    let sum = |class| (class, devices.iter().map(|device| device.breakdown.ns_of(class)).sum::<i64>());
    let together = Breakdown::new(total_ns, ["compute", "exposed_comm", "exposed_copy", "idle"].map(sum));
    let idlest = devices.iter().max_by(|a, b| idle(a).total_cmp(&idle(b)))?;
    let (all, most) = (format_ratio(together.ratio_of("idle")), format_ratio(idle(idlest)));
    let whose = format!("GPU {} of rank {}", idlest.device, idlest.rank);
    Some(format!("{} GPUs were idle for {all} of their time together, {whose} the most with {most}.", devices.len()))
}

fn idle(device: &DeviceTime) -> f64 {
    device.breakdown.ratio_of("idle")
}

fn step_sentence(report: &Report) -> Option<String> {
    let (steps, breakdown) = (report.steps.as_ref()?, report.step_breakdown.as_ref()?);
    let other = if report.operators.count > 0 { "code outside of operators" } else { "what was not recorded" };
    let words = [
        ("kernel", "kernels"),
        ("comm", "exposed communication"),
        ("memcpy", "copies"),
        ("memset", "memsets"),
        ("runtime", "device API calls"),
        ("dataloader", "waiting for data"),
        ("io", "reading and writing files"),
        ("cpu", "operators on the CPU"),
        ("other", other),
    ];
    let said = shares(breakdown, &words, "to ");
    let total = format_ns(breakdown.total_ns);
    let time = match (steps.source, steps.averaged_count()) {
        ("whole", _) => format!("No steps are marked in the {total} that were recorded"),
        (_, 1) => format!("Step {} takes {total}", steps.slowest.step),
        ("kernels", count) => {
            format!("A step, by the kernels that repeat, takes {total} (mean of {})", format_count(count as i64))
        }
        (_, count) => format!("A step takes {total} (mean of {})", format_count(count as i64)),
    };
    let goes = said.replacen(" to ", " goes to ", 1);
    Some(if said.is_empty() { format!("{time}.") } else { format!("{time}: {goes}.") })
}

/// The top kernel when devices are what is busy, else the top operator.
fn top_sentence(report: &Report) -> Option<String> {
    let is_host_bound = report.operators.by == "host_self_ns" && report.operators.total_ns > 0;
    let (what, top, of) = match report.kernels.first().filter(|_| !is_host_bound) {
        Some(kernel) => ("kernel", kernel, "all kernel time"),
        None if report.devices.is_empty() => ("operator", report.operators.first()?, "all operator time"),
        None => ("operator", report.operators.first()?, "the time in operators on the host"),
    };
    let (name, ratio) = top;
    let name = crate::fit_name(name, 48);
    Some(format!("The top {what} is {name} with {} of {of}.", format_ratio(ratio)))
}

/// The largest shares in words, `to` before each: `71.0 % to operators on the CPU and 8.1 % to waiting for data`.
fn shares(breakdown: &Breakdown, words: &[(&str, &str)], to: &str) -> String {
    let share = |(class, word): &(&str, &str)| (breakdown.ratio_of(class), word.to_string());
    let mut shares: Vec<(f64, String)> = words.iter().map(share).filter(|(ratio, _)| *ratio >= WORTH_SAYING).collect();
    shares.sort_by(|a, b| b.0.total_cmp(&a.0));
    let said = shares.into_iter().take(SHARES_SAID).map(|(ratio, word)| format!("{} {to}{word}", format_ratio(ratio)));
    match said.collect::<Vec<_>>().as_slice() {
        [before @ .., last] if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        said => said.concat(),
    }
}

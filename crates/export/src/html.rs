//! A report as one HTML page that opens offline: no script, no request, light and dark as the reader's system is. Text
//! of the trace is escaped; bars are SVG inside the page.

mod bars;
mod escape;
mod tables;

use bars::breakdown_bar;
use escape::Escaped;
use std::fmt::Write;
use stepscope_base::units::{format_count, format_ns};
use stepscope_engine::report::{AdviceRow, Report, ReportCoverage, Top};
use stepscope_engine::{AllResults, EngineError, Envelope, FindingRow};
use tables::table_html;

const STYLE: &str = include_str!("html/page.css");
/// Analyses whose whole results stand open on the page, in this order, when the catalogue has them.
const OPEN: [(&str, &str); 1] = [("idle_causes", "Why devices idle")];

/// The page of a report. `all` are the analyses of the same part of the run, whose tables stand at its end.
pub fn report_html(report: &Report, all: &AllResults) -> String {
    let mut page = String::with_capacity(1 << 16);
    let name = Escaped(&report.run.name);
    let _ = write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{name}</title>\n<style>\n{STYLE}</style>\n</head>\n\
         <body>\n<main>\n<header>\n<h1>{name}</h1>\n{}</header>\n",
        summary_items(report)
    );
    section(&mut page, "", &verdict(report));
    section(&mut page, "Advice", &advice(&report.advice, &report.coverage, &all.results));
    for (analysis, title) in OPEN {
        let result = all.results.iter().find(|result| result.analysis == analysis && !result.results.is_empty());
        result.into_iter().for_each(|result| section(&mut page, title, &table_html(&result.results)));
    }
    if let Some(breakdown) = &report.step_breakdown {
        section(&mut page, "Where the time goes", &breakdown_bar(breakdown));
    }
    section(&mut page, "Steps", &bars::steps_chart(report.steps.as_ref()));
    section(&mut page, "Device time", &devices(report));
    section(&mut page, "Top operators", &top(&report.operators));
    section(&mut page, "Top kernels", &top(&report.kernels));
    section(&mut page, "Findings", &findings(&report.findings));
    section(&mut page, "All numbers", &all_tables(&all.results));
    section(&mut page, "Not on this page", &left_out(&all.left_out));
    let version = env!("CARGO_PKG_VERSION");
    let _ = write!(page, "<footer>stepscope {version}</footer>\n</main>\n</body>\n</html>\n");
    page
}

/// A section; without content there is none.
fn section(page: &mut String, title: &str, content: &str) {
    if content.is_empty() {
        return;
    }
    let heading = if title.is_empty() { String::new() } else { format!("<h2>{title}</h2>\n") };
    let _ = write!(page, "<section>\n{heading}{content}</section>\n");
}

fn summary_items(report: &Report) -> String {
    let mut summary_items: Vec<(&str, String)> = Vec::new();
    summary_items.extend(report.rank.map(|rank| ("rank", rank.to_string())));
    summary_items.extend(report.ranks.as_ref().map(|ranks| ("ranks", ranks.clone())));
    summary_items.extend(
        (report.asked_ranks().is_none() && report.run.ranks.len() > 1)
            .then(|| ("ranks", report.run.ranks.len().to_string())),
    );
    summary_items.extend(report.step.map(|step| ("step", step.to_string())));
    summary_items.extend(report.span_ns.map(|ns| ("recorded", format_ns(ns))));
    summary_items.extend((report.processes.len() > 1).then(|| ("processes", report.processes.len().to_string())));
    summary_items.extend(report.environment.iter().map(|item| (item.name, item.value.clone())));
    summary_items.extend(report.joined.as_ref().map(|joined| ("joined", joined.says.clone())));
    let item = |(name, value): &(&str, String)| format!("<li><span>{}</span> {}</li>\n", Escaped(name), Escaped(value));
    format!("<ul class=\"facts\">\n{}</ul>\n", summary_items.iter().map(item).collect::<String>())
}

fn verdict(report: &Report) -> String {
    report.verdict.iter().map(|sentence| format!("<p class=\"verdict\">{}</p>\n", Escaped(sentence))).collect()
}

/// The advice. `results` are those on the page: each row leads to the one that has its numbers.
fn advice(advice: &[AdviceRow], coverage: &ReportCoverage, results: &[Envelope]) -> String {
    if advice.is_empty() {
        return String::new();
    }
    let not_judged = coverage.sentence().map_or_else(String::new, |sentence| with_code(&sentence));
    let item = |row: &AdviceRow| {
        let others = match row.others {
            0 => String::new(),
            1 => ", and once elsewhere".into(),
            others => format!(", and {others} times elsewhere"),
        };
        let (priority, rule, gain) = (Escaped(row.priority), Escaped(row.rule), Escaped(&row.gain_says));
        let (fault, disproof) = (Escaped(row.fault), with_code(row.disproof));
        let (says, to_do) = (with_code(&row.says), with_code(row.to_do));
        let method = row.gain_method.map_or(String::new(), |method| format!("Gain by {}.<br>\n", Escaped(method)));
        let line = |line: &str| Escaped(line).to_string();
        let lines = row.diff.map(|diff| diff.lines().map(line).collect::<Vec<_>>().join("\n"));
        let is_on_page = results.iter().any(|result| result.analysis == row.evidence);
        let evidence = if is_on_page { numbers_link(row.evidence) } else { String::new() };
        let diff = lines.map_or("<br>\n".into(), |lines| format!("</small>\n<pre>{lines}</pre>\n<small>"));
        format!(
            "<li class=\"{priority}\"><b>{fault}</b>: {gain} <code>{rule}</code>{others}<br>\n{says}<br>\n\
             <small>{to_do}{diff}{method}It is not so if: {disproof}{evidence}</small></li>\n"
        )
    };
    let items: String = advice.iter().map(item).collect();
    format!("<p class=\"note\">Gains overlap: do not add them. {not_judged}</p>\n<ul class=\"advice\">\n{items}</ul>\n")
}

/// A link to a result in *All numbers*. Its target lies within what is folded, so that a browser opens it.
fn numbers_link(analysis: &str) -> String {
    format!("<br>\n<a href=\"#{0}\">The numbers: <code>{0}</code></a>", Escaped(analysis))
}

/// Sentences, in which what stands between backquotes is code.
fn with_code(text: &str) -> String {
    let part = |(at, part): (usize, &str)| {
        if at % 2 == 1 { format!("<code>{}</code>", Escaped(part)) } else { Escaped(part).to_string() }
    };
    text.split('`').enumerate().map(part).collect()
}

fn devices(report: &Report) -> String {
    let device = |device: &stepscope_engine::report::DeviceTime| {
        let name = device.name.as_deref().unwrap_or_default();
        let title = format!("GPU {} of rank {}", device.device, device.rank);
        let events = format_count(device.device_events);
        let bar = breakdown_bar(&device.breakdown);
        format!("<h3>{title} <small>{} · {events} device events</small></h3>\n{bar}", Escaped(name))
    };
    report.devices.iter().map(device).collect()
}

fn top(top: &Top) -> String {
    if top.table.is_empty() {
        return String::new();
    }
    let (shown, count) = (top.table.len(), format_count(top.count as i64));
    format!("<p class=\"note\">{shown} of {count}, by {}</p>\n{}", top.by, table_html(&top.table))
}

fn findings(findings: &[FindingRow]) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let item = |finding: &FindingRow| {
        let count = format_count(i64::try_from(finding.count).unwrap_or(i64::MAX));
        let example = |example: &String| format!("<li><code>{}</code></li>\n", Escaped(example));
        let examples: String = finding.examples.iter().map(example).collect();
        let examples = if examples.is_empty() { examples } else { format!("<ul>\n{examples}</ul>\n") };
        let (severity, code, says) = (finding.severity, finding.code, Escaped(finding.says));
        format!("<li class=\"{severity}\"><b>{severity}</b> {count} × {says} <code>{code}</code>\n{examples}</li>\n")
    };
    format!("<ul class=\"findings\">\n{}</ul>\n", findings.iter().map(item).collect::<String>())
}

/// Every result, folded.
fn all_tables(results: &[Envelope]) -> String {
    let details = |result: &Envelope| {
        let (name, definition) = (Escaped(result.analysis), Escaped(&result.definition));
        let rows = format_count(result.results.len() as i64);
        let table =
            if result.results.is_empty() { "<p>No rows.</p>\n".to_string() } else { table_html(&result.results) };
        format!(
            "<details>\n<summary><code>{name}</code> <small>{rows} rows</small></summary>\n\
             <div id=\"{name}\">\n<p class=\"note\">{definition}</p>\n{table}</div>\n</details>\n"
        )
    };
    results.iter().map(details).collect()
}

/// The analyses that the page does not have, why, and which page has them.
fn left_out(analyses: &[(&'static str, EngineError)]) -> String {
    let with_one_reason = |analyses: &[(&'static str, EngineError)]| {
        let names: Vec<String> = analyses.iter().map(|(name, _)| format!("<code>{name}</code>")).collect();
        let (_, why) = &analyses[0];
        let command = |gib| {
            format!("<br>\n<small><code>stepscope report RUN --html FILE --memory {gib}GiB</code> writes all</small>")
        };
        let command = why.gib_needed().map(command).unwrap_or_default();
        format!("<p>{}: {}{command}</p>\n", names.join(", "), Escaped(&why.to_string()))
    };
    analyses.chunk_by(|(_, a), (_, b)| a == b).map(with_one_reason).collect()
}

#[cfg(test)]
mod tests;

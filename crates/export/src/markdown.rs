//! Reports and results as Markdown (GitHub's): what a person pastes into an issue or a page.

use std::fmt::Write;
use stepscope_base::units::{format_count, format_ns, format_ratio};
use stepscope_engine::report::{AdviceRow, Breakdown, Report, ReportCoverage, Top, class_words};
use stepscope_engine::{
    Column, Envelope, FindingRow, Table, column_headings, finding_rows, format_cell, has_answers, is_right_aligned,
    printable,
};

/// Rows of one table; what is left out is said below it.
const MAX_ROWS: usize = 1_000;

/// A report. Sections without content are left out.
pub fn report_markdown(report: &Report) -> String {
    let mut text = format!("# {}\n\n", escaped(&report.run.name));
    for fact in &report.environment {
        let _ = writeln!(text, "- {}: {}", fact.name, escaped(&fact.value));
    }
    report.joined.iter().for_each(|joined| text.push_str(&format!("- {}\n", escaped(&joined.says))));
    if !report.environment.is_empty() || report.joined.is_some() {
        text.push('\n');
    }
    report.verdict.iter().for_each(|sentence| text.push_str(&format!("{}\n\n", escaped(sentence))));
    text.push_str(&advice_markdown(&report.advice, &report.coverage));
    if let Some(breakdown) = &report.step_breakdown {
        let _ = write!(text, "## Where the time goes\n\n{}", breakdown_markdown(breakdown));
    }
    for device in &report.devices {
        let _ = write!(text, "## GPU {} of rank {}\n\n", device.device, device.rank);
        text.push_str(&breakdown_markdown(&device.breakdown));
    }
    text.push_str(&top_markdown("Top operators", &report.operators));
    text.push_str(&top_markdown("Top kernels", &report.kernels));
    text.push_str(&findings_markdown(&report.findings));
    if !report.next.is_empty() {
        text.push_str("## Next\n\n");
        report.next.iter().for_each(|next| text.push_str(&format!("- {}: {}\n", code(&next.command), next.shows)));
    }
    text
}

/// A result: its table, what it means, what is doubtful about it.
pub fn result_markdown(envelope: &Envelope) -> String {
    let mut text = format!("# {}\n\n{}\n\n", escaped(envelope.analysis), escaped(&envelope.definition));
    text.push_str(&table_markdown(&envelope.results));
    text.push_str(&findings_markdown(&finding_rows(&envelope.findings)));
    text
}

fn advice_markdown(advice: &[AdviceRow], coverage: &ReportCoverage) -> String {
    if advice.is_empty() {
        return String::new();
    }
    let not_judged = coverage.sentence().map_or_else(String::new, |sentence| format!(" {}", with_code(&sentence)));
    let mut text = format!("## Advice\n\nGains overlap: do not add them.{not_judged}\n\n");
    for row in advice {
        let (rule, says, to_do) = (code(row.rule), with_code(&row.says), with_code(row.to_do));
        let gain = &row.gain_says;
        let method = row.gain_method.map_or(String::new(), |method| format!(" Gain by {}.", escaped(method)));
        let (fault, disproof) = (escaped(row.fault), with_code(row.disproof));
        let _ = writeln!(
            text,
            "- **{fault}**: {gain} ({}, {rule}). {says} {to_do}{method} {} It is not so if: {disproof}",
            row.priority,
            where_to_look(row)
        );
        if let Some(diff) = row.diff {
            let lines: String = diff.lines().map(|line| format!("  {line}\n")).collect();
            let _ = write!(text, "\n  ```diff\n{lines}  ```\n\n");
        }
    }
    text + "\n"
}

/// `Numbers in `idle_gaps`, of rank 0; look at 12.3 ms, `cudaFree`; line `train.py(12): step`.`
fn where_to_look(row: &AdviceRow) -> String {
    let mut text = format!("Numbers in {}", code(row.evidence));
    text.extend(row.rank.map(|rank| format!(", of rank {rank}")));
    text.extend(row.start_ns.map(|start_ns| format!("; look at {}", format_ns(start_ns))));
    text.extend(row.slice.as_deref().map(|slice| format!(", {}", code(slice))));
    text.extend(row.line.as_deref().map(|line| format!("; line {}", code(line))));
    text + "."
}

/// Sentences, in which what stands between backquotes is code.
fn with_code(text: &str) -> String {
    let part = |(at, part): (usize, &str)| if at % 2 == 1 { code(part) } else { escaped(part) };
    text.split('`').enumerate().map(part).collect()
}

fn breakdown_markdown(breakdown: &Breakdown) -> String {
    let mut text = String::from("| | time | share |\n|---|---:|---:|\n");
    for part in breakdown.parts.iter().filter(|part| part.ns > 0) {
        let (words, time, share) = (class_words(part.class), format_ns(part.ns), format_ratio(part.ratio));
        let _ = writeln!(text, "| {words} | {time} | {share} |");
    }
    let _ = writeln!(text, "| **together** | {} | |\n", format_ns(breakdown.total_ns));
    text
}

fn top_markdown(title: &str, top: &Top) -> String {
    if top.table.is_empty() {
        return String::new();
    }
    let (shown, count) = (top.table.len(), format_count(top.count as i64));
    format!("## {title}\n\n{shown} of {count}, by `{}`.\n\n{}", top.by, table_markdown(&top.table))
}

/// Findings as a section; nothing without any.
pub fn findings_markdown(findings: &[FindingRow]) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let mut text = String::from("## Findings\n\n");
    for finding in findings {
        let count = format_count(i64::try_from(finding.count).unwrap_or(i64::MAX));
        let _ = writeln!(text, "- **{}** {count} × {}", finding.severity, escaped(finding.says));
    }
    text + "\n"
}

/// A table with numbers at the right; columns without any answer are left out.
pub fn table_markdown(table: &Table) -> String {
    let shown: Vec<&Column> = table.columns.iter().filter(|column| has_answers(column)).collect();
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let align = |column: &&Column| if is_right_aligned(column) { "---:" } else { "---" };
    let mut text = line(column_headings(&shown).iter().map(|heading| escaped(heading)).collect());
    text.push_str(&format!("|{}|\n", shown.iter().map(align).collect::<Vec<_>>().join("|")));
    for row in 0..table.len().min(MAX_ROWS) {
        text.push_str(&line(shown.iter().map(|column| escaped(&format_cell(column, row))).collect()));
    }
    if table.is_empty() {
        return "No rows.\n\n".into();
    }
    text.push('\n');
    if table.len() > MAX_ROWS {
        let _ = writeln!(text, "The first {} of {} rows.\n", MAX_ROWS, format_count(table.len() as i64));
    }
    text
}

/// Text that Markdown shows as it is.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in printable(text).chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            // Between letters an underscore is one.
            '_' if escaped.ends_with(char::is_alphanumeric) => escaped.push('_'),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' => escaped.extend(['\\', character]),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// Text in a span of code, whatever backquotes it has.
pub fn code(text: &str) -> String {
    let text = printable(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    if longest > 0 { format!("{fence} {text} {fence}") } else { format!("{fence}{text}{fence}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_engine::report::report;
    use stepscope_engine::{OpenedRun, Selection, Unit, analyze};
    use stepscope_trace::drawn::drawn;

    #[test]
    fn a_report_has_its_sections_and_numbers() {
        let trace =
            drawn("rank 0 step 00001111\nrank 0 cpu 1 aaaabbbb\nrank 0 launch 1 .C......\nrank 0 stream 7 ..CC..K.");
        let text = report_markdown(&report(&OpenedRun::of(trace), &Selection::default(), "RUN").unwrap());
        for wanted in ["# drawn", "## Where the time goes", "| idle |", "## Top operators", "## Top kernels", "| a |"] {
            assert!(text.contains(wanted), "{wanted:?} is not in\n{text}");
        }
    }

    #[test]
    fn advice_has_its_method_its_place_and_its_diff() {
        let row = |cells: &str| cells.chars().map(|cell| cell.to_string().repeat(125)).collect::<String>().repeat(8);
        let run = OpenedRun::of(drawn(&format!("rank 0 stream 7 {}", row("CCCC..NN"))));
        let mut report = report(&run, &Selection::default(), "RUN").unwrap();
        assert!(!advice_markdown(&report.advice, &report.coverage).contains("```"));
        report.advice[0].diff = Some("-a\n+b");
        let text = advice_markdown(&report.advice, &report.coverage);
        assert!(text.contains(" Gain by upper bound: communication hides "), "{text}");
        assert!(text.contains(" Numbers in `overlap`, of rank 0; look at "), "{text}");
        assert!(text.contains("\n\n  ```diff\n  -a\n  +b\n  ```\n"), "{text}");
    }

    #[test]
    fn a_name_cannot_break_its_cell() {
        let table = Table {
            columns: vec![
                Column::new("name", Unit::Text, "", vec![Some("a|b <script>\n`x`")]),
                Column::new("total_ns", Unit::Nanoseconds, "", vec![Some(1_500)]),
            ],
        };
        assert_eq!(
            table_markdown(&table),
            "| name | total |\n|---|---:|\n| a\\|b &lt;script&gt; \\`x\\` | 1.50 µs |\n\n"
        );
        assert_eq!(code("a`b"), "`` a`b ``");
    }

    #[test]
    fn a_result_says_what_it_means() {
        let envelope = analyze(&drawn("rank 0 cpu 1 aabb"), "operators", &Selection::default()).unwrap();
        let text = result_markdown(&envelope);
        assert!(text.starts_with("# operators\n\n") && text.contains("| name |"), "{text}");
    }
}

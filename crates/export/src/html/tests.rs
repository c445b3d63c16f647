//! Pages of drawn traces.

use super::{advice, report_html};
use stepscope_engine::report::report;
use stepscope_engine::{EngineError, OpenedRun, Selection, Trace, list_analyses};
use stepscope_trace::drawn::drawn;
use stepscope_trace::{Process, SliceKind, TraceBuilder, Track, TrackKind};

fn page(trace: &Trace) -> String {
    let (run, selection) = (OpenedRun::of(trace.clone()), Selection::default());
    report_html(&report(&run, &selection, "RUN").unwrap(), &run.analyze_all(&selection).unwrap())
}

/// Every tag that opens is closed, in order.
fn check_is_well_formed(page: &str) {
    let mut open = Vec::new();
    for tag in page.split('<').skip(1) {
        let name: String = tag.chars().take_while(|c| c.is_ascii_alphanumeric() || "/!".contains(*c)).collect();
        match name.as_str() {
            "!DOCTYPE" | "meta" | "br" => {}
            closing if closing.starts_with('/') => assert_eq!(open.pop().as_deref(), Some(&closing[1..]), "{tag}"),
            opening => open.push(opening.to_string()),
        }
    }
    assert_eq!(open, [""; 0]);
}

#[test]
fn a_page_has_the_numbers_and_asks_for_nothing() {
    let page = page(&drawn(
        "rank 0 step      0000000000|1111111
         rank 0 cpu 1     aaaaaaaa...bbbbbb.
         rank 0 input 1   .........ii.......
         rank 0 launch 1  C..H........N.....
         rank 0 stream 7  .CCCCHH....K.NNNN.",
    ));
    check_is_well_formed(&page);
    for wanted in
        ["<svg class=\"bar\"", "<svg class=\"columns\"", "Top operators", "Top kernels", "prefers-color-scheme"]
    {
        assert!(page.contains(wanted), "{wanted} is not in the page");
    }
    for (name, _) in list_analyses() {
        assert!(page.contains(&format!("<summary><code>{name}</code>")), "{name} is not in the page");
    }
    for request in ["http:", "https:", "//", "<script", "<link", "src=", "url(", "@import", "<iframe", "<img"] {
        assert!(!page.contains(request), "{request} would ask for something");
    }
}

#[test]
fn advice_has_its_gain_its_method_its_diff_and_what_would_disprove_it() {
    let row = |cells: &str| cells.chars().map(|cell| cell.to_string().repeat(125)).collect::<String>().repeat(8);
    let run = OpenedRun::of(drawn(&format!("rank 0 stream 7 {}", row("CCCC..NN"))));
    let mut report = report(&run, &Selection::default(), "RUN").unwrap();
    let plain = advice(&report.advice, &report.coverage, &[]);
    assert!(!plain.contains("<pre>") && plain.contains("Gain by upper bound: "), "{plain}");
    report.advice[0].diff = Some("-a < b\n+b");
    let html = advice(&report.advice, &report.coverage, &[]);
    check_is_well_formed(&html);
    for wanted in [&*report.advice[0].gain_says, "<pre>-a &lt; b\n+b</pre>", "It is not so if: "] {
        assert!(html.contains(wanted), "{wanted:?} is not in\n{html}");
    }
}

#[test]
fn advice_leads_to_its_numbers_where_the_page_has_them() {
    let row = |cells: &str| cells.chars().map(|cell| cell.to_string().repeat(125)).collect::<String>().repeat(8);
    let run = OpenedRun::of(drawn(&format!("rank 0 stream 7 {}", row("CCCC..NN"))));
    let selection = Selection::default();
    let (report, mut all) = (report(&run, &selection, "RUN").unwrap(), run.analyze_all(&selection).unwrap());
    let evidence = report.advice[0].evidence;
    let link = format!("<a href=\"#{evidence}\">The numbers: <code>{evidence}</code></a>");
    let with = report_html(&report, &all);
    check_is_well_formed(&with);
    assert!(with.contains(&link), "{link} is not in the page");
    // Every link has one target, which is inside what it opens.
    for (_, rest) in with.match_indices("href=\"#").map(|(at, start)| with.split_at(at + start.len())) {
        let target = format!("</summary>\n<div id=\"{}\">", rest.split('"').next().unwrap());
        assert_eq!(with.matches(&target).count(), 1, "{target}");
    }
    all.results.retain(|result| result.analysis != evidence);
    assert!(!report_html(&report, &all).contains(&link), "a link to what is not on the page");
}

#[test]
fn a_page_says_what_is_not_on_it() {
    let trace = drawn("rank 0 cpu 1 aabb");
    assert!(!page(&trace).contains("Not on this page"));
    let (run, selection) = (OpenedRun::of(trace), Selection::default());
    let mut all = run.analyze_all(&selection).unwrap();
    let too_large = |files| EngineError::TooLarge { files, bytes: 5 << 30, max_bytes: 1 << 30 };
    all.results.retain(|result| !["modules", "critical_path"].contains(&result.analysis));
    all.left_out = vec![("modules", too_large(9)), ("graphs", too_large(9)), ("critical_path", too_large(12))];
    let page = report_html(&report(&run, &selection, "RUN").unwrap(), &all);
    check_is_well_formed(&page);
    let (_, section) = page.split_once("<h2>Not on this page</h2>\n").unwrap();
    let lines: Vec<&str> = section.lines().take(4).collect();
    let why =
        |files| format!("all events of {files} files would take about 5.00 GiB of memory, more than the 1.00 GiB");
    let hint = "<small><code>stepscope report RUN --html FILE --memory 5GiB</code> writes all</small></p>";
    let expected = [
        format!("<p><code>modules</code>, <code>graphs</code>: {} allowed<br>", why(9)),
        hint.to_string(),
        format!("<p><code>critical_path</code>: {} allowed<br>", why(12)),
        hint.to_string(),
    ];
    assert_eq!(lines, expected);
}

#[test]
fn names_of_a_trace_stay_text() {
    let mut builder = TraceBuilder::new("<b>run</b>");
    let process = builder.add_process(Process { name: "<i>".into(), ..Process::default() });
    let track = builder.add_track(Track::new(TrackKind::Thread, process, "main"));
    let name = builder.strings.intern("</td><script>alert('x')</script>\"&");
    builder.add_slice(track, SliceKind::Op, name, 0, 10);
    builder.facts.push(("host".into(), "<img src=x onerror=y>".into()));
    let page = page(&builder.finish());
    check_is_well_formed(&page);
    assert!(page.contains("&lt;script&gt;alert(&#39;x&#39;)"));
    assert!(!page.contains("<script") && !page.contains("<img") && !page.contains("<b>run"));
}

#[test]
fn an_empty_trace_has_a_page() {
    check_is_well_formed(&page(&Trace::default()));
}

#[test]
fn real_traces_have_pages() {
    for path in crate::tests::real_traces() {
        check_is_well_formed(&page(&stepscope_import::open(&path).expect("a trace")));
    }
}

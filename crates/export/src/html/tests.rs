//! Pages of drawn traces.

use super::report_html;
use stepscope_engine::report::report;
use stepscope_engine::{OpenedRun, Selection, Trace, analyze, list_analyses};
use stepscope_trace::drawn::drawn;
use stepscope_trace::{Process, SliceKind, TraceBuilder, Track, TrackKind};

fn page(trace: &Trace) -> String {
    let selection = Selection::default();
    let results: Vec<_> = list_analyses().iter().map(|(name, _)| analyze(trace, name, &selection).unwrap()).collect();
    report_html(&report(&OpenedRun::of(trace.clone()), &selection, "RUN").unwrap(), &results)
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

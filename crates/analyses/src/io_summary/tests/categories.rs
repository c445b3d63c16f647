use super::*;

/// Categories as `category count total=busy, bytes in files by processes and threads: rules`; with `GroupBy::Layer` layers.
fn category_lines(trace: &Trace, group_by: Option<GroupBy>) -> Vec<String> {
    let selection = Selection { compat: Some(Compat::DfAnalyzer), group_by, ..Selection::default() };
    let context = AnalysisContext::new(trace, &selection);
    let rows = if group_by.is_some() { dlio::rows(&context) } else { dfanalyzer::rows(&context) };
    let line = |row: dfanalyzer::CategoryIo| {
        let bytes = row.bytes.map_or("-".into(), |bytes| bytes.to_string());
        let rules = row.rules.map_or(String::new(), |rules| format!(": {rules}"));
        let us = [row.total_ns, row.busy_ns].map(|ns| ns / 1_000);
        format!(
            "{} {} {}={}us {bytes}B {}f{}p{}t{rules}",
            row.category,
            row.count,
            us[0],
            us[1],
            row.files.map_or("-".into(), |files| files.to_string()),
            row.processes,
            row.threads
        )
    };
    rows.into_iter().map(line).collect()
}

#[test]
fn facts_and_rules_of_dfanalyzer() {
    let trace = job("rank 0 io 1 orrrrc....\nrank 0 io 2 .rr.......\nrank 0 io 3 ....w....x");
    let expected = [
        "all 6 10=7us 700B 2f1p3t: operation_imbalance, size_imbalance, small_reads",
        "data 3 7=4us 700B 2f1p3t",
        "read 2 6=4us 600B 1f1p2t",
        "write 1 1=1us 100B 1f1p1t",
        "metadata 3 3=3us 0B 1f1p2t",
        "open 1 1=1us 0B 1f1p1t",
    ];
    assert_eq!(category_lines(&trace, None), expected);
    let metadata = category_lines(&job("rank 0 io 1 occcccr\nrank 0 io 2 W"), None);
    assert_eq!(metadata[0], "all 4 8=7us 100B 1f1p2t: excessive_metadata_access, size_imbalance");
}

#[test]
fn layers_of_dfanalyzer_are_told_by_what_labels_are_for() {
    let mut trace = job("rank 0 step    000000000000000000
                         rank 0 input 1 iii...............
                         rank 0 label 1 ....eeee.kkkk.yy..
                         rank 0 label 1 ......ee..........
                         rank 0 io 1    .r..rr.c..ww.w...r
                         rank 0 io 2    .........rr.w.....
                         rank 1 label 1 eee...............
                         rank 2 input 1 .i................");
    let [e, y] = ["e", "y"].map(|name| trace.strings.intern(name));
    trace.roles = vec![(e, SliceRole::Reader), (y, SliceRole::Compute)];
    trace.roles.sort_unstable();
    let expected = [
        "compute 1 2=2us -B -f1p1t",
        "fetch_data 1 3=3us -B -f1p1t",
        "reader 1 4=4us -B -f1p1t",
        "reader_posix 3 4=4us 300B 1f1p1t",
        "checkpoint 1 4=4us -B -f1p1t",
        "checkpoint_posix 3 5=4us 500B 2f1p2t",
        "other_posix 2 2=2us 200B 2f1p1t",
        // The second rank neither calls files nor waits for data.
        "fetch_data 1 1=1us -B -f1p1t",
    ];
    assert_eq!(category_lines(&trace, Some(GroupBy::Layer)), expected);
}

#[test]
fn layers_of_dfanalyzer_know_stages_and_shares_of_the_job() {
    let mut trace = job("rank 0 step    0000000000
                         rank 0 label 1 aa.bb.c.dd
                         rank 0 io 1    r.........");
    let labels: Vec<SliceId> =
        trace.slices.ids().filter(|id| trace.slices.kind(*id) == SliceKind::Annotation).collect();
    let stages = [DataflowStage::Fetch, DataflowStage::Compute, DataflowStage::Preprocess, DataflowStage::Epoch];
    trace.dataflow = labels.iter().zip(stages).map(|(id, stage)| DataflowRange::new(*id, stage)).collect();
    let expected = [
        "compute 1 2=2us -B -f1p1t",
        "data_loader 1 2=2us -B -f1p1t",
        "reader 1 1=1us -B -f1p1t",
        "reader_posix 1 1=1us 100B 1f1p1t",
    ];
    assert_eq!(category_lines(&trace, Some(GroupBy::Layer)), expected);
    let selection =
        Selection { group_by: Some(GroupBy::Layer), compat: Some(Compat::DfAnalyzer), ..Selection::default() };
    let table = outcome(&AnalysisContext::new(&trace, &selection)).table;
    let ratios = &table.column("busy_ratio").expect("a column").values;
    assert_eq!(*ratios, crate::Values::Float(vec![Some(0.2), Some(0.2), Some(0.1), Some(0.1)]));
}

proptest! {
    #[test]
    fn categories_sum_to_all_and_to_the_files(first in "[.rwRWoc|]{20}", second in "[.rwRWoc|]{20}") {
        let trace = job(&format!("rank 0 io 1 {first}\nrank 0 io 2 {second}"));
        let selection = Selection { compat: Some(Compat::DfAnalyzer), ..Selection::default() };
        let rows = dfanalyzer::rows(&AnalysisContext::new(&trace, &selection));
        let sums = |name: &str| {
            let row = rows.iter().find(|row| row.category == name);
            row.map_or([0; 3], |row| [row.count, row.total_ns, row.bytes.unwrap_or(0)])
        };
        let and = |a: [i64; 3], b: [i64; 3]| std::array::from_fn::<i64, 3, _>(|at| a[at] + b[at]);
        prop_assert_eq!(and(sums("data"), sums("metadata")), sums("all"));
        prop_assert_eq!(and(sums("read"), sums("write")), sums("data"));
        let files = io_files(&trace, &Selection::default());
        let of_files = files.iter().fold([0; 3], |sum, row| {
            let bytes = row.read_bytes.unwrap_or(0) + row.write_bytes.unwrap_or(0);
            and(sum, [row.count, row.total_ns, bytes])
        });
        prop_assert_eq!(sums("all"), of_files);
        let of_layers: [i64; 3] = layers::rows(&AnalysisContext::new(&trace, &selection)).iter().fold([0; 3], |sum, row| {
            and(sum, [row.count, row.total_ns, row.read_bytes.unwrap_or(0) + row.write_bytes.unwrap_or(0)])
        });
        prop_assert_eq!(of_layers, of_files);
    }

    #[test]
    fn calls_of_the_layers_of_dfanalyzer_sum_to_all(
        labels in "[..ek|]{20}", first in "[.rwRWoc|]{20}", second in "[.rwRWoc|]{20}", input in "[....i]{20}",
    ) {
        let mut trace = job(&format!(
            "rank 0 input 1 {input}\nrank 0 label 1 {labels}\nrank 0 io 1 {first}\nrank 0 io 2 {second}"
        ));
        trace.roles = vec![(trace.strings.intern("e"), SliceRole::Reader)];
        let selection = Selection { compat: Some(Compat::DfAnalyzer), ..Selection::default() };
        let context = AnalysisContext::new(&trace, &selection);
        let sum = |rows: Vec<dfanalyzer::CategoryIo>, is_in: fn(&str) -> bool| {
            rows.iter().filter(|row| is_in(row.category)).fold([0; 3], |sum, row| {
                let of_row = [row.count, row.total_ns, row.bytes.unwrap_or(0)];
                std::array::from_fn::<i64, 3, _>(|at| sum[at] + of_row[at])
            })
        };
        let all = sum(dfanalyzer::rows(&context), |category| category == "all");
        prop_assert_eq!(sum(dlio::rows(&context), |layer| layer.ends_with("_posix")), all);
    }
}

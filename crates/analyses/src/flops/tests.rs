use super::*;
use crate::flops::Works;
use crate::op_tree::OpTree;
use proptest::prelude::*;
use stepscope_trace::{OpInfo, OpInputs, Process, SliceKind, TraceBuilder, Track, TrackKind};

/// Operator, shapes, values, operations: written by `flop_counter.py` beside this file.
const FLOP_COUNTER: &str = include_str!("flop_counter.tsv");

#[test]
fn products_equal_pytorchs_own_counter() {
    for line in FLOP_COUNTER.lines() {
        let [name, dims, values, counted] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let mut counted: i64 = counted.parse().unwrap();
        // Of 32 groups, that counter takes the gradient of the weight for 32 times what it is.
        let one = 115_605_504;
        counted = if counted == 33 * one { 2 * one } else { counted };
        counted = if counted == 32 * one { one } else { counted };
        assert_eq!(work_of_texts(name, dims, "", values).map(|work| work.flops), Some(counted), "{line}");
    }
}

/// Operator, shapes, types, values, operations, bytes: written by `work.py` beside this file.
const WORK: &str = include_str!("work.tsv");

#[test]
fn work_equals_what_pytorchs_own_results_show() {
    let mut wrong = Vec::new();
    for line in WORK.lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let [name, dims, types, values, flops, bytes] = cells[..] else { panic!("{line}") };
        let work = work_of_texts(name, dims, types, values).map(|work| (work.flops, work.bytes));
        if work != Some((flops.parse().unwrap(), bytes.parse().ok())) {
            wrong.push(format!("{work:?}, not {line}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn bytes_are_inputs_read_once_and_the_result_written_once() {
    let bytes = |name, dims, types, values| work_of_texts(name, dims, types, values).and_then(|work| work.bytes);
    let half = r#"["c10::Half","c10::Half","c10::Half"]"#;
    assert_eq!(bytes("aten::mm", "[[4,8],[8,2]]", half, ""), Some(2 * (32 + 16 + 8)));
    assert_eq!(bytes("aten::linear", "[[2,3,8],[5,8],[5]]", half, ""), Some(2 * (48 + 40 + 5 + 30)));
    assert_eq!(bytes("aten::add_", "[[4,8],[8],[]]", r#"["float","float","Scalar"]"#, ""), Some(4 * (32 + 8 + 32)));
    assert_eq!(bytes("aten::eq", "[[4,8],[]]", r#"["float","Scalar"]"#, ""), Some(4 * 32 + 32));
    assert_eq!(bytes("aten::copy_", "[[4,8],[8],[]]", r#"["float","c10::Half",""]"#, ""), Some(4 * 32 + 2 * 8));
    assert_eq!(bytes("aten::fill_", "[[4,8],[]]", r#"["float","Scalar"]"#, ""), Some(128));
    let float = r#"["float","ScalarList","Scalar",""]"#;
    assert_eq!(bytes("aten::sum", "[[4,8],[],[],[]]", float, r#"["","[-1]","True",""]"#), Some(4 * (32 + 4)));
    assert_eq!(bytes("aten::sum", "[[4,8],[]]", float, r#"["",""]"#), Some(4 * (32 + 1)));
    assert_eq!(bytes("aten::sum", "[[4,8],[]]", float, ""), None);
    // What `out=` gives is written to and not read, whatever its size was before.
    let out = r#"["float","float","Scalar","float"]"#;
    for dims in ["[[4,8],[8],[],[4,8]]", "[[4,8],[8],[],[0]]", "[[4,8],[8],[]]"] {
        assert_eq!(bytes("aten::add", dims, out, ""), Some(4 * (32 + 8 + 32)), "{dims}");
    }
    assert_eq!(bytes("aten::mul", "[[4,8],[8],[4,8]]", r#"["c10::Half","float","double"]"#, ""), Some(64 + 32 + 256));
    assert_eq!(bytes("aten::exp", "[[4,8],[4,8]]", r#"["float","float"]"#, ""), Some(256));
    assert_eq!(
        bytes("aten::where", "[[4,8],[4,8],[],[4,8]]", r#"["bool","float","float","float"]"#, ""),
        Some(32 + 128 + 4 + 128)
    );
    assert_eq!(
        bytes("aten::maximum", "[[4,8],[8],[4,8]]", r#"["float","float","float"]"#, ""),
        Some(4 * (32 + 8 + 32))
    );
    let lookup = r#"["float","long int"]"#;
    assert_eq!(bytes("aten::embedding", "[[100,16],[2,5]]", lookup, ""), Some(8 * 10 + 2 * 4 * 160));
    assert_eq!(bytes("aten::_foreach_add_", "[[[4],[2,3]],[]]", r#"["TensorList","Scalar"]"#, ""), None);
    let conv = (r#"[[2,3,8,8],[4,3,3,3],[],[],[],[],[]]"#, r#"["","","","[2, 2]","[1, 1]","[1, 1]","1"]"#);
    assert_eq!(bytes("aten::conv2d", conv.0, half, conv.1), Some(2 * (2 * 3 * 64 + 4 * 27 + 2 * 4 * 16)));
    let attention = "[[2,8,128,64],[2,8,256,64],[2,8,256,32]]";
    let sizes = 2 * 16 * (128 * 64 + 256 * 64 + 256 * 32 + 128 * 32);
    assert_eq!(bytes("aten::_scaled_dot_product_flash_attention", attention, half, ""), Some(sizes));
}

#[test]
fn what_is_not_known_or_does_not_fit_has_no_work() {
    assert_eq!(work_of_texts("aten::mm", "[[4,8],[7,2]]", "", ""), None);
    assert_eq!(work_of_texts("aten::mm", "[[9223372036854775807,8],[8,9]]", "", ""), None);
    assert_eq!(work_of_texts("aten::convolution", "[[2,3,8,8],[4,3,3,3],[],[],[],[],[],[],[]]", "", ""), None);
    assert_eq!(work_of_texts("aten::add", "[[2,3],[4]]", "", ""), None);
    assert_eq!(work_of_texts("aten::never_heard", "[[2,3]]", "", ""), None);
}

#[test]
fn a_likelihood_looks_up_one_score_a_position() {
    let work =
        |name, dims, types, values| work_of_texts(name, dims, types, values).map(|work| (work.flops, work.bytes));
    let forward = ("[[32,10],[32],[],[]]", r#"["float","long int","","Scalar"]"#);
    // Positions of 8 bytes, scores, the sum and the sum of weights.
    let summed = work("aten::nll_loss_forward", forward.0, forward.1, r#"["","","","1"]"#);
    assert_eq!(summed, Some((32, Some(256 + 128 + 4 + 4))));
    let each = work("aten::nll_loss_forward", forward.0, forward.1, r#"["","","","0"]"#);
    assert_eq!(each, Some((32, Some(256 + 128 + 128 + 4))));
    let dims = "[[],[32,10],[32],[10],[],[],[]]";
    let types = r#"["float","float","long int","float","Scalar","Scalar","float"]"#;
    // The gradient of all scores is written; of the weights no more is read than there are.
    let backward = work("aten::nll_loss_backward", dims, types, "");
    assert_eq!(backward, Some((32, Some(4 + 256 + 40 + 4 + 1_280))));
}

#[test]
fn packed_sequences_of_several_lengths_are_not_known() {
    let dims = "[[384,8,64],[384,8,64],[384,8,64],[4],[4],[],[]]";
    let types = r#"["float","float","float","int","int","Scalar","Scalar"]"#;
    let flops = |longest: i64| {
        let values = format!(r#"["","","","","","{longest}","{longest}"]"#);
        work_of_texts("aten::_flash_attention_forward", dims, types, &values).map(|work| work.flops)
    };
    assert_eq!([flops(128), flops(200), flops(384)], [Some(4 * 3 * 8 * 128 * 128 * 64), None, None]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn any_inputs_have_some_work_or_none(
        row in 0_usize..10_000,
        dims in prop::collection::vec(prop::collection::vec(size(), 0..5), 0..12),
        types in prop::collection::vec(0_usize..4, 12),
        values in prop::collection::vec((0_usize..5, size()), 22),
    ) {
        let value = |(kind, number): &(usize, i64)| match kind {
            0 => String::new(),
            1 => number.to_string(),
            2 => format!("[{number}, {number}]"),
            3 => "[True, False, True, True]".into(),
            _ => "True".into(),
        };
        let types: Vec<&str> = types.iter().map(|at| ["float", "long int", "TensorList", ""][*at]).collect();
        let values: Vec<String> = values.iter().map(value).collect();
        let names: Vec<&str> = include_str!("../../data/operators.txt")
            .lines()
            .filter(|line| !line.starts_with('#') && !line.ends_with("\t-"))
            .filter_map(|line| line.split('\t').next())
            .collect();
        let name = names[row % names.len()];
        let work = work_of_texts(name, &format!("{dims:?}"), &format!("{types:?}"), &format!("{values:?}"));
        prop_assert!(work.is_none_or(|work| work.flops >= 0 && work.bytes.is_none_or(|bytes| bytes >= 0)), "{work:?}");
    }
}

/// Mostly small, sometimes absurd.
fn size() -> impl Strategy<Value = i64> {
    prop_oneof![8 => -2_i64..9, 1 => (i64::MAX - 3)..=i64::MAX, 1 => i64::MIN..(i64::MIN + 3)]
}

/// Operators of one thread as (name, start, end, shapes); the work that is counted, as `name:flops`, and the owner of
/// every operator.
fn counted(ops: &[(&str, i64, i64, &str)]) -> (Vec<String>, Vec<String>) {
    let mut builder = TraceBuilder::new("works");
    let process = builder.add_process(Process::default());
    let track = builder.add_track(Track::new(TrackKind::Thread, process, "main"));
    for (name, start, end, dims) in ops {
        let name = builder.strings.intern(name);
        let slice = builder.add_slice(track, SliceKind::Op, name, *start, end - start);
        let dims = builder.strings.intern(dims);
        let inputs = builder.intern_inputs(OpInputs { dims, ..OpInputs::UNKNOWN });
        builder.add_op(slice, OpInfo { inputs, ..OpInfo::default() });
    }
    let trace = builder.finish();
    let tree = OpTree::of(&trace);
    let works = Works::of(&trace, &tree);
    let name = |row: u32| trace.slice_name(tree.slice[row as usize]).trim_start_matches("aten::").to_string();
    let owners = (0..tree.len() as u32).map(|row| works.owner(row).map_or("-".into(), name));
    (works.iter().map(|(row, work)| format!("{}:{}", name(row), work.flops)).collect(), owners.collect())
}

#[test]
fn work_is_counted_at_the_innermost_product_and_else_at_the_outermost() {
    let (work, owners) = counted(&[
        ("aten::linear", 0, 20, "[[4,8],[2,8],[2]]"),
        ("aten::add", 1, 2, "[[3],[3]]"),
        ("aten::addmm", 3, 15, "[[2],[4,8],[8,2]]"),
        ("aten::add", 4, 5, "[[3],[3]]"),
        ("aten::add", 20, 30, "[[5],[5]]"),
        ("aten::mul", 21, 25, "[[5],[5]]"),
        ("aten::conv2d", 30, 40, "[[2,3,8,8],[4,3,3,3]]"),
    ]);
    assert_eq!(work, ["add:3", "addmm:128", "add:5"]);
    assert_eq!(owners, ["-", "add", "addmm", "addmm", "add", "add", "-"]);
}

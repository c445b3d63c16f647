//! Libraries label a collective several times, one label inside the other: it is one collective in every table.

use std::fs;
use stepscope_analyses::Selection;
use stepscope_analyses::collectives::{Collectives, collectives};
use stepscope_analyses::stragglers::stragglers;
use stepscope_import::open;
use stepscope_trace::Trace;

/// A row of a trace, as PyTorch's profiler writes it: category, name, thread or stream, start and duration in µs.
type Row<'a> = (&'a str, &'a str, i64, i64, i64, &'a str);

const MEAN: &str = r#""Collective name": "allreduce", "dtype": "Float", "In msg nelems": 1000, "Out msg nelems": 1000,
                      "Group size": 2, "Process Group Name": "0", "Process Group Description": "default_pg",
                      "Process Group Ranks": "[0, 1]", "Seq": 5"#;
const SCATTER: &str = r#""Collective name": "_reduce_scatter_base", "dtype": "Half", "In msg nelems": 1000,
                         "Out msg nelems": 500, "Group size": 2, "Process Group Name": "0",
                         "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1]", "Seq": 6"#;
const INPUT: &str = r#""Input Dims": [[10, 100]], "Input type": ["float"]"#;

/// A trace of each of `ranks`, opened as one.
fn opened(ranks: &[&[Row<'_>]]) -> Trace {
    let folder = tempfile::tempdir().expect("a folder");
    for (rank, rows) in ranks.iter().enumerate() {
        let event = |(category, name, thread, start, duration, args): &Row<'_>| {
            let pid = if *category == "kernel" { 0 } else { 100 + rank };
            format!(
                r#"{{"ph": "X", "cat": "{category}", "name": "{name}", "pid": {pid}, "tid": {thread}, "ts": {start},
                    "dur": {duration}, "args": {{{args}}}}}"#
            )
        };
        let events: Vec<String> = rows.iter().map(event).collect();
        let world = format!(r#"{{"rank": {rank}, "world_size": {}}}"#, ranks.len());
        let text = format!(r#"{{"distributedInfo": {world}, "traceEvents": [{}]}}"#, events.join(",\n"));
        fs::write(folder.path().join(format!("rank{rank}.json")), text).expect("a file");
    }
    open(folder.path()).expect("traces")
}

fn lines(trace: &Trace) -> Vec<String> {
    let line = |row: &Collectives| {
        format!(
            "rank {} {}: {:?} calls, {:?} works, {:?} kernels, {:?} bytes, host {:?}, device {:?}",
            row.rank,
            row.name.as_deref().unwrap_or("-"),
            row.calls.unwrap_or(0),
            row.works.unwrap_or(0),
            row.kernels.unwrap_or(0),
            row.size_bytes.unwrap_or(0),
            row.host_ns.unwrap_or(0),
            row.device_ns.unwrap_or(0)
        )
    };
    collectives(trace, &Selection::default()).iter().map(line).collect()
}

/// Of each rank its number, the collectives that were matched, and what of them is transfer and waiting.
fn matched(trace: &Trace) -> Vec<(u32, i64, i64, i64)> {
    let rows = stragglers(trace, &Selection::default());
    rows.iter().map(|row| (row.rank, row.calls, row.transfer_ns, row.waiting_ns)).collect()
}

#[test]
fn the_ranges_of_oneccl_are_one_collective() {
    let rank: [Row<'_>; 8] = [
        ("cpu_op", "c10d::allreduce_", 1, 0, 50, INPUT),
        ("cpu_op", "oneccl_bindings_for_pytorch::allreduce", 1, 2, 46, INPUT),
        ("cpu_op", "oneccl_bindings_for_pytorch::xpu::allreduce", 1, 4, 40, INPUT),
        ("cpu_op", "oneccl_bindings_for_pytorch::xpu::get_ccl_comms", 1, 5, 2, ""),
        ("xpu_runtime", "urEnqueueKernelLaunch", 1, 10, 3, r#""correlation": 7"#),
        ("kernel", "oneccl_allreduce_kernel", 20, 15, 60, r#""correlation": 7, "device": 0, "stream": 20"#),
        // What waits for it, and what carries it out on a thread of the library, are of the same one.
        ("cpu_op", "oneccl_bindings_for_pytorch::wait::cpu::allreduce", 1, 60, 9, ""),
        ("cpu_op", "oneccl_bindings_for_pytorch::cpu_work::allreduce", 2, 12, 40, ""),
    ];
    let trace = opened(&[&rank]);
    let expected = ["rank 0 allreduce: 1 calls, 0 works, 1 kernels, 4000 bytes, host 46000, device 60000"];
    assert_eq!(lines(&trace), expected);
    // Older ones have no operator of PyTorch around them.
    assert_eq!(lines(&opened(&[&rank[1..]])), expected);
    // No rank states a group: all ranks of the job are one.
    let mut late = rank;
    late[5].3 += 20;
    late[5].4 -= 20;
    let trace = opened(&[&rank, &late]);
    let matched: Vec<_> = stragglers(&trace, &Selection::default())
        .into_iter()
        .map(|row| (row.rank, row.group, row.ranks, row.transfer_ns, row.waiting_ns))
        .collect();
    assert_eq!(matched, [(1, None, 2, 40_000, 0), (0, None, 2, 40_000, 20_000)]);
    assert!(stragglers(&opened(&[&rank]), &Selection::default()).is_empty(), "it has no other rank");
}

#[test]
fn labels_of_deepspeed_around_a_collective_are_none() {
    let rank = |wait: i64| -> Vec<Row<'_>> {
        vec![
            ("user_annotation", "DeepSpeedEngine.allreduce_gradients", 1, 0, 50, ""),
            ("cpu_op", "c10d::allreduce_", 1, 2, 40, INPUT),
            ("cpu_op", "record_param_comms", 1, 4, 30, MEAN),
            ("user_annotation", "nccl:all_reduce", 1, 6, 20, ""),
            ("cuda_runtime", "cudaLaunchKernel", 1, 10, 3, r#""correlation": 7"#),
            ("kernel", "ncclDevKernel_AllReduce", 20, 20, 30 + wait, r#""correlation": 7, "device": 0, "stream": 20"#),
            ("user_annotation", "DeepSpeedZeroOptimizer_Stage3.__reduce_and_partition_ipg_grads", 1, 60, 60, ""),
            ("user_annotation", "reduce_scatter_coalesced", 1, 62, 50, ""),
            ("cpu_op", "c10d::_reduce_scatter_base_", 1, 64, 40, INPUT),
            ("cpu_op", "record_param_comms", 1, 66, 30, SCATTER),
            ("user_annotation", "nccl:_reduce_scatter_base", 1, 68, 20, ""),
            ("cuda_runtime", "cudaLaunchKernel", 1, 70, 3, r#""correlation": 8"#),
            ("kernel", "ncclDevKernel_ReduceScatter", 20, 100, 40, r#""correlation": 8, "device": 0, "stream": 20"#),
        ]
    };
    let trace = opened(&[&rank(0), &rank(5)]);
    let expected = [
        "rank 0 _reduce_scatter_base: 1 calls, 0 works, 1 kernels, 2000 bytes, host 30000, device 40000",
        "rank 0 allreduce: 1 calls, 0 works, 1 kernels, 4000 bytes, host 30000, device 30000",
        "rank 1 _reduce_scatter_base: 1 calls, 0 works, 1 kernels, 2000 bytes, host 30000, device 40000",
        "rank 1 allreduce: 1 calls, 0 works, 1 kernels, 4000 bytes, host 30000, device 35000",
    ];
    assert_eq!(lines(&trace), expected);
    assert_eq!(matched(&trace), [(0, 2, 70_000, 0), (1, 2, 70_000, 5_000)]);
}

#[test]
fn an_operator_of_the_backend_in_a_record_without_metadata_is_one_collective() {
    let rank: [Row<'_>; 5] = [
        ("cpu_op", "record_param_comms", 1, 0, 50, ""),
        ("cpu_op", "nccl:all_reduce", 1, 2, 40, INPUT),
        ("cuda_runtime", "cudaLaunchKernel", 1, 10, 3, r#""correlation": 7"#),
        ("kernel", "ncclDevKernel_AllReduce", 20, 20, 30, r#""correlation": 7, "device": 0, "stream": 20"#),
        ("cpu_op", "gloo:broadcast", 3, 2, 40, INPUT),
    ];
    let expected = [
        "rank 0 all_reduce: 1 calls, 0 works, 1 kernels, 4000 bytes, host 40000, device 30000",
        "rank 0 broadcast: 1 calls, 0 works, 0 kernels, 4000 bytes, host 40000, device 0",
    ];
    assert_eq!(lines(&opened(&[&rank])), expected);
}

const TENSORS: &str = r#""Input Dims": [[], []], "Input type": ["TensorList", ""]"#;

#[test]
fn older_labels_of_nccl_say_what_is_carried_and_are_matched_by_their_order() {
    // PyTorch did not yet say of a collective what it carries.
    let rank = |wait: i64, sent: &'static str| -> [Row<'_>; 11] {
        [
            ("cpu_op", "c10d::allreduce_", 1, 2, 40, TENSORS),
            ("cpu_op", "record_param_comms", 1, 4, 30, TENSORS),
            ("user_annotation", "nccl:all_reduce", 1, 6, 20, INPUT),
            ("cuda_runtime", "cudaLaunchKernel", 1, 10, 3, r#""correlation": 7"#),
            ("kernel", "ncclKernel_AllReduce", 20, 20, 30 + wait, r#""correlation": 7, "device": 0, "stream": 20"#),
            ("cpu_op", "c10d::alltoall_base_", 1, 60, 30, ""),
            ("user_annotation", "nccl:all_to_all", 1, 62, 20, sent),
            ("cuda_runtime", "cudaLaunchKernel", 1, 70, 3, r#""correlation": 8"#),
            ("kernel", "ncclKernel_SendRecv", 20, 100, 40, r#""correlation": 8, "device": 0, "stream": 20"#),
            // Its kernel was not recorded: how long its label takes says nothing of the transfer.
            ("cpu_op", "record_param_comms", 1, 150, 30, ""),
            ("user_annotation", "nccl:broadcast", 1, 152, 20, ""),
        ]
    };
    let first = rank(0, r#""Input Dims": [[500]], "Input type": ["long"]"#);
    let second = rank(5, r#""Input Dims": [[800]], "Input type": ["long"]"#);
    let trace = opened(&[&first, &second]);
    let expected = [
        "rank 0 all_to_all: 1 calls, 0 works, 1 kernels, 4000 bytes, host 30000, device 40000",
        "rank 0 all_reduce: 1 calls, 0 works, 1 kernels, 4000 bytes, host 30000, device 30000",
        "rank 0 broadcast: 1 calls, 0 works, 0 kernels, 0 bytes, host 30000, device 0",
        "rank 1 all_to_all: 1 calls, 0 works, 1 kernels, 6400 bytes, host 30000, device 40000",
        "rank 1 all_reduce: 1 calls, 0 works, 1 kernels, 4000 bytes, host 30000, device 35000",
        "rank 1 broadcast: 1 calls, 0 works, 0 kernels, 0 bytes, host 30000, device 0",
    ];
    assert_eq!(lines(&trace), expected);
    assert_eq!(matched(&trace), [(0, 2, 70_000, 0), (1, 2, 70_000, 5_000)]);
}

#[test]
fn labels_of_gloo_on_its_threads_are_works() {
    let rank = |wait: i64| -> [Row<'_>; 2] {
        [
            ("cpu_op", "c10d::allreduce_", 1, 0, 10, r#""Input Dims": [[[10, 100]]], "Input type": ["TensorList"]"#),
            ("user_annotation", "gloo:all_reduce", 2, 5, 40 + wait, INPUT),
        ]
    };
    let trace = opened(&[&rank(0), &rank(7)]);
    let expected = [
        "rank 0 all_reduce: 0 calls, 1 works, 0 kernels, 4000 bytes, host 0, device 0",
        "rank 1 all_reduce: 0 calls, 1 works, 0 kernels, 4000 bytes, host 0, device 0",
    ];
    assert_eq!(lines(&trace), expected);
    let rows = stragglers(&trace, &Selection::default());
    let matched: Vec<_> = rows.iter().map(|row| (row.rank, row.transfer_ns, row.waiting_ns)).collect();
    assert_eq!(matched, [(0, 40_000, 0), (1, 40_000, 7_000)]);
}

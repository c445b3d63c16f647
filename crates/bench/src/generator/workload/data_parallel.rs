//! `DistributedDataParallel` in the backward pass: gradients are collected in buckets, a full bucket is reduced over all
//! ranks while the backward pass goes on.

use super::super::builder::ScriptBuilder;
use super::super::kernels::Stream;
use super::super::memory::Use;

/// A bucket is full from this many elements on.
const BUCKET_ELEMENTS: u64 = 12_500_000;
/// Ranks of the job.
pub(in super::super) const WORLD_SIZE: u32 = 8;
const RANKS: &str = "[0, 1, 2, 3, 4, 5, 6, 7]";

/// A parameter's gradient is whole: keeps it, and sends its bucket on its way when that is full.
pub(in super::super) fn accumulate(script: &mut ScriptBuilder, sizes: &str) {
    let name = "torch::autograd::AccumulateGrad";
    let tensor = format!("bf16[{sizes}]");
    let outer = format!("autograd::engine::evaluate_function: {name}");
    script.op_with(&outer, String::new(), None, None, |script| {
        script.op(name, &tensor, |script| {
            script.op("aten::detach", &tensor, |script| script.op("detach", &tensor, |_| {}));
            script.take(Use::Gradient, 2 * elements(sizes));
        });
        script.op("torch::distributed::reducer::mul_out", &format!("{tensor} f64[] {tensor}"), |script| {
            script.op("aten::mul", &format!("{tensor} f64[]"), |script| script.launch("mul"));
        });
        script.bucket.push(sizes.into());
        if script.bucket.iter().map(|sizes| elements(sizes)).sum::<u64>() >= BUCKET_ELEMENTS {
            all_reduce(script);
        }
    });
}

/// The last bucket, and what all of them were reduced to, copied back.
pub(in super::super) fn finish(script: &mut ScriptBuilder) {
    if !script.bucket.is_empty() {
        all_reduce(script);
    }
    script.call("cudaEventRecord");
    script.stream_waits(Stream::Compute, Stream::Communication);
    for sizes in std::mem::take(&mut script.reduced) {
        let tensor = format!("bf16[{sizes}]");
        script.op_with("torch.distributed.ddp.reducer::copy_bucket_to_grad", String::new(), None, None, |script| {
            script.op("aten::copy_", &format!("{tensor} {tensor} =False"), |script| {
                let bytes = 2 * elements(&sizes);
                script.copy("Memcpy DtoD (Device -> Device)", bytes, 1_300, Stream::Compute);
            });
        });
    }
}

fn all_reduce(script: &mut ScriptBuilder) {
    let bucket = std::mem::take(&mut script.bucket);
    let count: u64 = bucket.iter().map(|sizes| elements(sizes)).sum();
    script.reduced.extend(bucket);
    script.op("c10d::allreduce_", &format!("list({count}) - - - =False =-1"), |script| {
        script.op_with("record_param_comms", collective(count, ", ") + &process_group(", "), None, None, |script| {
            script.call("cudaStreamIsCapturing");
            script.stream_waits(Stream::Communication, Stream::Compute);
            let arguments = super::super::inputs::arguments(&format!("bf16[{count}]"));
            script.label("nccl:all_reduce", arguments, |script| {
                script.call("cudaStreamGetCaptureInfo_v2");
                script.call("cudaEventRecord");
                let more = collective_of_kernel(count);
                script.launch_with("cudaLaunchKernelExC", "all_reduce", Stream::Communication, &more);
                script.call("cudaEventRecord");
            });
            script.call("cudaEventRecord");
        });
    });
}

/// What NCCL is asked to do.
fn collective(count: u64, end: &str) -> String {
    format!(
        r#""Collective name": "allreduce", "In msg nelems": {count}, "Out msg nelems": {count}, "Group size": {WORLD_SIZE}, "dtype": "BFloat16", "In split size": "[]", "Out split size": "[]"{end}"#
    )
}

/// Who takes part.
fn process_group(end: &str) -> String {
    format!(
        r#""Global rank start": 0, "Global rank stride": 1, "Rank": 0, "Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": "{RANKS}"{end}"#
    )
}

fn collective_of_kernel(count: u64) -> String {
    let group = format!(
        r#""Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": "{RANKS}""#
    );
    format!(", {}, {group}", collective(count, ""))
}

fn elements(sizes: &str) -> u64 {
    sizes.split(',').map(|size| size.parse::<u64>().expect("a size")).product()
}

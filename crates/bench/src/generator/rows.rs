//! Rows laid out as Kineto writes them: the texts that are the same in every step, and the flow rows.

use super::kernels::Stream;
use super::script::Thread;
use super::sink::Sink;
use std::io;

/// The process; also the number of its main thread.
pub(super) const PID: u32 = 25286;
/// The thread of the backward pass.
pub(super) const AUTOGRAD_TID: u32 = 25871;

/// Between a row's name and its time, for rows of a thread.
pub(super) fn on_thread(thread: Thread) -> &'static str {
    match thread {
        Thread::Main => "\", \"pid\": 25286, \"tid\": 25286,\n    \"ts\": ",
        Thread::Autograd => "\", \"pid\": 25286, \"tid\": 25871,\n    \"ts\": ",
    }
}

/// Between a row's name and its time, for rows of a stream.
pub(super) fn on_stream(stream: Stream) -> String {
    format!("\", \"pid\": 0, \"tid\": {},\n    \"ts\": ", stream.number())
}

/// The end of a row with arguments.
pub(super) const END: &str = "\n    }\n  },";

/// A row up to the end of its name.
pub(super) fn head(category: &str, name: &str) -> String {
    format!("\n  {{\n    \"ph\": \"X\", \"cat\": \"{category}\", \"name\": \"{name}")
}

/// A row of device work up to its time.
pub(super) fn work_head(category: &str, name: &str, stream: Stream) -> String {
    head(category, name) + &on_stream(stream)
}

/// Where device work lies: its arguments up to the correlation id.
pub(super) fn place(is_kernel: bool, stream: Stream) -> String {
    let queued = if is_kernel { "\"queued\": 0, " } else { "" };
    format!("      {queued}\"device\": 0, \"context\": 1,      \"stream\": {}, \"correlation\": ", stream.number())
}

/// One end of an arrow, and where it lies.
#[derive(Clone, Copy)]
pub(super) struct FlowEnd {
    pub(super) is_start: bool,
    pub(super) category: &'static str,
    pub(super) id: u64,
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) ns: i64,
}

/// Writes one end of an arrow.
pub(super) fn flow(sink: &mut Sink<'_>, end: FlowEnd) -> io::Result<()> {
    sink.text(if end.is_start { "\n  {\n    \"ph\": \"s\", \"id\": " } else { "\n  {\n    \"ph\": \"f\", \"id\": " });
    sink.number(end.id);
    sink.text(", \"pid\": ");
    sink.number(u64::from(end.pid));
    sink.text(", \"tid\": ");
    sink.number(u64::from(end.tid));
    sink.text(", \"ts\": ");
    sink.microseconds(end.ns);
    sink.text(",\n    \"cat\": \"");
    sink.text(end.category);
    sink.text("\", \"name\": \"");
    sink.text(end.category);
    sink.text(if end.is_start { "\"\n  }," } else { "\", \"bp\": \"e\"\n  }," });
    sink.end_row()
}

/// What CUPTI knows of a runtime or driver function.
#[derive(Clone, Copy)]
pub(super) struct CallKind {
    pub(super) category: &'static str,
    pub(super) cbid: u32,
    /// What a call takes by itself, about.
    pub(super) ns: u32,
    /// Kineto draws an arrow from its calls.
    pub(super) can_launch: bool,
}

/// The function called `name`.
///
/// # Panics
/// When the workload calls one that is not listed.
pub(super) fn call_kind(name: &str) -> CallKind {
    let (cbid, ns, can_launch) = match name {
        "cudaFuncGetAttributes" => (15, 1_900, false),
        "cudaMemcpyAsync" => (41, 5_200, true),
        "cudaMemsetAsync" => (51, 3_400, true),
        "cudaStreamSynchronize" => (131, 1_700, true),
        "cudaEventRecord" => (135, 1_100, false),
        "cudaEventQuery" => (136, 700, false),
        "cudaStreamWaitEvent" => (147, 900, true),
        "cudaLaunchKernel" => (211, 2_900, true),
        "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags" => (251, 900, false),
        "cudaFuncSetAttribute" => (273, 260, false),
        "cuLaunchKernel" => (307, 4_400, true),
        "cudaStreamIsCapturing" => (317, 420, false),
        "cudaStreamGetCaptureInfo_v2" => (409, 480, false),
        "cudaLaunchKernelExC" => (430, 5_100, true),
        other => panic!("no runtime function {other:?}"),
    };
    let category = if name.starts_with("cuda") { "cuda_runtime" } else { "cuda_driver" };
    CallKind { category, cbid, ns, can_launch }
}

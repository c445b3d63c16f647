//! What stands around the rows of steps: metadata before them, names of processes and threads and metadata after them.

use super::rows::{AUTOGRAD_TID, PID};
use super::sink::Sink;
use super::timeline::START_NS;
use super::workload::data_parallel::WORLD_SIZE;
use super::{Options, kernels};
use std::io;

/// The rows' times are relative to this.
const BASE_TIME_NS: u64 = 1_751_410_836_000_000_000;
/// The profiler was started this long before the first row.
const SPAN_BEFORE_NS: i64 = 52_347;

/// Everything before the first row.
pub(super) fn write_head(sink: &mut Sink<'_>, options: &Options) {
    let device = |id: u32| {
        format!(
            r#"
    {{
      "id": {id}, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85018279936,
      "computeMajor": 9, "computeMinor": 0,
      "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048,
      "regsPerBlock": 65536, "warpSize": 32,
      "sharedMemPerBlock": 49152, "numSms": {}
    , "regsPerMultiprocessor": 65536, "sharedMemPerBlockOptin": 232448, "sharedMemPerMultiprocessor": 233472
    }}"#,
            kernels::SM_COUNT
        )
    };
    sink.text("\n{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [");
    sink.text(&(0..WORLD_SIZE).map(device).collect::<Vec<_>>().join(","));
    let ranks: Vec<String> = (0..WORLD_SIZE).map(|rank| rank.to_string()).collect();
    sink.text(&format!(
        r#"
  ],
  "cuda_driver_version": 12090,
  "cuda_runtime_version": 12040,
  "cupti_version": 22,
  "distributedInfo": {{"backend": "nccl", "rank": 0, "world_size": {WORLD_SIZE}, "pg_count": 1, "pg_config": [{{"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": {WORLD_SIZE}, "ranks": [{}]}}], "nccl_version": "2.21.5"}},
  "profile_memory": {},
  "record_shapes": 1,
  "with_stack": {},
  "trace_id": "D74EA3FAC1814011AB8FC4FC00427B48",
  "traceEvents": ["#,
        ranks.join(", "),
        u8::from(options.has_memory),
        u8::from(options.has_stacks),
    ));
}

/// Everything after the rows of steps, which end at `end_ns`.
pub(super) fn write_tail(sink: &mut Sink<'_>, end_ns: i64) -> io::Result<()> {
    let mut names = Names { sink, ns: START_NS - 21_650 };
    names.process(PID, "CPU", PID)?;
    for device in 0..WORLD_SIZE {
        names.process(device, &format!("GPU {device}"), 5_000_000 + device)?;
    }
    for stream in kernels::Stream::ALL {
        names.thread(0, stream.number(), &format!("stream {} ", stream.number()))?;
    }
    for (tid, name) in [(AUTOGRAD_TID, "python3"), (PID, "python3"), (AUTOGRAD_TID, "pt_autograd_0")] {
        names.thread(PID, tid, &format!("thread {tid} ({name})"))?;
    }
    let start_ns = START_NS - SPAN_BEFORE_NS;
    sink.text("\n  {\n    \"ph\": \"X\", \"cat\": \"Trace\", \"ts\": ");
    sink.microseconds(start_ns);
    sink.text(", \"dur\": ");
    sink.microseconds(end_ns - start_ns);
    sink.text(",\n    \"pid\": \"Spans\", \"tid\": \"PyTorch Profiler\",\n    \"name\": \"PyTorch Profiler (0)\",");
    sink.text("\n    \"args\": {\n      \"Op count\": 0\n    }\n  },");
    sink.end_row()?;
    sink.text("\n  {\n    \"name\": \"process_sort_index\", \"ph\": \"M\", \"ts\": ");
    sink.microseconds(start_ns);
    sink.text(",\n    \"pid\": \"Spans\", \"tid\": 0,\n    \"args\": {\n      \"sort_index\": 536870912\n    }\n  },");
    sink.end_row()?;
    sink.text("\n  {\n    \"name\": \"Iteration Start: PyTorch Profiler\", \"ph\": \"i\", \"s\": \"g\",");
    sink.text("\n    \"pid\": \"Traces\", \"tid\": \"Trace PyTorch Profiler\", \"ts\": ");
    sink.microseconds(start_ns);
    sink.text("\n  },");
    sink.end_row()?;
    sink.text("\n  {\n    \"name\": \"Record Window End\", \"ph\": \"i\", \"s\": \"g\",\n    \"pid\": \"\", \"tid\": \"\", \"ts\": ");
    sink.microseconds(end_ns + 14_231_409);
    sink.text("\n  }\n  ],\n  \"traceName\": \"/tmp/trace.json\",\n  \"displayTimeUnit\": \"ms\",\n  \"baseTimeNanoseconds\": ");
    sink.number(BASE_TIME_NS);
    sink.text("\n}\n");
    sink.end_row()
}

/// Writes the rows that name processes and threads.
struct Names<'a, 'b> {
    sink: &'a mut Sink<'b>,
    ns: i64,
}

impl Names<'_, '_> {
    fn process(&mut self, pid: u32, label: &str, sort_index: u32) -> io::Result<()> {
        self.row("process_name", pid, 0, "\"name\": \"python3\"")?;
        self.row("process_labels", pid, 0, &format!("\"labels\": \"{label}\""))?;
        self.row("process_sort_index", pid, 0, &format!("\"sort_index\": {sort_index}"))
    }

    fn thread(&mut self, pid: u32, tid: u32, name: &str) -> io::Result<()> {
        self.row("thread_name", pid, tid, &format!("\"name\": \"{name}\""))?;
        self.row("thread_sort_index", pid, tid, &format!("\"sort_index\": {tid}"))
    }

    fn row(&mut self, name: &str, pid: u32, tid: u32, argument: &str) -> io::Result<()> {
        self.sink.text(&format!("\n  {{\n    \"name\": \"{name}\", \"ph\": \"M\", \"ts\": "));
        self.sink.microseconds(self.ns);
        self.sink
            .text(&format!(", \"pid\": {pid}, \"tid\": {tid},\n    \"args\": {{\n      {argument}\n    }}\n  }},"));
        self.sink.end_row()
    }
}

//! Calls of the CUDA runtime, and the work that they put into streams.

use super::super::kernels::{Stream, kernel};
use super::super::rows::{self, call_kind};
use super::super::script::{Act, CallRow, Projection, Sync, Work};
use super::ScriptBuilder;

impl ScriptBuilder {
    /// A runtime call that enqueues nothing.
    pub(in super::super) fn call(&mut self, name: &'static str) {
        self.call_with(name, |_, _| {});
    }

    /// Launches a kernel of the table into the stream of computing.
    pub(in super::super) fn launch(&mut self, key: &str) {
        self.launch_with("cudaLaunchKernel", key, Stream::Compute, "");
    }

    /// Launches a kernel of the table with a call of that name; `more` is added to its arguments.
    pub(in super::super) fn launch_with(&mut self, call: &'static str, key: &str, stream: Stream, more: &str) {
        let kernel = kernel(key);
        let head = rows::work_head("kernel", kernel.name, stream);
        let (place, arguments) = (rows::place(true, stream), kernel.arguments + more);
        self.enqueue(call, Work { stream, ns: kernel.ns, head, place, arguments, bytes: None, projection: None });
    }

    /// Copies bytes; `name` says from where to where.
    pub(in super::super) fn copy(&mut self, name: &str, bytes: u64, gb_per_s: u64, stream: Stream) {
        let ns = (bytes / gb_per_s).max(1_200) as u32;
        self.enqueue("cudaMemcpyAsync", move_of("gpu_memcpy", name, bytes, ns, stream));
    }

    /// Sets bytes to zero.
    pub(in super::super) fn set(&mut self, bytes: u64) {
        let ns = (bytes / 2_000).max(800) as u32;
        self.enqueue("cudaMemsetAsync", move_of("gpu_memset", "Memset (Device)", bytes, ns, Stream::Compute));
    }

    /// Lets `stream` wait for what is in `other` now.
    pub(in super::super) fn stream_waits(&mut self, stream: Stream, other: Stream) {
        self.call("cudaEventRecord");
        let record = self.script.correlations;
        self.call_with("cudaStreamWaitEvent", |script, call| {
            script.script.acts.push(Act::StreamWaits(stream, other));
            script.script.calls[call].sync = Some(Sync::Event(stream, other, record));
        });
    }

    /// Waits on the host for what is in the stream of computing.
    pub(in super::super) fn synchronize(&mut self) {
        self.call_with("cudaStreamSynchronize", |script, call| {
            script.script.acts.push(Act::HostWaits(Stream::Compute));
            script.script.calls[call].sync = Some(Sync::Stream(Stream::Compute));
        });
    }

    /// A runtime call; `inner` gets its place in the list of calls.
    fn call_with(&mut self, name: &'static str, inner: impl FnOnce(&mut Self, usize)) {
        let kind = call_kind(name);
        let slice = self.begin(kind.ns);
        let place = self.script.calls.len();
        // Calls that the profiler leaves out take correlation ids too.
        self.script.correlations += 1 + (place as u32 * 7 + place as u32 / 3) % 11;
        self.script.calls.push(CallRow {
            slice,
            thread: self.thread,
            head: rows::head(kind.category, name),
            cbid: kind.cbid,
            external: self.ops[self.thread as usize].last().copied(),
            correlation: self.script.correlations,
            can_launch: kind.can_launch,
            work: None,
            sync: None,
        });
        inner(self, place);
        self.end(slice);
    }

    fn enqueue(&mut self, call: &'static str, work: Work) {
        self.call_with(call, |script, call| {
            let projection = script.projection(work.stream);
            let place = script.script.works.len() as u32;
            script.script.works.push(Work { projection, ..work });
            script.script.calls[call].work = Some(place);
            script.script.acts.push(Act::Enqueue(place));
        });
    }

    /// The projection of the innermost label onto a stream.
    fn projection(&mut self, stream: Stream) -> Option<u32> {
        let (external, name) = self.labels[self.thread as usize].last()?;
        let next = self.script.projections.len() as u32;
        let projection = *self.projections.entry((*external, stream.number())).or_insert(next);
        if projection == next {
            let head = rows::head("gpu_user_annotation", name);
            let is_numbered = name.ends_with('#');
            self.script.projections.push(Projection { stream, head, is_numbered, external: *external });
        }
        Some(projection)
    }
}

/// A copy or a memset.
fn move_of(category: &str, name: &str, bytes: u64, ns: u32, stream: Stream) -> Work {
    let (head, place) = (rows::work_head(category, name, stream), rows::place(false, stream));
    Work { stream, ns, head, place, arguments: String::new(), bytes: Some(bytes), projection: None }
}

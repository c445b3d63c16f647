//! What every trace is like, whatever it was read from.

use stepscope_analyses::step_breakdown::step_breakdown;
use stepscope_analyses::temporal_breakdown::temporal_breakdown;
use stepscope_analyses::{AnalysisContext, Selection, catalogue};
use stepscope_trace::{SliceId, Trace};

/// Asserts that ids are in range, slices nest, rows are in order, findings count something, and that every analysis
/// answers and its parts sum.
pub(crate) fn check(trace: &Trace) {
    check_slices(trace);
    check_references(trace);
    check_order(trace);
    for finding in trace.findings.iter() {
        assert!(finding.count > 0 && finding.examples.len() as u64 <= finding.count, "{finding:?}");
    }
    check_analyses(trace);
}

fn check_slices(trace: &Trace) {
    let mut next = 0;
    for (at, track) in trace.tracks.iter().enumerate() {
        assert_eq!(track.slices.start, next, "tracks share out all slices");
        next = track.slices.end;
        for id in track.slice_ids() {
            let span = trace.slices.span(id);
            assert_eq!(trace.slices.track[id.index()].index(), at, "a slice knows its track");
            assert!(span.start_ns >= 0 && span.end_ns >= span.start_ns, "time begins at the earliest event");
            let Some(parent) = trace.slices.parent(id) else { continue };
            let outer = trace.slices.span(parent);
            assert!(track.slices.contains(&parent.0) && parent < id, "a parent stands before its children");
            assert!(outer.start_ns <= span.start_ns && span.end_ns <= outer.end_ns, "a parent holds its children");
        }
        let starts = &trace.slices.start_ns[track.slices.start as usize..track.slices.end as usize];
        assert!(starts.is_sorted(), "slices of a track are in order");
    }
    assert_eq!(next as usize, trace.slices.len(), "every slice has a track");
}

fn check_references(trace: &Trace) {
    let is_slice = |id: SliceId| assert!(id.index() < trace.slices.len(), "a slice that is there");
    for id in trace.slices.ids() {
        let _ = trace.slice_name(id);
    }
    for track in &trace.tracks {
        assert!(track.process.index() < trace.processes.len());
        assert!(track.device.is_none_or(|device| device.index() < trace.devices.len()));
    }
    for event in trace.device_events.iter() {
        assert!(trace.slices.kind(event.slice).is_device_event(), "device work on a device");
        assert!(event.device.index() < trace.devices.len());
        event.launch.into_iter().chain(event.op).for_each(is_slice);
    }
    trace.flows.iter().for_each(|flow| [flow.from, flow.to].into_iter().for_each(is_slice));
    trace.ops.slice.iter().copied().for_each(is_slice);
    trace.io.iter().for_each(|row| is_slice(row.slice));
    trace.collectives.iter().for_each(|row| is_slice(row.slice));
    assert!(trace.roles.iter().all(|(name, _)| name.index() < trace.strings.len()));
    for wait in &trace.synchronizations {
        [Some(wait.slice), wait.call, wait.event_record].into_iter().flatten().for_each(is_slice);
    }
    for event in &trace.memory {
        assert!(event.track.index() < trace.tracks.len());
        event.op.into_iter().for_each(is_slice);
    }
}

fn check_order(trace: &Trace) {
    assert!(trace.instants.time_ns.is_sorted() && trace.memory.is_sorted_by_key(|event| event.time_ns));
    assert!(trace.io.is_sorted_by_key(|row| row.slice) && trace.collectives.is_sorted_by_key(|row| row.slice));
    assert!(trace.roles.is_sorted_by(|a, b| a.0 < b.0), "a name has one role");
    assert!(trace.device_events.iter().is_sorted_by_key(|event| trace.slices.start_ns[event.slice.index()]));
    assert!(trace.steps.is_sorted_by_key(|step| (step.rank, step.process, step.span)));
    for counter in &trace.counters {
        assert!(counter.time_ns.is_sorted() && counter.time_ns.len() == counter.value.len());
    }
}

fn check_analyses(trace: &Trace) {
    let selection = Selection::default();
    for row in step_breakdown(trace, &selection) {
        let device_ns = row.kernel_ns + row.comm_ns + row.memcpy_ns + row.memset_ns;
        let host_ns = row.runtime_ns + row.dataloader_ns + row.io_ns + row.cpu_ns;
        assert_eq!(device_ns + host_ns + row.other_ns, row.total_ns, "parts sum to the step");
    }
    for row in temporal_breakdown(trace, &selection) {
        let parts_ns = row.compute_ns + row.exposed_comm_ns + row.exposed_copy_ns + row.idle_ns;
        assert_eq!(parts_ns, row.span_ns, "parts sum to the window");
    }
    for analysis in catalogue() {
        let table = (analysis.run)(&AnalysisContext::new(trace, &selection)).table;
        assert!(table.columns.iter().all(|column| column.values.len() == table.len()), "{}", analysis.name);
    }
}

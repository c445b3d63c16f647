//! What is known of a slice beside its place, as names and values.

use stepscope_base::{StringId, StringTable};
use stepscope_trace::{DeviceEvent, DeviceEventClass, DeviceFact, FactValue, SliceId, Trace};

type Args = Vec<(String, String)>;

fn add(args: &mut Args, name: &str, value: impl ToString) {
    args.push((name.to_string(), value.to_string()));
}

fn add_known<T: ToString>(args: &mut Args, name: &str, value: Option<T>) {
    value.into_iter().for_each(|value| add(args, name, value));
}

fn add_text(trace: &Trace, args: &mut Args, name: &str, text: StringId) {
    if text != StringTable::EMPTY {
        add(args, name, trace.strings.get(text));
    }
}

/// What is known of an op, a module, a collective, a wait, or a call that uses a file.
pub(super) fn host_args(trace: &Trace, slice: SliceId) -> Args {
    let mut args = Args::new();
    if let Some(op) = trace.ops.get(slice) {
        add_text(trace, &mut args, "overload", op.overload);
        let inputs = trace.ops.inputs(op.inputs);
        add_text(trace, &mut args, "input shapes", inputs.dims);
        add_text(trace, &mut args, "input types", inputs.types);
        add_text(trace, &mut args, "input strides", inputs.strides);
        add_text(trace, &mut args, "concrete inputs", inputs.concrete);
        add_text(trace, &mut args, "keyword inputs", inputs.keywords);
        add_known(&mut args, "sequence number", op.sequence_number);
        add_known(&mut args, "forward thread", op.forward_thread);
    }
    if let Ok(at) = trace.module_calls.binary_search_by_key(&slice, |row| row.slice) {
        let row = &trace.module_calls[at];
        add_text(trace, &mut args, "class", row.class);
        add_known(&mut args, "parameters", row.size.map(|size| size.parameters));
        add_known(&mut args, "trainable parameters", row.size.map(|size| size.trainable));
    }
    if let Ok(at) = trace.collectives.binary_search_by_key(&slice, |row| row.slice) {
        let row = &trace.collectives[at];
        add_text(trace, &mut args, "collective", row.name);
        add_text(trace, &mut args, "element type", row.dtype);
        add_known(&mut args, "elements in", row.input_elements);
        add_known(&mut args, "elements out", row.output_elements);
        add_text(trace, &mut args, "input split sizes", row.input_split_sizes);
        add_text(trace, &mut args, "output split sizes", row.output_split_sizes);
        add_text(trace, &mut args, "process group", row.group);
        add_text(trace, &mut args, "process group description", row.group_description);
        add_known(&mut args, "group size", row.group_size);
        add_text(trace, &mut args, "group ranks", row.group_ranks);
        add_known(&mut args, "rank in the group", row.group_rank);
        add_known(&mut args, "source rank", row.source_rank);
        add_known(&mut args, "destination rank", row.destination_rank);
        add_known(&mut args, "asynchronous", row.is_async);
        add_known(&mut args, "collective number", row.sequence_number);
    }
    if let Ok(at) = trace.synchronizations.binary_search_by_key(&slice, |row| row.slice) {
        let row = &trace.synchronizations[at];
        add(&mut args, "waits for", row.kind.as_str());
        add_known(&mut args, "stream", row.stream);
        add_known(&mut args, "event recorded on stream", row.event_stream);
    }
    if let Ok(at) = trace.io.binary_search_by_key(&slice, |row| row.slice) {
        let row = &trace.io[at];
        add(&mut args, "layer", row.layer.as_str());
        add(&mut args, "action", row.action.as_str());
        add_text(trace, &mut args, "file", row.file);
        add_text(trace, &mut args, "other file", row.other_file);
        add_known(&mut args, "bytes", row.bytes);
        add_known(&mut args, "asked bytes", row.asked_bytes);
        add_known(&mut args, "offset", row.offset);
        add_known(&mut args, "errno", row.errno);
    }
    args
}

/// What is known of work on a device.
pub(super) fn device_args(trace: &Trace, event: &DeviceEvent) -> Args {
    let mut args = Args::new();
    add(&mut args, "device", trace.devices[event.device.index()].ordinal);
    add_known(&mut args, "stream", event.stream);
    add_known(&mut args, "context", event.context);
    for fact in DeviceFact::ALL {
        match fact.value {
            _ if fact.column == "context" => {}
            FactValue::Sizes(of) => add_known(&mut args, fact.title, of(event).map(|sizes| format!("{sizes:?}"))),
            FactValue::Int(of) => add_known(&mut args, fact.title, of(event)),
            FactValue::Unsigned(of) => add_known(&mut args, fact.title, of(event)),
            FactValue::Float(of) => add_known(&mut args, fact.title, of(event)),
            FactValue::Ratio(of) => {
                let percent = of(event).map(|ratio| format!("{:.0} %", ratio * 100.0));
                add_known(&mut args, fact.title.trim_end_matches(" ratio"), percent);
            }
            FactValue::Flag(of) if fact.column != "tensor_cores" || event.class == DeviceEventClass::Compute => {
                add_known(&mut args, fact.title, of(event));
            }
            FactValue::Flag(_) => {}
        }
        if fact.column == "bytes" {
            add_transfer(trace, event, &mut args);
        }
    }
    args
}

/// How fast a memcpy or a memset is, and where it goes.
fn add_transfer(trace: &Trace, event: &DeviceEvent, args: &mut Args) {
    let dur_ns = trace.slices.dur_ns[event.slice.index()];
    // Bytes in a nanosecond are gigabytes in a second.
    let bandwidth = event.bytes.filter(|_| dur_ns > 0).map(|bytes| bytes as f64 / dur_ns as f64);
    add_known(args, "bandwidth", bandwidth.map(|bandwidth| format!("{bandwidth:.3} GB/s")));
    if let DeviceEventClass::Memcpy(direction) = event.class {
        add(args, "copy direction", direction.as_str());
    }
}

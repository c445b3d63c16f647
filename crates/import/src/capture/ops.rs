//! What is known of an event as an op.

use stepscope_base::StringId;
use stepscope_capture::{Capture, Event, Inputs};
use stepscope_trace::{OpInfo, OpInputs, OpInputsId, TraceBuilder};

/// What events refer to beside their names, as the trace's.
#[derive(Debug)]
pub(super) struct OpInfos {
    overloads: Vec<StringId>,
    inputs: Vec<OpInputsId>,
}

impl OpInfos {
    pub(super) fn of(capture: &Capture, builder: &mut TraceBuilder) -> Self {
        let overloads = capture.overloads.iter().map(|overload| builder.strings.intern(overload)).collect();
        let inputs = capture.inputs.iter().map(|inputs| intern_inputs(inputs, builder)).collect();
        Self { overloads, inputs }
    }

    pub(super) fn info(&self, event: &Event) -> OpInfo {
        let nothing = OpInfo::default();
        OpInfo {
            sequence_number: event.sequence_number,
            forward_thread: event.forward_thread,
            scope: event.scope,
            inputs: event.inputs.and_then(|row| self.inputs.get(row as usize)).copied().unwrap_or(nothing.inputs),
            overload: self.overloads.get(event.name as usize).copied().unwrap_or(nothing.overload),
            ..nothing
        }
    }
}

fn intern_inputs(inputs: &Inputs, builder: &mut TraceBuilder) -> OpInputsId {
    let mut intern = |text: &str| builder.strings.intern(text);
    let texts = OpInputs {
        dims: intern(&inputs.dims),
        types: intern(&inputs.types),
        strides: intern(&inputs.strides),
        concrete: intern(&inputs.concrete),
        keywords: intern(&inputs.keywords),
    };
    builder.intern_inputs(texts)
}

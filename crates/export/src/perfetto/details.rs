//! What a person sees of a slice that is clicked: inputs, launch, sizes.

use super::slices::track_event;
use super::{Document, Message};
use crate::by_slice::{BySlice, device_events_by_slice};
use stepscope_base::{StringId, StringTable};
use stepscope_engine::occupancy_ratio;
use stepscope_trace::{Collective, DeviceEvent, DeviceEventId, DeviceFact, FactValue, OpInfo, SliceId, Trace};

/// Fields of `debug_annotation.proto`.
const NAME: u32 = 1;
const INT: u32 = 4;
const DOUBLE: u32 = 5;
const TEXT: u32 = 6;
const INTERNED_TEXT: u32 = 17;

/// The tables with details, for slices in ascending order.
pub(super) struct Details<'a> {
    ops: std::iter::Peekable<std::iter::Zip<std::slice::Iter<'a, SliceId>, std::slice::Iter<'a, OpInfo>>>,
    collectives: BySlice<'a, Collective>,
    device_events: Vec<(SliceId, u32)>,
    next_device_event: usize,
}

impl<'a> Details<'a> {
    pub(super) fn new(trace: &'a Trace) -> Self {
        Self {
            ops: trace.ops.slice.iter().zip(&trace.ops.info).peekable(),
            collectives: BySlice::new(&trace.collectives, |row| row.slice),
            device_events: device_events_by_slice(trace),
            next_device_event: 0,
        }
    }

    /// Adds what is known of `slice` to its begin.
    pub(super) fn add_to(&mut self, event: &mut Message, document: &mut Document<'_>, slice: SliceId) {
        let mut annotations = Annotations { event, document };
        if let Some((_, info)) = self.ops.next_if(|(of, _)| **of == slice) {
            let inputs = annotations.document.trace.ops.inputs(info.inputs);
            annotations.interned("input dims", inputs.dims);
            annotations.interned("input types", inputs.types);
            annotations.interned("concrete inputs", inputs.concrete);
            annotations.interned("call stack", info.stack);
            annotations.int("sequence number", info.sequence_number);
        }
        if let Some(collective) = self.collectives.of(slice) {
            annotations.interned("collective", collective.name);
            annotations.interned("group", collective.group_description);
            annotations.interned("dtype", collective.dtype);
            annotations.int("input elements", collective.input_elements);
            annotations.int("output elements", collective.output_elements);
            annotations.int("group size", collective.group_size);
            annotations.int("group rank", collective.group_rank);
            annotations.int("source rank", collective.source_rank);
            annotations.int("destination rank", collective.destination_rank);
            annotations.int("collective number", collective.sequence_number);
        }
        let device_event = self.device_events.get(self.next_device_event).filter(|(of, _)| *of == slice);
        if let Some((_, row)) = device_event {
            self.next_device_event += 1;
            annotations.device_event(annotations.document.trace.device_events.get(DeviceEventId(*row)));
        }
    }
}

struct Annotations<'a, 'b, 'c> {
    event: &'a mut Message,
    document: &'b mut Document<'c>,
}

impl Annotations<'_, '_, '_> {
    fn device_event(&mut self, event: DeviceEvent) {
        self.text("class", Some(event.class.as_str().into()));
        for fact in DeviceFact::ALL {
            match fact.value {
                FactValue::Sizes(of) => {
                    self.text(fact.title, of(&event).map(|[x, y, z]| format!("{x} × {y} × {z}")));
                }
                FactValue::Int(of) => self.int(fact.title, of(&event)),
                FactValue::Unsigned(of) => self.int(fact.title, of(&event).and_then(|value| i64::try_from(value).ok())),
                FactValue::Float(of) | FactValue::Ratio(of) => {
                    let device = &self.document.trace.devices[event.device.index()];
                    let is_occupancy = fact.column == "occupancy_ratio";
                    let recorded = of(&event).map(f64::from);
                    self.double(fact.title, if is_occupancy { occupancy_ratio(&event, device) } else { recorded });
                }
                FactValue::Flag(_) => {}
            }
        }
        if let Some(op) = event.op {
            self.interned("op", self.document.trace.slices.name[op.index()]);
        }
    }

    fn add(&mut self, name: &'static str, write: impl FnOnce(&mut Message)) {
        let mut annotation = Message::default();
        annotation.number(NAME, self.document.interned.detail(name));
        write(&mut annotation);
        self.event.message(track_event::DETAIL, &annotation);
    }

    fn int(&mut self, name: &'static str, value: Option<i64>) {
        value.into_iter().for_each(|value| self.add(name, |annotation| annotation.int(INT, value)));
    }

    fn double(&mut self, name: &'static str, value: Option<f64>) {
        value.into_iter().for_each(|value| self.add(name, |annotation| annotation.double(DOUBLE, value)));
    }

    fn text(&mut self, name: &'static str, value: Option<String>) {
        value.into_iter().for_each(|value| self.add(name, |annotation| annotation.text(TEXT, &value)));
    }

    fn interned(&mut self, name: &'static str, text: StringId) {
        if text != StringTable::EMPTY {
            let iid = self.document.interned.text(self.document.trace, text);
            self.add(name, |annotation| annotation.number(INTERNED_TEXT, iid));
        }
    }
}

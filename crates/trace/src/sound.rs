//! Whether a trace that was kept in a file still fits together.

use crate::{SliceId, Trace};
use stepscope_base::StringId;

impl Trace {
    /// True when all that rows of tracks, slices, operators, collectives, device events, files and steps refer to is there and
    /// slices are in order.
    pub fn is_sound(&self) -> bool {
        let len = self.slices.len();
        let slices = &self.slices;
        let lengths = [slices.track.len(), slices.dur_ns.len(), slices.name.len(), slices.kind.len()];
        let more = [slices.parent.len(), slices.depth.len(), slices.is_unfinished.len(), slices.start_ns.len()];
        if lengths.into_iter().chain(more).any(|other| other != len) {
            return false;
        }
        let is_slice = |id: SliceId| id.index() < len;
        let is_link = |id: Option<SliceId>| id.is_none_or(is_slice);
        let is_text = |id: StringId| id.index() < self.strings.len();
        let mut next = 0;
        let tracks_fit = self.tracks.iter().enumerate().all(|(at, track)| {
            let follows = track.slices.start == next && track.slices.end >= next && track.slices.end as usize <= len;
            next = track.slices.end;
            follows
                && track.process.index() < self.processes.len()
                && track.device.is_none_or(|device| device.index() < self.devices.len())
                && usize::from(track.lane) <= at
                && track.slice_ids().all(|id| slices.track[id.index()].index() == at)
                && track.slice_ids().is_sorted_by_key(|id| slices.start_ns[id.index()])
        });
        let slices_fit = || {
            slices.ids().all(|id| {
                let at = id.index();
                let end_ns = slices.start_ns[at].checked_add(slices.dur_ns[at]);
                is_text(slices.name[at])
                    && slices.dur_ns[at] >= 0
                    && end_ns.is_some()
                    && slices.parent[at].is_none_or(|parent| parent < id)
            })
        };
        let collectives_fit = || {
            self.collectives.is_sorted_by_key(|said| said.slice)
                && self.collectives.iter().all(|said| {
                    let sizes = [said.input_split_sizes, said.output_split_sizes];
                    let texts = [said.name, said.dtype, said.group, said.group_description, said.group_ranks];
                    is_slice(said.slice) && texts.into_iter().chain(sizes).all(is_text)
                })
        };
        let rows_fit = || {
            self.ops.slice.len() == self.ops.info.len()
                && self.ops.slice.iter().all(|id| is_slice(*id))
                && self.ops.info.iter().all(|info| {
                    is_text(info.stack) && is_text(info.overload) && info.inputs.index() < self.ops.inputs.len()
                })
                && self.device_events.iter().all(|event| {
                    let has_device = event.device.index() < self.devices.len();
                    has_device && is_slice(event.slice) && is_link(event.launch) && is_link(event.op)
                })
                && self
                    .io
                    .iter()
                    .all(|call| is_slice(call.slice) && [call.file, call.other_file].into_iter().all(is_text))
                && self.module_calls.iter().all(|call| is_slice(call.slice) && is_text(call.class))
                && self.roles.iter().all(|(name, _)| is_text(*name))
                && self.steps.iter().all(|step| step.process.index() < self.processes.len())
                && self.clocks.iter().all(|clock| clock.process.index() < self.processes.len())
        };
        tracks_fit && next as usize == len && slices_fit() && collectives_fit() && rows_fit()
    }
}

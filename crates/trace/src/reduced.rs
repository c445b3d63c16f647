//! A trace with few of its slices: what must be known of a rank to compare it with others.

use crate::window::Kept;
use crate::{OpInfo, OpInputs, OpInputsId, SliceId, Trace};
use stepscope_base::{StringId, StringTable};

/// A trace with few of the slices of another one.
pub struct Reduced {
    /// The trace.
    pub trace: Trace,
    kept: Kept,
}

impl Reduced {
    /// What a slice of the whole trace is in this one; `None` when it is not there.
    pub fn slice(&self, of_whole: SliceId) -> Option<SliceId> {
        self.kept.new_id(of_whole)
    }
}

impl Trace {
    /// The trace with `slices` only, in any order, and what is said of them; with all processes, devices, tracks, steps,
    /// facts and findings. Inputs of operators and all else that is no slice are left out, and so are names that nothing has.
    pub fn reduced_to(&self, slices: Vec<SliceId>) -> Reduced {
        let kept = Kept::of(slices);
        let mut trace = self.with_slices(&kept);
        trace.synchronizations.clear();
        trace.range_numbers.clear();
        trace.module_calls.clear();
        trace.dataflow.clear();
        trace.flows.clear();
        trace.ops.inputs = vec![OpInputs::UNKNOWN];
        let mut names = StringTable::default();
        let mut name = |id: &mut StringId| *id = names.intern(self.strings.get(*id));
        trace.slices.name.iter_mut().for_each(&mut name);
        for info in &mut trace.ops.info {
            *info = OpInfo { inputs: OpInputsId(0), ..*info };
            [&mut info.stack, &mut info.overload].into_iter().for_each(&mut name);
        }
        for said in &mut trace.collectives {
            let texts = [&mut said.name, &mut said.dtype, &mut said.input_split_sizes, &mut said.output_split_sizes];
            texts.into_iter().for_each(&mut name);
            [&mut said.group, &mut said.group_description, &mut said.group_ranks].into_iter().for_each(&mut name);
        }
        for event in &mut trace.io {
            [&mut event.file, &mut event.other_file].into_iter().for_each(&mut name);
        }
        trace.roles =
            trace.roles.iter().filter_map(|(id, role)| Some((names.find(self.strings.get(*id))?, *role))).collect();
        trace.roles.sort_unstable();
        trace.strings = names;
        Reduced { trace, kept }
    }
}

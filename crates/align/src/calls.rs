//! Which statements about collectives are about the same one: an operator asks for it, a range of the backend's thread
//! carries it out, a kernel carries it out.

use rustc_hash::FxHashMap;
use stepscope_base::{StringId, StringTable};
use stepscope_trace::{Collective, ProcessId, SliceId, SliceKind, Trace};

/// One collective of one process, as the host knows it.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The outermost slice that says it: the operator that asks for it, or a work that no operator is known of.
    pub slice: SliceId,
    /// What is said of it, by whom says the most.
    pub said: Collective,
    /// The range in which the backend's own thread carries it out.
    pub work: Option<SliceId>,
}

impl Call {
    /// True when an operator asked for it; else only the work is known.
    pub fn is_asked(&self) -> bool {
        self.work != Some(self.slice)
    }
}

/// The collectives of a trace.
#[derive(Debug)]
pub struct Calls {
    /// By slice.
    pub calls: Vec<Call>,
    /// The outermost slices of calls and works with their call, by slice. In a track none lies in another.
    places: Vec<(SliceId, usize)>,
    /// What kernels say of themselves.
    of_kernel: FxHashMap<SliceId, Collective>,
}

/// A collective within a group of a process.
type Number = (ProcessId, StringId, i64);

impl Calls {
    /// Puts together what `trace` says.
    pub fn of(trace: &Trace) -> Self {
        let mut all = Self { calls: Vec::new(), places: Vec::new(), of_kernel: FxHashMap::default() };
        let (device, host): (Vec<&Collective>, Vec<&Collective>) =
            trace.collectives.iter().partition(|said| trace.slices.kind(said.slice).is_device_event());
        all.of_kernel = device.into_iter().map(|said| (said.slice, *said)).collect();
        host.into_iter().for_each(|said| all.add(trace, said));
        all.join_works(trace);
        all
    }

    /// The call that a slice belongs to: the one that it lies in.
    pub fn around(&self, trace: &Trace, slice: SliceId) -> Option<usize> {
        // Not by ancestors, of which there may be as many as slices: what lies in a slice comes next in its track.
        let before = self.places.partition_point(|(of, _)| *of <= slice).checked_sub(1)?;
        let (of, call) = self.places[before];
        let is_same_track = trace.slices.track[of.index()] == trace.slices.track[slice.index()];
        let is_inside = || trace.slices.span(of).contains(trace.slices.start_ns[slice.index()]);
        (of == slice || is_same_track && is_inside()).then_some(call)
    }

    /// What a kernel says of itself.
    pub fn of_kernel(&self, kernel: SliceId) -> Option<&Collective> {
        self.of_kernel.get(&kernel)
    }

    /// What lies in a slice that is a collective is the same collective, told more exactly.
    fn add(&mut self, trace: &Trace, said: &Collective) {
        let is_work = trace.slices.kind(said.slice) == SliceKind::Annotation;
        let at = self.around(trace, said.slice).unwrap_or_else(|| {
            self.calls.push(Call { slice: said.slice, said: *said, work: None });
            self.places.push((said.slice, self.calls.len() - 1));
            self.calls.len() - 1
        });
        let call = &mut self.calls[at];
        if is_work {
            call.work = call.work.or(Some(said.slice));
        }
        if says_message(said) && !says_message(&call.said) {
            call.said = Collective { sequence_number: call.said.sequence_number.or(said.sequence_number), ..*said };
        }
    }

    /// An operator that does not say what it carries has the work of the same number in the same group.
    fn join_works(&mut self, trace: &Trace) {
        let number = |call: &Call| -> Option<Number> {
            let process = trace.tracks[trace.slices.track[call.slice.index()].index()].process;
            Some((process, call.said.group, call.said.sequence_number?))
        };
        // A number that two works have says nothing.
        let mut work_of: FxHashMap<Number, Option<usize>> = FxHashMap::default();
        for (at, call) in self.calls.iter().enumerate().filter(|(_, call)| !call.is_asked()) {
            if let Some(number) = number(call) {
                work_of.entry(number).and_modify(|known| *known = None).or_insert(Some(at));
            }
        }
        let mut joined_to: Vec<Option<usize>> = vec![None; self.calls.len()];
        for at in 0..self.calls.len() {
            let call = &self.calls[at];
            if !call.is_asked() || says_message(&call.said) {
                continue;
            }
            let Some(work) = number(call).and_then(|number| work_of.get_mut(&number)?.take()) else { continue };
            joined_to[work] = Some(at);
            self.calls[at] =
                Call { slice: call.slice, said: self.calls[work].said, work: Some(self.calls[work].slice) };
        }
        self.forget(&joined_to);
    }

    /// Forgets calls that are part of another one.
    fn forget(&mut self, joined_to: &[Option<usize>]) {
        let mut new_places = Vec::with_capacity(joined_to.len());
        let mut kept = 0;
        for joined in joined_to {
            new_places.push(kept);
            kept += usize::from(joined.is_none());
        }
        self.places.iter_mut().for_each(|(_, at)| *at = new_places[joined_to[*at].unwrap_or(*at)]);
        let mut joined = joined_to.iter();
        self.calls.retain(|_| joined.next().is_some_and(Option::is_none));
    }
}

/// True when a statement says what is carried, not only that there is a collective.
fn says_message(said: &Collective) -> bool {
    said.dtype != StringTable::EMPTY || said.input_elements.is_some() || said.output_elements.is_some()
}

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
    /// The outermost slices of calls and works, by slice.
    places: Vec<Place>,
    /// Kernels that say of themselves what they carry out, in order, and where the trace has what they say.
    of_kernel: Vec<(SliceId, u32)>,
}

/// Where a call is.
#[derive(Clone, Copy, Debug)]
struct Place {
    slice: SliceId,
    call: usize,
    /// The place of another one that this lies in, as works do that were begun one after the other and have not ended.
    outer: Option<usize>,
}

/// As `partition_point`, of a list in which that is near `from` as a rule.
fn partition_point_near<T>(list: &[T], from: usize, is_before: impl Fn(&T) -> bool) -> usize {
    let from = from.min(list.len());
    if list[..from].last().is_some_and(|last| !is_before(last)) {
        return list[..from].partition_point(is_before);
    }
    let mut reach = 1;
    while list.get(from + reach - 1).is_some_and(&is_before) {
        reach *= 2;
    }
    let low = from + reach / 2;
    low + list[low..list.len().min(from + reach)].partition_point(is_before)
}

/// A collective within a group of a process.
type Number = (ProcessId, StringId, i64);

impl Calls {
    /// Puts together what `trace` says.
    pub fn of(trace: &Trace) -> Self {
        let mut all = Self { calls: Vec::new(), places: Vec::new(), of_kernel: Vec::new() };
        for (at, said) in trace.collectives.iter().enumerate() {
            if trace.slices.kind(said.slice).is_device_event() {
                all.of_kernel.push((said.slice, at as u32));
            } else {
                all.add(trace, said);
            }
        }
        all.of_kernel.sort_unstable();
        all.join_works(trace);
        all
    }

    /// The call that a slice belongs to: the one that it lies in, the innermost of several.
    pub fn around(&self, trace: &Trace, slice: SliceId) -> Option<usize> {
        self.around_near(trace, slice, &mut 0)
    }

    /// The same, looked for from `near` on, which is set to where the search ended.
    pub(crate) fn around_near(&self, trace: &Trace, slice: SliceId, near: &mut usize) -> Option<usize> {
        *near = partition_point_near(&self.places, *near, |place| place.slice <= slice);
        self.place_before(trace, slice, *near).map(|at| self.places[at].call)
    }

    /// How many there are, of the host and of kernels.
    pub(crate) fn statements(&self) -> usize {
        self.calls.len() + self.of_kernel.len()
    }

    fn place_around(&self, trace: &Trace, slice: SliceId) -> Option<usize> {
        self.place_before(trace, slice, self.places.partition_point(|place| place.slice <= slice))
    }

    /// The place around a slice before which there are this many.
    fn place_before(&self, trace: &Trace, slice: SliceId, count: usize) -> Option<usize> {
        // Not by ancestors, of which there may be as many as slices: what lies in a slice comes next in its track.
        let before = count.checked_sub(1);
        let is_around = |at: &usize| {
            let of = self.places[*at].slice;
            let is_same_track = trace.slices.track[of.index()] == trace.slices.track[slice.index()];
            let is_inside = || trace.slices.span(of).contains(trace.slices.start_ns[slice.index()]);
            of == slice || is_same_track && is_inside()
        };
        std::iter::successors(before, |at| self.places[*at].outer).find(is_around)
    }

    /// What a kernel of the `trace` that these calls are of says of itself.
    pub fn of_kernel<'a>(&self, trace: &'a Trace, kernel: SliceId) -> Option<&'a Collective> {
        self.of_kernel_near(trace, kernel, &mut 0)
    }

    /// The same, looked for from `near` on, which is set to where the search ended.
    pub(crate) fn of_kernel_near<'a>(
        &self,
        trace: &'a Trace,
        kernel: SliceId,
        near: &mut usize,
    ) -> Option<&'a Collective> {
        *near = partition_point_near(&self.of_kernel, *near, |(of, _)| *of <= kernel);
        // Of several statements the last.
        let (of, at) = self.of_kernel[..*near].last()?;
        (*of == kernel).then(|| &trace.collectives[*at as usize])
    }

    /// What lies in a slice that is a collective is the same collective, told more exactly, unless both are works and their
    /// numbers say otherwise.
    fn add(&mut self, trace: &Trace, said: &Collective) {
        let is_work = trace.slices.kind(said.slice) == SliceKind::Annotation;
        let outer = self.place_around(trace, said.slice);
        let is_same = |at: &usize| {
            let call = &self.calls[*at];
            // What one rank sends to another is under way on the thread that asks for more.
            let is_other = if call.is_asked() { have_other_numbers } else { are_of_two };
            !is_work || !is_other(&call.said, said)
        };
        let known = outer.map(|place| self.places[place].call).filter(is_same);
        let at = known.unwrap_or_else(|| {
            self.calls.push(Call { slice: said.slice, said: *said, work: None });
            self.places.push(Place { slice: said.slice, call: self.calls.len() - 1, outer });
            self.calls.len() - 1
        });
        let call = &mut self.calls[at];
        if is_work {
            call.work = call.work.or(Some(said.slice));
        }
        if says_message(said) && !says_message(&call.said) {
            let told = if is_work { carried_out(&call.said, said) } else { *said };
            call.said = Collective { sequence_number: call.said.sequence_number.or(said.sequence_number), ..told };
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
            let said = carried_out(&call.said, &self.calls[work].said);
            self.calls[at] = Call { slice: call.slice, said, work: Some(self.calls[work].slice) };
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
        for place in &mut self.places {
            place.call = new_places[joined_to[place.call].unwrap_or(place.call)];
        }
        let mut joined = joined_to.iter();
        self.calls.retain(|_| joined.next().is_some_and(Option::is_none));
    }
}

/// True when two works of one process are of different collectives for certain: both have a number, and it is another
/// one, or of another group.
fn are_of_two(a: &Collective, b: &Collective) -> bool {
    let place = |said: &Collective| said.sequence_number.map(|number| (said.group, said.is_between_two(), number));
    place(a).zip(place(b)).is_some_and(|(a, b)| a != b)
}

/// What a work says of the collective that it carries out, which may be another one: Gloo does a reduce-scatter by an
/// all-reduce. What goes in is then the same, and what comes out is not known.
fn carried_out(asked: &Collective, work: &Collective) -> Collective {
    if asked.kind.is_none() || work.kind.is_none() || asked.kind == work.kind {
        return *work;
    }
    Collective { name: asked.name, kind: asked.kind, output_elements: None, ..*work }
}

/// True when both say which collective of a group they are, and these differ.
fn have_other_numbers(call: &Collective, work: &Collective) -> bool {
    let number = |said: &Collective| Some((said.group, said.sequence_number?));
    number(call).zip(number(work)).is_some_and(|(call, work)| call != work)
}

/// True when a statement says what is carried, not only that there is a collective.
fn says_message(said: &Collective) -> bool {
    said.dtype != StringTable::EMPTY || said.input_elements.is_some() || said.output_elements.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepscope_trace::drawn::drawn_with_collectives;

    proptest! {
        #[test]
        fn a_search_from_anywhere_finds_the_same(
            mut list in prop::collection::vec(0_u8..40, 0..60),
            from in 0_usize..70,
            value in 0_u8..42,
        ) {
            list.sort_unstable();
            let found = partition_point_near(&list, from, |at| *at < value);
            prop_assert_eq!(found, list.partition_point(|at| *at < value));
        }
    }

    #[test]
    fn collectives_with_numbers_of_their_own_are_apart_also_where_one_lies_in_the_other() {
        // The second is begun before the first has ended; the third says more of what lies around it.
        let drawing = "rank 0 label 1 wwwwwwwwww
                       rank 0 label 1 ..xxxx....
                       rank 0 cpu 1   ...a...b..";
        let said = |name, number| (name, SliceKind::Annotation, ("allreduce", "Float", Some(10), Some(number)));
        let numbers = |second: i64| {
            let trace = drawn_with_collectives(drawing, &[said("w", 5), said("x", second)]);
            let calls = Calls::of(&trace);
            let slice = |name: &str| trace.slices.ids().find(|id| trace.slice_name(*id) == name).expect("it is drawn");
            let number = |name: &str| calls.around(&trace, slice(name)).map(|at| calls.calls[at].said.sequence_number);
            (calls.calls.len(), ["w", "x", "a", "b"].map(|name| number(name).flatten()))
        };
        assert_eq!(numbers(6), (2, [Some(5), Some(6), Some(6), Some(5)]));
        assert_eq!(numbers(5), (1, [Some(5); 4]));
    }
}

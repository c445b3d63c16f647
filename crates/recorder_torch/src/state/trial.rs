//! Finds out which function of the table PyTorch calls for what, by an object whose functions only note their calls.

use super::api::{Shared, StateApi};
use super::object::{Slots, TABLE_LEN, with_table};
use super::slot_address::{Candidates, SlotAddress};
use std::cell::Cell;
use std::ffi::c_void;

/// What the noting functions saw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Seen {
    calls: usize,
    entry: usize,
    arguments: [u64; 5],
}

const NOTHING: Seen = Seen { calls: 0, entry: 0, arguments: [0; 5] };

thread_local! {
    static SEEN: Cell<Seen> = const { Cell::new(NOTHING) };
    /// What the noting functions answer.
    static ANSWER: Cell<u64> = const { Cell::new(0) };
}

/// A function that stands at `ENTRY`. It reads five arguments whatever it was given: those are registers.
unsafe extern "C" fn note<const ENTRY: usize>(_: *const c_void, a: u64, b: u64, c: u64, d: u64, e: u64) -> u64 {
    let calls = SEEN.get().calls + 1;
    SEEN.set(Seen { calls, entry: ENTRY, arguments: [a, b, c, d, e] });
    ANSWER.get()
}

macro_rules! noting {
    ($($entry:literal)*) => { [$(note::<$entry> as *const () as usize),*] };
}

const TABLE: fn() -> [usize; TABLE_LEN] = || noting!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);

/// The entries, each proven by a call of PyTorch's; or what went otherwise. The calling thread's slot is empty before
/// and after.
pub(super) fn slots(api: &StateApi) -> Result<Slots, &'static str> {
    if !api.in_slot().is_null() {
        return Err("a new thread has one already");
    }
    let object = with_table(TABLE(), api.type_info);
    // SAFETY: the object is never freed, and whatever PyTorch calls of it is a function that only notes the call.
    unsafe { api.push(Shared::uncounted(object)) };
    if !std::ptr::eq(api.in_slot(), object) {
        return Err("what is pushed does not arrive");
    }
    let slots = watch(api);
    // SAFETY: pushed above.
    let is_popped = unsafe { api.pop_if_innermost(object) };
    if !is_popped || !api.in_slot().is_null() {
        return Err("what is pushed cannot be popped");
    }
    slots
}

/// Where a thread has what holds its innermost object: the only word that is what it should be after each push and pop.
/// To be asked after [`slots`], on the same thread.
pub(super) fn slot_address(api: &StateApi) -> Option<SlotAddress> {
    let mut candidates = Candidates::of_library(api.looks_into_slots())?;
    let objects = [(); 2].map(|()| with_table(TABLE(), api.type_info));
    let mut keep = || candidates.keep(api.holder() as usize);
    for object in objects {
        // SAFETY: as in `slots`.
        unsafe { api.push(Shared::uncounted(object)) };
        keep();
    }
    for object in objects.into_iter().rev() {
        // SAFETY: pushed above, and innermost again.
        unsafe { api.pop_if_innermost(object) };
        keep();
    }
    candidates.only()
}

/// Makes PyTorch call each function.
fn watch(api: &StateApi) -> Result<Slots, &'static str> {
    const ADDRESS: u64 = 0x5354_4550_0001;
    const BYTES: i64 = -0x5354_4550_0002;
    const ALLOCATED: u64 = 0x5354_4550_0003;
    const RESERVED: u64 = 0x5354_4550_0004;
    const DEVICE: u16 = 0x0501;
    let is_device = |argument: u64| argument as u16 == DEVICE;

    // SAFETY: these functions do no more than call one of the object's.
    let wanted = asked(|| u64::from(unsafe { (api.is_memory_wanted)() }), 1);
    let is_memory_wanted = wanted.ok_or("it is not asked whether memory is wanted")?;
    // SAFETY: as above.
    let kind = asked(|| unsafe { (api.profiler_type)() } as u64, 4);
    let profiler_type = kind.ok_or("it is not asked what it is")?;
    // SAFETY: as above; the address is only handed on.
    let seen = seen_by(|| unsafe { (api.report_memory)(ADDRESS, BYTES, ALLOCATED, RESERVED, DEVICE) });
    let [address, bytes, allocated, reserved, device] = seen.arguments;
    if seen.calls != 1 || [address, bytes, allocated, reserved] != [ADDRESS, BYTES as u64, ALLOCATED, RESERVED] {
        return Err("memory is reported in another way");
    }
    let report_memory = is_device(device).then_some(seen.entry).ok_or("the device of memory is told in another way")?;
    // SAFETY: as above.
    let seen = seen_by(|| unsafe { (api.report_out_of_memory)(-BYTES, ALLOCATED, RESERVED, DEVICE) });
    let [bytes, allocated, reserved, device, _] = seen.arguments;
    if seen.calls != 1 || [bytes, allocated, reserved] != [-BYTES as u64, ALLOCATED, RESERVED] || !is_device(device) {
        return Err("a lack of memory is reported in another way");
    }
    let report_out_of_memory = seen.entry;
    ANSWER.set(0);
    // SAFETY: as above.
    if unsafe { (api.is_profiler_enabled)() } {
        return Err("zeros do not mean that profiling is off");
    }
    let entries = [report_memory, report_out_of_memory, is_memory_wanted, profiler_type];
    let are_distinct = (0..4).all(|at| !entries[..at].contains(&entries[at]));
    let slots = Slots { report_memory, report_out_of_memory, is_memory_wanted, profiler_type };
    are_distinct.then_some(slots).ok_or("one function is called for several things")
}

/// The entry that is called by `ask`, once, and whose answer comes out of it: 0, and `other`.
fn asked(ask: impl Fn() -> u64, other: u64) -> Option<usize> {
    let with_answer = |answer: u64| {
        ANSWER.set(answer);
        let mut given = 0;
        let seen = seen_by(|| given = ask());
        (seen.calls == 1 && given == answer).then_some(seen.entry)
    };
    let (first, second) = (with_answer(0)?, with_answer(other)?);
    (first == second).then_some(first)
}

fn seen_by(call: impl FnOnce()) -> Seen {
    SEEN.set(NOTHING);
    call();
    SEEN.get()
}

#[cfg(test)]
mod tests {
    use super::super::api::fake::{AS_EXPECTED, Fake, api};
    use super::*;

    fn check(fake: Fake, expected: Result<Slots, &'static str>) {
        let api = api(fake);
        assert_eq!(slots(&api), expected);
        assert!(api.in_slot().is_null());
    }

    #[test]
    fn functions_are_found_in_any_order() {
        for [report_memory, report_out_of_memory, is_memory_wanted, profiler_type] in [[2, 3, 4, 5], [9, 15, 0, 7]] {
            let entries = [report_memory, report_out_of_memory, is_memory_wanted, profiler_type];
            let slots = Slots { report_memory, report_out_of_memory, is_memory_wanted, profiler_type };
            check(Fake { entries, ..AS_EXPECTED }, Ok(slots));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let one_for_two = Fake { entries: [2, 3, 4, 4], ..AS_EXPECTED };
        check(one_for_two, Err("one function is called for several things"));
        let other_device = Fake { device_shift: 8, ..AS_EXPECTED };
        check(other_device, Err("the device of memory is told in another way"));
        check(Fake { is_enabled: true, ..AS_EXPECTED }, Err("zeros do not mean that profiling is off"));
        let lost = Fake { loses_what_is_pushed: true, ..AS_EXPECTED };
        check(lost, Err("what is pushed does not arrive"));
    }
}

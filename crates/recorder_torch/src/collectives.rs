//! What ranges say of the collectives that they are.
//!
//! Backends for devices announce each with a range `record_param_comms` and keep its facts in an object of the thread
//! ([`debug_info`]). Gloo and MPI set a range `gloo:all_reduce` whose inputs are its tensors ([`messages`]), on a thread
//! of theirs, after an op `c10d::allreduce_` asked for it; the group is not said there, and known only where the process
//! has no other ([`process_group`]).

mod debug_info;
mod gloo_groups;
mod messages;
mod probe_info;
mod process_group;

pub use debug_info::InfoLayout;
pub(crate) use gloo_groups::is_issuing;
pub use gloo_groups::set_gloo_groups;
pub use messages::{prove_tensors_begin, prove_tensors_end};
pub use probe_info::probe_collectives;
pub use process_group::set_labelled_group;

use crate::hook::Hook;
use std::ffi::{CStr, c_char};
use stepscope_recorder as recorder;

/// The name of PyTorch's record of a collective.
const RECORD: &[u8] = b"record_param_comms";
/// How the names of ranges begin that backends without such a record set.
const LABELS: [&[u8]; 3] = [b"gloo:", b"mpi:", b"ucc:"];

/// How the names of the ops begin that issue collectives.
const OPS: &[u8] = b"c10d::";
/// Of those the ones that issue just one, whatever the backend.
const OPS_OF_ONE: [&str; 16] = [
    "_allgather_base_",
    "_reduce_scatter_base_",
    "allgather_",
    "allreduce_",
    "allreduce_coalesced_",
    "alltoall_",
    "alltoall_base_",
    "barrier",
    "broadcast_",
    "gather_",
    "recv_",
    "recv_any_source_",
    "reduce_",
    "reduce_scatter_",
    "scatter_",
    "send",
];

/// True when an op of this name issues collectives.
///
/// # Safety
/// `text` is a terminated string.
#[inline(always)]
pub(crate) unsafe fn is_issue(text: *const c_char) -> bool {
    // SAFETY: the caller's promise; no byte behind the terminating zero is read, since none before it differs.
    unsafe { *text as u8 == b'c' && (1..OPS.len()).all(|at| *text.add(at) as u8 == OPS[at]) }
}

/// Records what is known of the collective that the op issues which has just begun. Of Gloo's groups that is known when
/// it ends.
///
/// # Safety
/// `text` is the op's name.
#[cold]
pub(crate) unsafe fn describe_issue(function: *const u8, text: *const c_char) {
    if gloo_groups::is_on() {
        gloo_groups::issue_begins(function as usize);
        return;
    }
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(text.add(OPS.len())) }.to_string_lossy();
    if let Some((group, number)) = process_group::issue(OPS_OF_ONE.contains(&name.as_ref())) {
        record_issue(&name, &group, number);
    }
}

/// Records what is known of the collective that the op around issues, when the range of its work is about to begin on the
/// same thread: afterwards the work is the innermost range.
///
/// # Safety
/// `text` is a terminated string.
#[cold]
pub(crate) unsafe fn describe_issue_around(hook: &Hook, text: *const c_char) {
    // SAFETY: the caller's promise; the op around is open, so that its object lives.
    unsafe {
        if is_collective(text)
            && let Some((function, group, number)) = gloo_groups::issue_continues()
        {
            let name = CStr::from_ptr((hook.api.name)(std::ptr::with_exposed_provenance(function))).to_string_lossy();
            record_issue(name.trim_start_matches("c10d::"), &group, number);
        }
    }
}

/// Records what is known of the collective that an op has issued, when it is one that ends.
///
/// # Safety
/// `function` is a live object of the hook's layout.
#[cold]
pub(crate) unsafe fn describe_issued(hook: &Hook, function: *const u8) {
    if let Some((group, number)) = gloo_groups::issue_ends(function as usize) {
        // SAFETY: the caller's promise; a name is a terminated string.
        let name = unsafe { CStr::from_ptr((hook.api.name)(function)) }.to_string_lossy();
        record_issue(name.trim_start_matches("c10d::"), &group, number);
    }
}

fn record_issue(name: &str, group: &str, number: Option<i64>) {
    let name = recorder::collectives::describe([("name", name.trim_end_matches('_').to_string())]);
    recorder::describe_collective(&format!("{name}\n{group}"), number);
}

/// True when a range of this name is a collective: few bytes are looked at.
///
/// # Safety
/// `text` is a terminated string.
#[inline]
pub(crate) unsafe fn is_collective(text: *const c_char) -> bool {
    // SAFETY: the caller's promise; no byte behind the terminating zero is read.
    unsafe { matches!(*text as u8, b'g' | b'm' | b'u' | b'r') && kind_of(CStr::from_ptr(text).to_bytes()).is_some() }
}

enum Kind<'a> {
    Record,
    /// What stands behind the backend's name.
    Label(&'a [u8]),
}

fn kind_of(name: &[u8]) -> Option<Kind<'_>> {
    if name == RECORD {
        return Some(Kind::Record);
    }
    LABELS.iter().find_map(|label| name.strip_prefix(*label)).map(Kind::Label)
}

/// Records what is known of the collective whose range has just begun.
///
/// # Safety
/// `function` is a live object of the hook's layout, `text` its name.
#[cold]
pub(crate) unsafe fn describe(hook: &Hook, function: *const u8, text: *const c_char) {
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(text) };
    let described = match kind_of(name.to_bytes()) {
        // SAFETY: the object of this thread lives while its range begins.
        Some(Kind::Record) => unsafe { debug_info::describe() },
        // SAFETY: the caller's promise.
        Some(Kind::Label(name)) => unsafe { messages::describe(hook, function, &String::from_utf8_lossy(name)) },
        None => None,
    };
    if let Some((description, sequence_number)) = described {
        recorder::describe_collective(&description, sequence_number);
    }
}

/// PyTorch's names of its element types, by number: `c10::ScalarType`, whose numbers stand in saved models and never
/// change.
const ELEMENT_TYPES: [&str; 29] = [
    "Byte",
    "Char",
    "Short",
    "Int",
    "Long",
    "Half",
    "Float",
    "Double",
    "ComplexHalf",
    "ComplexFloat",
    "ComplexDouble",
    "Bool",
    "QInt8",
    "QUInt8",
    "QInt32",
    "BFloat16",
    "QUInt4x2",
    "QUInt2x4",
    "Bits1x8",
    "Bits2x4",
    "Bits4x2",
    "Bits8",
    "Bits16",
    "Float8_e5m2",
    "Float8_e4m3fn",
    "Float8_e5m2fnuz",
    "Float8_e4m3fnuz",
    "UInt16",
    "UInt32",
];

/// The name of an element type; `None` for numbers that came later.
fn element_type(number: i32) -> Option<&'static str> {
    ELEMENT_TYPES.get(usize::try_from(number).ok()?).copied()
}

/// `[0, 1, 2]`; of long lists the beginning, as PyTorch's own profiler writes them.
fn list(values: &[i64]) -> String {
    const MOST: usize = 30;
    let texts: Vec<String> = values.iter().take(MOST).map(i64::to_string).collect();
    match values.len() {
        0..=MOST => format!("[{}]", texts.join(", ")),
        // PyTorch shows the last one as well.
        _ => format!("[{}, ..., {}]", texts[..MOST - 1].join(", "), values[values.len() - 1]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_collectives_are_known_by_their_names() {
        // SAFETY: terminated strings.
        let is = |name: &CStr| unsafe { is_collective(name.as_ptr()) };
        assert!(is(c"record_param_comms") && is(c"gloo:all_reduce") && is(c"mpi:send"));
        assert!(!is(c"record") && !is(c"gloo") && !is(c"") && !is(c"my gloo:all_reduce"));
    }

    #[test]
    fn lists_are_cut() {
        assert_eq!(list(&[]), "[]");
        assert_eq!(list(&[0, 2]), "[0, 2]");
        let long: Vec<i64> = (0..64).collect();
        assert!(list(&long).starts_with("[0, 1, 2,") && list(&long).ends_with(", 28, ..., 63]"));
    }
}

//! From what known ops looked like in memory to where the fields are. Pure: bytes in, offsets or a reason out.

use crate::known_releases::known_layout;
use std::path::PathBuf;

/// Bytes of a record-function object that are looked at.
pub(crate) const SEEN_BYTES: usize = 448;

/// Where the fields of `at::RecordFunction` are, in bytes from its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// The sequence number, i64.
    pub sequence_number: usize,
    /// The scope, u8.
    pub scope: usize,
    /// The framework's id of the thread where the range began, u64.
    pub thread: usize,
    /// For backward nodes the thread of the forward op, u64.
    pub forward_thread: usize,
    /// The inputs: address and length.
    pub inputs: usize,
}

/// Why the hook is not used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Not Linux on x86-64.
    UnsupportedPlatform,
    /// PyTorch's library is not loaded where it should be.
    LibraryNotLoaded {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// PyTorch does not export a function that the hook needs.
    MissingSymbol {
        /// Its mangled name.
        name: &'static str,
    },
    /// The operating system did not let us look.
    CannotLook {
        /// Why not.
        reason: String,
    },
    /// The known ops were not seen as they ran.
    ProbeIncomplete {
        /// What was seen: ops, user ranges, backward nodes.
        seen: [usize; 3],
    },
    /// A field has no place, or several, that explains what was seen.
    Ambiguous {
        /// The field.
        field: &'static str,
        /// The offsets that would do.
        candidates: Vec<usize>,
    },
    /// The layout differs from the one this release is known to have.
    UnexpectedLayout {
        /// The release.
        release: String,
        /// What was found.
        found: Layout,
        /// What is known.
        known: Layout,
    },
    /// PyTorch did not do with our profiler state what it should.
    StateNotUnderstood {
        /// What.
        what: &'static str,
    },
    /// Something of what ops are called with has no place, or several, that explains what was seen.
    InputsUnclear {
        /// What it is.
        field: &'static str,
        /// True when there are several places.
        is_ambiguous: bool,
    },
    /// Hooked without a successful probe.
    NotProbed,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnsupportedPlatform => write!(f, "the hook works on Linux x86-64 only"),
            Self::LibraryNotLoaded { path } => write!(f, "PyTorch's library is not loaded from {}", path.display()),
            Self::MissingSymbol { name } => write!(f, "this PyTorch does not export {name}"),
            Self::CannotLook { reason } => write!(f, "cannot look at PyTorch's objects: {reason}"),
            Self::ProbeIncomplete { seen: [ops, ranges, nodes] } => {
                write!(f, "the probe saw {ops} ops, {ranges} user ranges and {nodes} backward nodes, not what it ran")
            }
            Self::Ambiguous { field, candidates } if candidates.is_empty() => {
                write!(f, "no place in PyTorch's objects holds the {field}")
            }
            Self::Ambiguous { field, candidates } => {
                write!(f, "several places in PyTorch's objects could hold the {field}: {candidates:?}")
            }
            Self::UnexpectedLayout { release, found, known } => {
                write!(f, "torch {release} should have {known:?}, but {found:?} was found")
            }
            Self::StateNotUnderstood { what } => write!(f, "PyTorch's profiler state is not as expected: {what}"),
            Self::InputsUnclear { field, is_ambiguous: false } => {
                write!(f, "no place in PyTorch's objects explains the {field}")
            }
            Self::InputsUnclear { field, .. } => {
                write!(f, "several places in PyTorch's objects could explain the {field}")
            }
            Self::NotProbed => write!(f, "PyTorch was not probed"),
        }
    }
}

/// One range as the probe saw it begin.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) bytes: Box<[u8; SEEN_BYTES]>,
    pub(crate) name: String,
    pub(crate) overload_name: usize,
    pub(crate) num_inputs: usize,
    pub(crate) thread: u64,
}

impl Seen {
    fn word(&self, offset: usize) -> u64 {
        u64::from_le_bytes(self.bytes[offset..offset + 8].try_into().unwrap_or_default())
    }
}

/// What the probe ran.
pub(crate) struct Expected<'a> {
    /// Name of the op that ran several times.
    pub(crate) op: &'a str,
    /// Autograd's next sequence number before each of them.
    pub(crate) sequence_numbers: &'a [i64],
    /// Name of the user ranges that ran in between, as often.
    pub(crate) range: &'a str,
    /// The PyTorch release.
    pub(crate) release: &'a str,
}

/// What explains everything seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Found {
    pub(crate) layout: Layout,
    /// The address that stands for "no overload name", when there is one.
    pub(crate) no_overload: Option<usize>,
    /// Where the number is that PyTorch gives to ranges when somebody asks for it, when that can be told.
    pub(crate) number: Option<usize>,
}

/// The one layout that explains everything seen, and what else does.
pub(crate) fn solve(seen: &[Seen], expected: &Expected) -> Result<Found, Refusal> {
    let named = |name: &str| seen.iter().filter(|seen| seen.name == name).collect::<Vec<_>>();
    let (ops, ranges) = (named(expected.op), named(expected.range));
    let is_node = |seen: &&Seen| seen.name.ends_with("Backward0") && !seen.name.starts_with("autograd::");
    let nodes: Vec<&Seen> = seen.iter().filter(is_node).collect();
    let times = expected.sequence_numbers.len();
    if times < 2 || ops.len() != times || ranges.len() != times || nodes.is_empty() {
        return Err(Refusal::ProbeIncomplete { seen: [ops.len(), ranges.len(), nodes.len()] });
    }
    let sequence_number = only(
        "sequence number",
        words().filter(|at| {
            let are_counted =
                ops.iter().zip(expected.sequence_numbers).all(|(op, number)| op.word(*at) as i64 == *number);
            are_counted && ranges.iter().all(|range| range.word(*at) as i64 == -1)
        }),
    )?;
    let scope = only(
        "scope",
        words().filter(|at| {
            let is = |seen: &[&Seen], scope: u8| seen.iter().all(|seen| seen.bytes[*at] == scope);
            let follows_thread = |seen: &Seen| *at >= 8 && seen.word(*at - 8) == seen.thread;
            is(&ops, 0) && is(&nodes, 1) && is(&ranges, 7) && ops.iter().all(|op| follows_thread(op))
        }),
    )?;
    let forward_thread = only(
        "forward thread",
        words().filter(|at| {
            let is_zero = |seen: &[&Seen]| seen.iter().all(|seen| seen.word(*at) == 0);
            *at > sequence_number
                && nodes.iter().all(|node| node.word(*at) == node.thread)
                && is_zero(&ops)
                && is_zero(&ranges)
        }),
    )?;
    // Other pairs of words can look like the inputs; in every release they follow the sequence number.
    let inputs = only(
        "inputs",
        std::iter::once(sequence_number + 8).filter(|at| {
            let is_slice =
                |op: &&Seen| op.num_inputs > 0 && op.word(at + 8) as usize == op.num_inputs && op.word(*at) > 4096;
            at + 16 <= SEEN_BYTES && ops.iter().all(is_slice)
        }),
    )?;
    let layout = Layout { sequence_number, scope, thread: scope - 8, forward_thread, inputs };
    if let Some(known) = known_layout(expected.release).filter(|known| *known != layout) {
        return Err(Refusal::UnexpectedLayout { release: expected.release.into(), found: layout, known });
    }
    Ok(Found { layout, no_overload: no_overload(&ops, &ranges), number: number(seen) })
}

fn words() -> impl Iterator<Item = usize> {
    (0..=SEEN_BYTES - 8).step_by(8)
}

fn only(field: &'static str, candidates: impl Iterator<Item = usize>) -> Result<usize, Refusal> {
    let candidates: Vec<usize> = candidates.collect();
    match candidates[..] {
        [offset] => Ok(offset),
        _ => Err(Refusal::Ambiguous { field, candidates }),
    }
}

/// Ranges are counted as they begin, those of other threads among them.
fn number(seen: &[Seen]) -> Option<usize> {
    let is_count = |word: u64| (1..1 << 40).contains(&word);
    let counts = |at: &usize| {
        seen.iter().all(|seen| is_count(seen.word(*at))) && seen.is_sorted_by(|a, b| a.word(*at) < b.word(*at))
    };
    only("number", words().filter(counts)).ok()
}

/// User ranges have no schema and share one empty overload name; ops never have that address.
fn no_overload(ops: &[&Seen], ranges: &[&Seen]) -> Option<usize> {
    let shared = ranges.first()?.overload_name;
    let is_told_apart =
        ranges.iter().all(|range| range.overload_name == shared) && ops.iter().all(|op| op.overload_name != shared);
    (shared != 0 && is_told_apart).then_some(shared)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: Layout = Layout { sequence_number: 200, scope: 96, thread: 88, forward_thread: 304, inputs: 208 };
    const NUMBERS: [i64; 3] = [41, 44, 47];

    fn seen(name: &str, scope: u8, number: i64, forward_thread: u64, num_inputs: usize) -> Seen {
        let mut bytes = Box::new([0; SEEN_BYTES]);
        let mut put = |at: usize, word: u64| bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        put(LAYOUT.sequence_number, number as u64);
        put(LAYOUT.thread, 5);
        put(LAYOUT.scope, u64::from(scope));
        put(LAYOUT.forward_thread, forward_thread);
        put(LAYOUT.inputs, if num_inputs > 0 { 0x7fff_0000_1000 } else { 0 });
        put(LAYOUT.inputs + 8, num_inputs as u64);
        Seen { bytes, name: name.into(), overload_name: if scope == 7 { 16 } else { 32 }, num_inputs, thread: 5 }
    }

    fn run() -> Vec<Seen> {
        let mut all = Vec::new();
        for number in NUMBERS {
            all.push(seen("aten::exp", 0, number, 0, 1));
            all.push(seen("__probe__", 7, -1, 0, 0));
        }
        all.push(seen("ExpBackward0", 1, 47, 5, 1));
        all
    }

    const FOUND: Found = Found { layout: LAYOUT, no_overload: Some(16), number: None };

    fn check(seen: &[Seen], release: &str) -> Result<Found, Refusal> {
        solve(seen, &Expected { op: "aten::exp", sequence_numbers: &NUMBERS, range: "__probe__", release })
    }

    #[test]
    fn one_explanation_is_used() {
        assert_eq!(check(&run(), "9.9.0"), Ok(FOUND));
    }

    #[test]
    fn two_explanations_are_refused() {
        let mut all = run();
        for seen in &mut all {
            seen.bytes.copy_within(200..208, 320);
        }
        let candidates = vec![200, 320];
        assert_eq!(check(&all, "9.9.0"), Err(Refusal::Ambiguous { field: "sequence number", candidates }));
    }

    #[test]
    fn no_explanation_is_refused() {
        let mut all = run();
        all[0].bytes[200] ^= 1;
        assert_eq!(check(&all, "9.9.0"), Err(Refusal::Ambiguous { field: "sequence number", candidates: vec![] }));
    }

    #[test]
    fn ops_that_did_not_show_are_refused() {
        let all = run();
        assert_eq!(check(&all[1..], "9.9.0"), Err(Refusal::ProbeIncomplete { seen: [2, 3, 1] }));
    }

    #[test]
    fn a_known_release_with_another_layout_is_refused() {
        assert!(matches!(check(&run(), "2.5.1"), Err(Refusal::UnexpectedLayout { .. })));
        assert!(check(&run(), "2.8.0").is_ok());
    }

    #[test]
    fn overload_names_that_do_not_tell_ops_apart_are_not_used() {
        let mut all = run();
        all[0].overload_name = 16;
        assert_eq!(check(&all, "9.9.0"), Ok(Found { no_overload: None, ..FOUND }));
    }

    #[test]
    fn numbers_are_where_alone_they_are_counted() {
        let mut all = run();
        let mut put = |places: &[usize], numbers: &[u64]| {
            for (seen, number) in all.iter_mut().zip(numbers) {
                places.iter().for_each(|at| seen.bytes[*at..at + 8].copy_from_slice(&number.to_le_bytes()));
            }
            check(&all, "9.9.0").map(|found| found.number)
        };
        assert_eq!(put(&[312], &[7, 8, 9, 12, 13, 14, 15]), Ok(Some(312)));
        assert_eq!(put(&[312], &[7, 8, 9, 9, 13, 14, 15]), Ok(None), "one twice");
        assert_eq!(put(&[312], &[0, 1, 2, 3, 4, 5, 6]), Ok(None), "nobody counts");
        assert_eq!(put(&[312, 320], &[1, 2, 3, 4, 5, 6, 7]), Ok(None), "two places");
    }
}

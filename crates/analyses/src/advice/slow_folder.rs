//! Calls on files of some folders take much longer than the same calls elsewhere.

use super::facts::{Facts, share};
use super::file_calls::{FileCalls, LEAST_COUNT, longest};
use super::small_io::SMALL_BYTES;
use super::words::quoted;
use super::{Advice, GainEstimate, Judged, Lacks, Rule};
use crate::io_calls::IoCall;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use stepscope_base::StringId;
use stepscope_base::percentiles::nearest_rank_of_unsorted;
use stepscope_base::units::{format_count, format_ns, format_ratio};
use stepscope_trace::Trace;

const THRESHOLD: f64 = 0.05;
/// Calls of a folder that are compared with those of others, of one name and size.
const LEAST_ALIKE: usize = 10;
/// Calls are slow where their median takes more than this many times that of the median folder.
const TIMES_SLOWER: i64 = 4;

pub(super) const RULE: Rule = Rule {
    code: "io.slow_folder",
    fault: "Calls on files take longer in some folders",
    disproof: "Copied to where the others are, the files take as long.",
    evidence: "io_files",
    to_do: "Look what the slow folders are on: a remote file system, another mount, a full disk. Copy their files to where \
            the others are, to a local disk or into memory (`/dev/shm`), or put them into fewer, larger files.",
    judge,
};

fn judge(facts: &Facts) -> Judged {
    let ranks = FileCalls::of(facts)?;
    let mut folders = ranks.iter().flat_map(|rank| &rank.calls).filter_map(|call| folder(facts.trace, call));
    let first = folders.next();
    if !folders.any(|folder| Some(folder) != first) {
        return Err(Lacks("no calls on files of two folders: `stepscope record --io` records them"));
    }
    Ok(ranks.iter().filter_map(|rank| of_rank(facts, rank)).collect())
}

/// Calls of one name that move about as many bytes: how long they take is what the files are on.
type Alike = (StringId, u32);

/// Those of each folder.
type Folders<'a> = BTreeMap<&'a str, Vec<&'a IoCall>>;

/// Slow calls of a folder, and how long they would take in the median folder.
#[derive(Default)]
struct Slow<'a> {
    calls: Vec<&'a IoCall>,
    ns: i128,
    needed_ns: i128,
}

fn of_rank(facts: &Facts, of: &FileCalls) -> Option<Advice> {
    let (slow, compared) = slow_folders(facts.trace, of);
    let (worst, of_worst) = slow.iter().max_by_key(|(folder, slow)| (slow.ns, Reverse(**folder)))?;
    let calls: Vec<&IoCall> = slow.values().flat_map(|slow| slow.calls.iter().copied()).collect();
    let sum = |ns: fn(&Slow) -> i128| slow.values().map(ns).sum::<i128>();
    let (ns, needed_ns) = (sum(|slow| slow.ns), sum(|slow| slow.needed_ns));
    let time = of.busy(&calls);
    let saved_ns = (i128::from(time.total_ns()) * (ns - needed_ns) / ns.max(1)) as i64;
    let row = share(saved_ns, of.window_ns(), THRESHOLD)?;
    let mean = |ns: i128| format_ns((ns / of_worst.calls.len() as i128) as i64);
    Some(Advice {
        rank: Some(of.rank),
        says: format!(
            "In {} of {} folders {} calls take more than four times as long as the same calls in the median folder: in {} {} \
             each, not {}. As there, {} ({}) of {} would be saved.",
            format_count(slow.len() as i64),
            format_count(compared as i64),
            format_count(calls.len() as i64),
            quoted(worst),
            mean(of_worst.ns),
            mean(of_worst.needed_ns),
            format_ns(saved_ns),
            format_ratio(row.measured_ratio?),
            format_ns(of.window_ns())
        ),
        count: Some(calls.len() as i64),
        gain: Some((saved_ns, GainEstimate::Bound)),
        place: longest(facts, &calls),
        time,
        ..row
    })
}

/// The folders with enough slow calls, and the number of those that are compared.
fn slow_folders<'a>(trace: &'a Trace, of: &'a FileCalls) -> (BTreeMap<&'a str, Slow<'a>>, usize) {
    let mut all: BTreeMap<Alike, Folders<'a>> = BTreeMap::new();
    for call in &of.calls {
        if let Some((alike, folder)) = alike(trace, call).zip(folder(trace, call)) {
            all.entry(alike).or_default().entry(folder).or_default().push(call);
        }
    }
    let (mut slow, mut compared): (BTreeMap<&str, Slow<'_>>, BTreeSet<&str>) = Default::default();
    for folders in all.into_values() {
        let medians = folders.iter().filter(|(_, calls)| calls.len() >= LEAST_ALIKE).map(|(folder, calls)| {
            let mut times: Vec<i64> = calls.iter().map(|call| call.span.duration_ns()).collect();
            (*folder, nearest_rank_of_unsorted(&mut times, 50).unwrap_or(0))
        });
        let medians: BTreeMap<&str, i64> = medians.collect();
        let usual_ns = nearest_rank_of_unsorted(&mut medians.values().copied().collect::<Vec<_>>(), 50).unwrap_or(0);
        // Of one folder nothing is slow, and of times that a clock does not resolve nothing is known.
        if usual_ns == 0 || medians.len() < 2 {
            continue;
        }
        compared.extend(medians.keys());
        for folder in
            medians.iter().filter(|(_, ns)| **ns > usual_ns.saturating_mul(TIMES_SLOWER)).map(|(folder, _)| folder)
        {
            let of_folder = slow.entry(folder).or_default();
            for call in &folders[folder] {
                let ns = call.span.duration_ns();
                of_folder.ns += i128::from(ns);
                of_folder.needed_ns += i128::from(usual_ns.min(ns));
                of_folder.calls.push(call);
            }
        }
    }
    slow.retain(|_, slow| slow.calls.len() as i64 >= LEAST_COUNT);
    (slow, compared.len())
}

/// What a call is like; `None` for what is large, unknown, failed or no call: a bandwidth says more of large ones.
fn alike(trace: &Trace, call: &IoCall) -> Option<Alike> {
    let event = &call.event;
    let bytes = if event.action.moves_bytes() { event.bytes? } else { 0 };
    let is_small = (0..SMALL_BYTES).contains(&bytes);
    let magnitude = i64::BITS - bytes.leading_zeros();
    (is_small && !event.has_failed() && !call.is_page_fault())
        .then(|| (trace.slices.name[event.slice.index()], magnitude))
}

/// The folder of a call's file, with its last `/`; `None` for what has none, such as a socket.
fn folder<'a>(trace: &'a Trace, call: &IoCall) -> Option<&'a str> {
    let file = trace.strings.get(call.event.file);
    file.rfind('/').map(|at| &file[..=at])
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::check;
    use crate::io_calls::tests::with_calls;
    use stepscope_trace::{IoEvent, Trace};

    /// Calls `name`, as many in each of three folders: of 2 us each in two, and of `last` us in the third.
    fn trace(name: &str, count: usize, last: usize) -> Trace {
        let calls = |us: usize| format!("{}|", name.repeat(us)).repeat(count);
        let step = "0".repeat(count * 50);
        let drawing = format!("rank 0 step {step}\nrank 0 io 1 {}{}", calls(2).repeat(2), calls(last));
        let mut trace = with_calls(&drawing);
        for (at, event) in trace.io.iter_mut().enumerate() {
            let folder = ["a", "b", "slow"][at / count];
            event.file = trace.strings.intern(&format!("/data/{folder}/{at}"));
            event.bytes = event.bytes.map(|_| 4_096);
        }
        trace
    }

    #[test]
    fn a_hundred_calls_that_take_five_times_as_long_as_in_other_folders_are_said() {
        let expected = |saved: &str| {
            format!(
                "800 of 5000 bound high: In 1 of 3 folders 100 calls take more than four times as long as the same calls in \
                 the median folder: in `/data/slow/` 10.0 µs each, not 2.00 µs. As there, 800 µs ({saved}) of 5.00 ms would \
                 be saved."
            )
        };
        for name in ["r", "o", "c"] {
            check(&trace(name, 100, 10), "io.slow_folder", &[&expected("16.0 %")]);
        }
        check(&trace("r", 99, 10), "io.slow_folder", &[]);
        check(&trace("r", 100, 8), "io.slow_folder", &[]);
    }

    #[test]
    fn only_calls_that_are_alike_are_compared() {
        let changed = |change: &dyn Fn(&mut IoEvent)| {
            let mut trace = trace("r", 100, 10);
            trace.io[200..].iter_mut().for_each(change);
            check(&trace, "io.slow_folder", &[]);
        };
        changed(&|event| event.bytes = Some(8_192));
        changed(&|event| event.bytes = Some(64 << 10));
        changed(&|event| event.bytes = None);
        changed(&|event| event.errno = Some(IoEvent::UNKNOWN_ERROR));
        let mut opens = trace("o", 100, 10);
        let other = opens.strings.intern("openat");
        opens.io[200..].iter().for_each(|event| opens.slices.name[event.slice.index()] = other);
        check(&opens, "io.slow_folder", &[]);
    }
}

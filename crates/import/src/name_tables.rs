//! What a name alone says: the last resort, after what the source itself says. The names are tables kept as data.
//!
//! A row of a table is a pattern, a tab, and one real name that it is there for.

use memchr::memmem::Finder;
use std::sync::OnceLock;
use stepscope_base::{StringId, StringTable};
use stepscope_trace::SliceRole;

static COMMUNICATION_KERNELS: NameTable = NameTable::new(include_str!("../data/communication_kernels.txt"));
static TENSOR_CORE_KERNELS: NameTable = NameTable::new(include_str!("../data/tensor_core_kernels.txt"));
static HOST_SYNC_CALLS: NameTable = NameTable::new(include_str!("../data/host_sync_calls.txt"));
static READ_CALLS: NameTable = NameTable::new(include_str!("../data/read_calls.txt"));
static WRITE_CALLS: NameTable = NameTable::new(include_str!("../data/write_calls.txt"));
static OPEN_CALLS: NameTable = NameTable::new(include_str!("../data/open_calls.txt"));
static CHECKPOINT_FUNCTIONS: NameTable = NameTable::new(include_str!("../data/checkpoint_functions.txt"));
static PROCESS_CALLS: NameTable = NameTable::new(include_str!("../data/process_calls.txt"));

/// True for a kernel that communicates between ranks.
pub(crate) fn is_communication_kernel(name: &str) -> bool {
    COMMUNICATION_KERNELS.has(name)
}

/// True for a kernel that uses tensor cores.
pub(crate) fn uses_tensor_cores(name: &str) -> bool {
    TENSOR_CORE_KERNELS.has(name)
}

/// True for an API call in which the host waits for the device.
pub(crate) fn is_host_sync_call(name: &str) -> bool {
    HOST_SYNC_CALLS.has(name)
}

/// True for a call that moves bytes from a file.
pub(crate) fn is_read_call(name: &str) -> bool {
    READ_CALLS.has(name)
}

/// True for a call that moves bytes to a file.
pub(crate) fn is_write_call(name: &str) -> bool {
    WRITE_CALLS.has(name)
}

/// True for a call that opens or makes a file.
pub(crate) fn is_open_call(name: &str) -> bool {
    OPEN_CALLS.has(name)
}

/// True for a system call that starts, ends or awaits a process.
pub(crate) fn is_process_call(name: &str) -> bool {
    PROCESS_CALLS.has(name)
}

/// True for a slice on a host thread that is a call into a communication library: what it launches communicates.
pub(crate) fn is_communication_call(name: &str) -> bool {
    const BEGINNINGS: [&str; 3] = ["nccl:", "c10d::", "oneccl_bindings_for_pytorch::"];
    name == "record_param_comms" || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// The names of `strings` whose slices do something beyond their kind, ordered by name.
pub(crate) fn roles(strings: &StringTable) -> Vec<(StringId, SliceRole)> {
    let names = (0..strings.len()).map(StringId::from_index);
    names.filter_map(|name| Some((name, role_of(strings.get(name))?))).collect()
}

fn role_of(name: &str) -> Option<SliceRole> {
    match name {
        "_c10d_functional::wait_tensor" | "c10d_functional::wait_tensor" => Some(SliceRole::CollectiveWait),
        // As the recorder and `torch.profiler` call it.
        "Python GC" => Some(SliceRole::GarbageCollection),
        "DistributedDataParallel.forward" => Some(SliceRole::DistributedForward),
        "torch.distributed.ddp.reducer::search_unused_parameters" => Some(SliceRole::ParameterSearch),
        "_compile.compile_inner (dynamo_timed)" => Some(SliceRole::Compilation),
        _ if is_parameter_gather(name) => Some(SliceRole::ParameterGather),
        _ if name.starts_with("Torch-Compiled Region: ") => Some(SliceRole::CompiledRegion),
        _ if is_device_allocation(name) => Some(SliceRole::DeviceAllocation),
        // Most names are no function's.
        _ if name.contains(".py(") && CHECKPOINT_FUNCTIONS.has(name) => Some(SliceRole::CheckpointWrite),
        _ => None,
    }
}

/// Labels in which nothing but parameters is gathered, of FSDP, of `fully_shard` and of ZeRO 3.
fn is_parameter_gather(name: &str) -> bool {
    const NAMES: [&str; 7] = [
        "FSDP::all_gather",
        "FullyShardedDataParallel._pre_forward",
        "FullyShardedDataParallel._pre_forward_prefetch",
        "FullyShardedDataParallel._pre_backward_hook",
        "FullyShardedDataParallel._pre_backward_prefetch",
        "FullyShardedDataParallel._post_backward_prefetch",
        "PartitionedParameterCoordinator.fetch_sub_module",
    ];
    // The unit's name may follow.
    NAMES.contains(&name.split_once(" (").map_or(name, |(label, _)| label))
}

/// Calls that only enqueue this, as `cudaMallocAsync` does, are not among them.
fn is_device_allocation(name: &str) -> bool {
    const BEGINNINGS: [&str; 11] = [
        "cudaMalloc",
        "cudaFree",
        "hipMalloc",
        "hipFree",
        "cuMemAlloc",
        "cuMemFree",
        "cuMemCreate",
        "cuMemMap",
        "cuMemUnmap",
        "cuMemRelease",
        "cuMemSetAccess",
    ];
    BEGINNINGS.iter().any(|beginning| name.starts_with(beginning)) && !name.contains("Async")
}

/// Begins a pattern of names that do not belong to a table.
const EXCEPT: char = '!';

/// A table of patterns. It is parsed when it is first asked.
struct NameTable {
    text: &'static str,
    patterns: OnceLock<Patterns>,
}

/// The patterns of a table.
struct Patterns {
    of_it: Vec<Pattern>,
    /// Those behind `!`: what they cover does not belong to it.
    of_others: Vec<Pattern>,
}

impl NameTable {
    const fn new(text: &'static str) -> Self {
        Self { text, patterns: OnceLock::new() }
    }

    /// Patterns and the names that they are there for.
    fn rows(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let lines = self.text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(|line| line.split_once('\t').unwrap_or((line, "")))
    }

    /// True when any pattern covers the whole `name`, and none behind `!` does.
    fn has(&self, name: &str) -> bool {
        let Patterns { of_it, of_others } = self.patterns.get_or_init(|| {
            let patterns = || self.rows().map(|(pattern, _)| pattern);
            let of_it = patterns().filter(|pattern| !pattern.starts_with(EXCEPT)).map(Pattern::new).collect();
            let of_others = patterns().filter_map(|pattern| pattern.strip_prefix(EXCEPT)).map(Pattern::new).collect();
            Patterns { of_it, of_others }
        });
        let name = name.to_ascii_lowercase();
        let is_covered = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.covers(name.as_bytes()));
        is_covered(of_it) && !is_covered(of_others)
    }
}

/// A pattern, in which `*` stands for any bytes. Upper and lower case are the same.
struct Pattern {
    /// What stands before the first star, in lower case: all of the pattern when it has none.
    start: Vec<u8>,
    /// What stands between stars, and behind the last one; absent without a star.
    rest: Option<(Vec<Finder<'static>>, Vec<u8>)>,
}

impl Pattern {
    fn new(pattern: &str) -> Self {
        let lower = pattern.to_ascii_lowercase();
        let mut parts: Vec<&[u8]> = lower.as_bytes().split(|byte| *byte == b'*').collect();
        let end = if parts.len() > 1 { parts.pop() } else { None };
        let finder = |part: &&[u8]| Finder::new(part).into_owned();
        let rest = end.map(|end| (parts[1..].iter().map(finder).collect(), end.to_vec()));
        Self { start: parts[0].to_vec(), rest }
    }

    /// True when it covers the whole `name`, which is in lower case.
    fn covers(&self, name: &[u8]) -> bool {
        let Some((middle, end)) = &self.rest else { return name == self.start };
        let between = name.strip_prefix(&*self.start).and_then(|rest| rest.strip_suffix(&**end));
        let Some(mut between) = between else { return false };
        middle.iter().all(|part| match part.find(between) {
            Some(at) => {
                between = &between[at + part.needle().len()..];
                true
            }
            None => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_name_that_no_other_row_knows() {
        for table in [
            &COMMUNICATION_KERNELS,
            &TENSOR_CORE_KERNELS,
            &HOST_SYNC_CALLS,
            &READ_CALLS,
            &WRITE_CALLS,
            &OPEN_CALLS,
            &PROCESS_CALLS,
            &CHECKPOINT_FUNCTIONS,
        ] {
            let is_exception = |row: &(&str, &str)| row.0.starts_with(EXCEPT);
            for (pattern, example) in table.rows().filter(|row| !is_exception(row)) {
                let patterns = table.rows().map(|row| row.0);
                let knowing: Vec<&str> = patterns.filter(|other| covers(other, example)).collect();
                assert_eq!(knowing, [pattern], "rows that match {example:?}");
            }
            for (pattern, example) in table.rows().filter(is_exception) {
                assert!(covers(&pattern[1..], example) && !table.has(example), "{pattern}");
                assert!(table.rows().any(|row| covers(row.0, example)), "{pattern} takes {example:?} from no row");
            }
        }
    }

    #[test]
    fn copies_and_computing_kernels_are_not_communication() {
        for name in
            ["hipMemcpyAsync", "void gemm_kernel<float>()", "Memcpy DtoD (Device -> Device)", "sm90_xmma_gemm", ""]
        {
            assert!(!is_communication_kernel(name), "{name}");
        }
    }

    #[test]
    fn single_precision_and_copies_use_no_tensor_cores() {
        for name in ["volta_sgemm_64x64_nt", "ampere_sgemm_128x64_nn", "Cijk_Ailk_Bljk_SB_MT64x64x8_SE_K1", ""] {
            assert!(!uses_tensor_cores(name), "{name}");
        }
    }

    #[test]
    fn what_only_enqueues_is_no_synchronisation() {
        for name in ["cudaMemcpyAsync", "cudaStreamWaitEvent", "cudaLaunchKernel", "cudaEventRecord"] {
            assert!(!is_host_sync_call(name), "{name}");
        }
    }

    fn covers(pattern: &str, name: &str) -> bool {
        Pattern::new(pattern).covers(name.to_ascii_lowercase().as_bytes())
    }

    #[test]
    fn a_star_stands_for_anything() {
        assert!(covers("a*b*c", "aXXbYbZc"));
        assert!(!covers("a*b", "aXc"));
        assert!(covers("*", ""));
        assert!(covers("NCCL*", "ncclKernel"));
        assert!(covers("read", "READ") && !covers("read", "reads"));
        assert!(!covers("ab*bc", "abc"), "start and end do not share a byte");
        assert!(covers("*b*b*", "abab") && !covers("*b*b*", "ab"));
    }

    #[test]
    fn patterns_cover_what_trying_each_length_of_each_star_covers() {
        fn slow(pattern: &[u8], name: &[u8]) -> bool {
            match pattern.split_first() {
                None => name.is_empty(),
                Some((b'*', rest)) => (0..=name.len()).any(|from| slow(rest, &name[from..])),
                Some((byte, rest)) => name.first() == Some(byte) && slow(rest, &name[1..]),
            }
        }
        let texts = |letters: &[u8], longest: u32| -> Vec<String> {
            let of_length = |len: u32| (0..letters.len().pow(len)).map(move |number| (number, len));
            let text = |(mut number, len): (usize, u32)| {
                let mut letter = || {
                    let letter = letters[number % letters.len()] as char;
                    number /= letters.len();
                    letter
                };
                (0..len).map(|_| letter()).collect()
            };
            (0..=longest).flat_map(of_length).map(text).collect()
        };
        for pattern in texts(b"ab*", 5) {
            for name in texts(b"ab", 5) {
                assert_eq!(covers(&pattern, &name), slow(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}");
            }
        }
    }

    #[test]
    fn calls_are_known_by_the_names_that_pytorch_gives() {
        assert!(is_communication_call("record_param_comms"));
        assert!(is_communication_call("nccl:all_reduce"));
        assert!(is_communication_call("c10d::allreduce_"));
        assert!(is_communication_call("oneccl_bindings_for_pytorch::allreduce"));
        assert!(!is_communication_call("aten::all"));
    }

    #[test]
    fn names_say_what_slices_do_beyond_their_kind() {
        assert_eq!(role_of("_c10d_functional::wait_tensor"), Some(SliceRole::CollectiveWait));
        assert_eq!(role_of("_c10d_functional::all_reduce"), None);
        assert_eq!(role_of("Python GC"), Some(SliceRole::GarbageCollection));
        assert_eq!(role_of("DistributedDataParallel.forward"), Some(SliceRole::DistributedForward));
        let search = "torch.distributed.ddp.reducer::search_unused_parameters";
        assert_eq!(role_of(search), Some(SliceRole::ParameterSearch));
        let names = ["FSDP::all_gather (layers.0)", "FSDP::all_gather", "FullyShardedDataParallel._pre_backward_hook"];
        assert!(names.iter().all(|name| role_of(name) == Some(SliceRole::ParameterGather)));
        let names = ["FSDP::all_gather_copy_out (layers.0)", "FullyShardedDataParallel.forward"];
        assert!(names.iter().all(|name| role_of(name).is_none()));
        assert_eq!(role_of("_compile.compile_inner (dynamo_timed)"), Some(SliceRole::Compilation));
        assert_eq!(role_of("Torch-Compiled Region: 0/3"), Some(SliceRole::CompiledRegion));
        let names = ["cudaMalloc", "cudaFreeHost", "hipFree", "cudaMallocAsync", "cuMemMap", "cudaMemcpyAsync"];
        let is_allocation = names.map(|name| role_of(name) == Some(SliceRole::DeviceAllocation));
        assert_eq!(is_allocation, [true, true, true, false, true, false]);
        let names =
            ["/opt/venv/torch/serialization.py(943): save", "serialization.py(943): save", "a.py(1): save_file"];
        let is_checkpoint = names.map(|name| role_of(name) == Some(SliceRole::CheckpointWrite));
        assert_eq!(is_checkpoint, [true, false, false]);
        let mut strings = StringTable::default();
        let of = ["aten::mm", "cudaFree", "Python GC"].map(|name| strings.intern(name));
        let expected = [(of[1], SliceRole::DeviceAllocation), (of[2], SliceRole::GarbageCollection)];
        assert_eq!(roles(&strings), expected);
    }
}

//! What a name alone says: the last resort, after what the source itself says. The names are tables kept as data.
//!
//! A row of a table is a pattern, a tab, and one real name that it is there for.

const COMMUNICATION_KERNELS: &str = include_str!("../data/communication_kernels.txt");
const TENSOR_CORE_KERNELS: &str = include_str!("../data/tensor_core_kernels.txt");
const HOST_SYNC_CALLS: &str = include_str!("../data/host_sync_calls.txt");
const READ_CALLS: &str = include_str!("../data/read_calls.txt");
const WRITE_CALLS: &str = include_str!("../data/write_calls.txt");
const OPEN_CALLS: &str = include_str!("../data/open_calls.txt");
const PROCESS_CALLS: &str = include_str!("../data/process_calls.txt");

/// True for a kernel that communicates between ranks.
pub(crate) fn is_communication_kernel(name: &str) -> bool {
    is_in(COMMUNICATION_KERNELS, name)
}

/// True for a kernel that uses tensor cores.
pub(crate) fn uses_tensor_cores(name: &str) -> bool {
    is_in(TENSOR_CORE_KERNELS, name)
}

/// True for an API call in which the host waits for the device.
pub(crate) fn is_host_sync_call(name: &str) -> bool {
    is_in(HOST_SYNC_CALLS, name)
}

/// True for a call that moves bytes from a file.
pub(crate) fn is_read_call(name: &str) -> bool {
    is_in(READ_CALLS, name)
}

/// True for a call that moves bytes to a file.
pub(crate) fn is_write_call(name: &str) -> bool {
    is_in(WRITE_CALLS, name)
}

/// True for a call that opens or makes a file.
pub(crate) fn is_open_call(name: &str) -> bool {
    is_in(OPEN_CALLS, name)
}

/// True for a system call that starts, ends or awaits a process.
pub(crate) fn is_process_call(name: &str) -> bool {
    is_in(PROCESS_CALLS, name)
}

/// True for a slice on a host thread that is a call into a communication library: what it launches communicates.
pub(crate) fn is_communication_call(name: &str) -> bool {
    name == "record_param_comms" || name.starts_with("nccl:") || name.starts_with("c10d::")
}

fn is_in(table: &'static str, name: &str) -> bool {
    rows(table).any(|(pattern, _)| matches_pattern(pattern.as_bytes(), name.as_bytes()))
}

fn rows(table: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once('\t').unwrap_or((line, "")))
}

/// True when `pattern`, in which `*` stands for any bytes, covers the whole `name`; upper and lower case are the same.
fn matches_pattern(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p, n));
                p += 1;
            }
            Some(byte) if byte.eq_ignore_ascii_case(&name[n]) => {
                p += 1;
                n += 1;
            }
            _ => match retry {
                Some((star, from)) => {
                    retry = Some((star, from + 1));
                    (p, n) = (star + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_name_that_no_other_row_knows() {
        for table in [
            COMMUNICATION_KERNELS,
            TENSOR_CORE_KERNELS,
            HOST_SYNC_CALLS,
            READ_CALLS,
            WRITE_CALLS,
            OPEN_CALLS,
            PROCESS_CALLS,
        ] {
            for (pattern, example) in rows(table) {
                let patterns = rows(table).map(|row| row.0);
                let knowing: Vec<&str> =
                    patterns.filter(|other| matches_pattern(other.as_bytes(), example.as_bytes())).collect();
                assert_eq!(knowing, [pattern], "rows that match {example:?}");
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

    #[test]
    fn a_star_stands_for_anything() {
        assert!(matches_pattern(b"a*b*c", b"aXXbYbZc"));
        assert!(!matches_pattern(b"a*b", b"aXc"));
        assert!(matches_pattern(b"*", b""));
        assert!(matches_pattern(b"NCCL*", b"ncclKernel"));
    }

    #[test]
    fn calls_are_known_by_the_names_that_pytorch_gives() {
        assert!(is_communication_call("record_param_comms"));
        assert!(is_communication_call("nccl:all_reduce"));
        assert!(is_communication_call("c10d::allreduce_"));
        assert!(!is_communication_call("aten::all"));
    }
}

//! Device work: the streams, the table of kernels, and what is the same in each row of one.

/// A stream of the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stream {
    /// Where the model computes.
    Compute,
    /// Where the next batch is copied to the device.
    Copy,
    /// Where NCCL communicates.
    Communication,
}

impl Stream {
    /// All of them.
    pub(super) const ALL: [Stream; 3] = [Stream::Compute, Stream::Copy, Stream::Communication];

    /// The number that CUDA gives it.
    pub(super) fn number(self) -> u32 {
        match self {
            Self::Compute => 7,
            Self::Copy => 20,
            Self::Communication => 40,
        }
    }
}

/// One line a kernel; the file says what its columns are.
const TABLE: &str = include_str!("../../data/kernels.txt");

/// Multiprocessors of the device.
pub(super) const SM_COUNT: u32 = 132;

/// A kernel as it is launched.
#[derive(Debug)]
pub(super) struct Kernel {
    pub(super) name: &'static str,
    /// How long it runs, about.
    pub(super) ns: u32,
    /// Arguments after the correlation.
    pub(super) arguments: String,
}

/// The kernel that the table has under `key`.
///
/// # Panics
/// When there is none: the workload and the table are one program.
pub(super) fn kernel(key: &str) -> Kernel {
    let line = TABLE.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('\t'));
    let columns: Vec<&str> = line.unwrap_or_else(|| panic!("no kernel {key:?}")).split('\t').collect();
    let [grid, block, registers, shared, occupancy, ns, name] = columns[..] else { panic!("columns of {key:?}") };
    let size = |text: &str| text.split(',').map(|n| n.parse::<u32>().expect("a number")).product::<u32>();
    let blocks_per_sm = size(grid) as f32 / SM_COUNT as f32;
    let warps_per_sm = blocks_per_sm * size(block).div_ceil(32) as f32;
    let arguments = format!(
        r#",      "registers per thread": {registers},      "shared memory": {shared},      "blocks per SM": {blocks_per_sm:.6},      "warps per SM": {warps_per_sm:.6},      "grid": [{}],      "block": [{}],      "est. achieved occupancy %": {occupancy}"#,
        grid.replace(',', ", "),
        block.replace(',', ", "),
    );
    Kernel { name, ns: ns.parse().expect("a number"), arguments }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_written_as_in_the_trace_that_it_is_from() {
        let flash = kernel("flash_forward");
        assert!(flash.name.starts_with("void pytorch_flash::flash_fwd_kernel<"));
        assert!(flash.arguments.contains(r#""blocks per SM": 9.696970,      "warps per SM": 38.787880"#));
        assert!(flash.arguments.contains(r#""grid": [5, 16, 16],      "block": [128, 1, 1]"#));
    }
}

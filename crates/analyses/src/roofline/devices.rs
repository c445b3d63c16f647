//! Peak rates of devices, by product name: the table is `data/devices.tsv`.

use crate::flops::{Precision, Work};
use std::sync::LazyLock;
use stepscope_trace::Device;

const TABLE: &str = include_str!("../../data/devices.tsv");

/// What a device can do at best.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Peaks {
    words: Vec<&'static str>,
    fp64: Option<i64>,
    fp32: Option<i64>,
    tf32: Option<i64>,
    fp16: Option<i64>,
    fp8: Option<i64>,
    int8: Option<i64>,
    /// Bytes per second that memory moves.
    pub(super) bytes_per_s: i64,
    memory_bytes: i64,
}

static ROWS: LazyLock<Vec<Peaks>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| row(line).unwrap_or_else(|| panic!("a row of devices.tsv cannot be read: {line}"))).collect()
});

fn row(line: &'static str) -> Option<Peaks> {
    let cells: Vec<&str> = line.split('\t').collect();
    let [words, fp64, fp32, tf32, fp16, fp8, int8, bandwidth, memory, _source] = cells[..] else { return None };
    let peak = |cell: &str| if cell == "-" { Some(None) } else { Some(Some(scaled(cell, 12)?)) };
    Some(Peaks {
        words: words.split(' ').collect(),
        fp64: peak(fp64)?,
        fp32: peak(fp32)?,
        tf32: peak(tf32)?,
        fp16: peak(fp16)?,
        fp8: peak(fp8)?,
        int8: peak(int8)?,
        bytes_per_s: scaled(bandwidth, 9)?,
        memory_bytes: scaled(memory, 9)?,
    })
}

/// A decimal number times ten to the `digits`, without a float in between.
fn scaled(text: &str, digits: usize) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{fraction:0<digits$}").parse().ok()
}

/// The peaks of a device; `None` when the table does not know it.
pub(crate) fn peaks(device: &Device) -> Option<&'static Peaks> {
    let name = device.name.as_deref()?.to_lowercase();
    let words: Vec<&str> = name.split(|letter: char| !letter.is_ascii_alphanumeric()).collect();
    let fitting = ROWS.iter().filter(|row| row.words.iter().all(|word| words.contains(word)));
    let away = |row: &Peaks| device.memory_bytes.map_or(0, |bytes| bytes.abs_diff(row.memory_bytes));
    fitting.min_by_key(|row| (std::cmp::Reverse(row.words.len()), away(row)))
}

impl Peaks {
    /// Operations per second of products of 32-bit floats outside of tensor cores, and of 16-bit ones in them; `None`
    /// when either is not known.
    pub(crate) fn plain_and_tensor_flops_per_s(&self) -> Option<(i64, i64)> {
        self.fp32.zip(self.fp16)
    }

    /// Operations per second for such work: products at the rate of what they compute with, everything else at that of
    /// plain 32-bit (64-bit) arithmetic.
    pub(super) fn flops_per_s(&self, work: &Work, uses_tensor_cores: bool) -> Option<i64> {
        match work.precision {
            Some(Precision::Fp64) => self.fp64,
            _ if !work.is_product => self.fp32,
            Some(Precision::Fp32) if uses_tensor_cores => self.tf32.or(self.fp32),
            Some(Precision::Fp32) => self.fp32,
            Some(Precision::Fp16) => self.fp16,
            Some(Precision::Fp8) => self.fp8,
            Some(Precision::Int8) => self.int8,
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, memory_gb: Option<i64>) -> Option<(i64, i64)> {
        let memory_bytes = memory_gb.map(|gb| gb * 1_000_000_000);
        let device = Device { name: Some(name.into()), memory_bytes, ..Device::default() };
        peaks(&device).map(|peaks| (peaks.fp16.unwrap() / 100_000_000_000, peaks.bytes_per_s / 1_000_000_000))
    }

    #[test]
    fn devices_are_known_by_the_names_that_their_drivers_give() {
        assert_eq!(found("Tesla V100-SXM2-32GB", Some(34)), Some((1250, 900)));
        assert_eq!(found("Tesla V100-DGXS-32GB", Some(34)), Some((1250, 900)));
        assert_eq!(found("Tesla V100-PCIE-16GB", Some(17)), Some((1120, 900)));
        assert_eq!(found("NVIDIA A100-PG509-200", Some(42)), Some((3120, 1555)));
        assert_eq!(found("NVIDIA A100-SXM4-80GB", Some(85)), Some((3120, 2039)));
        assert_eq!(found("NVIDIA A100-PCIE-40GB", Some(42)), Some((3120, 1555)));
        assert_eq!(found("NVIDIA A100 80GB PCIe", Some(85)), Some((3120, 1935)));
        assert_eq!(found("NVIDIA H100 80GB HBM3", None), Some((9894, 3350)));
        assert_eq!(found("NVIDIA H100 PCIe", None), Some((7560, 2000)));
        assert_eq!(found("NVIDIA H200", None), Some((9894, 4800)));
        assert_eq!(found("NVIDIA B200", Some(191)), Some((22500, 8000)));
        assert_eq!(found("NVIDIA L4", None), Some((1210, 300)));
        assert_eq!(found("NVIDIA L40S", None), Some((3620, 864)));
        assert_eq!(found("AMD Instinct MI300X VF", Some(205)), Some((13074, 5300)));
        assert_eq!(found("AMD Instinct MI250X / MI250", Some(68)), Some((1915, 1638)));
        assert_eq!(found("Intel(R) Data Center GPU Max 1550", Some(69)), Some((4195, 1638)));
        assert_eq!(found("AMD Radeon Graphics", Some(68)), None);
        assert_eq!(found("NVIDIA A1000 Laptop GPU", None), None);
    }

    #[test]
    fn products_run_at_the_rate_of_what_they_compute_with() {
        let device = Device { name: Some("NVIDIA A100-SXM4-80GB".into()), ..Device::default() };
        let peaks = peaks(&device).unwrap();
        let rate = |precision, is_product, uses_tensor_cores| {
            let work = Work { precision, is_product, ..Work::default() };
            peaks.flops_per_s(&work, uses_tensor_cores).map(|rate| rate / 1_000_000_000_000)
        };
        assert_eq!(rate(Some(Precision::Fp16), true, false), Some(312));
        assert_eq!(rate(Some(Precision::Fp16), false, false), Some(19));
        assert_eq!(
            [rate(Some(Precision::Fp32), true, true), rate(Some(Precision::Fp32), true, false)],
            [Some(156), Some(19)]
        );
        assert_eq!((rate(Some(Precision::Fp8), true, true), rate(None, true, true)), (None, None));
    }
}

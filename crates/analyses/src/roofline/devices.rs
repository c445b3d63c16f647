//! Peak rates of devices, by product name: the table is `data/devices.tsv`.

use crate::flops::{Precision, Work};
use std::sync::LazyLock;
use stepscope_trace::Device;

const TABLE: &str = include_str!("../../data/devices.tsv");

/// What a device can do at best.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Peaks {
    words: Vec<&'static str>,
    pub(crate) fp64: Option<i64>,
    pub(crate) fp64_tensor: Option<i64>,
    pub(crate) fp32: Option<i64>,
    pub(crate) fp32_tensor: Option<i64>,
    pub(crate) fp16: Option<i64>,
    pub(crate) fp8: Option<i64>,
    pub(crate) int8: Option<i64>,
    /// Bytes per second that memory moves.
    pub(crate) bytes_per_s: i64,
    memory_bytes: i64,
    /// Bytes per second that its links to devices of the same host carry in one direction.
    pub(crate) link_bytes_per_s: Option<i64>,
}

static ROWS: LazyLock<Vec<Peaks>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| row(line).unwrap_or_else(|| panic!("a row of devices.tsv cannot be read: {line}"))).collect()
});

fn row(line: &'static str) -> Option<Peaks> {
    let cells: Vec<&str> = line.split('\t').collect();
    let [words, _architecture, _units, rates @ .., bandwidth, memory, link, _source] = &cells[..] else { return None };
    let [fp64, fp64_tensor, fp32, fp32_tensor, fp16, fp8, int8] = *rates else { return None };
    let peak = |cell: &str| if cell == "-" { Some(None) } else { Some(Some(scaled(cell, 12)?)) };
    Some(Peaks {
        words: words.split(' ').collect(),
        fp64: peak(fp64)?,
        fp64_tensor: peak(fp64_tensor)?,
        fp32: peak(fp32)?,
        fp32_tensor: peak(fp32_tensor)?,
        fp16: peak(fp16)?,
        fp8: peak(fp8)?,
        int8: peak(int8)?,
        bytes_per_s: scaled(bandwidth, 9)?,
        memory_bytes: scaled(memory, 9)?,
        link_bytes_per_s: if *link == "-" { None } else { Some(scaled(link, 9)?) },
    })
}

/// A decimal number times ten to the `digits`, without a float in between.
fn scaled(text: &str, digits: usize) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{fraction:0<digits$}").parse().ok()
}

/// Words of products that are slower than the one whose name they stand beside: a part of a device, another make.
const OTHER_PRODUCTS: [&str; 4] = ["mig", "laptop", "mobile", "d"];

/// The peaks of a device; `None` when the table does not know it.
pub(crate) fn peaks(device: &Device) -> Option<&'static Peaks> {
    let name = device.name.as_deref()?.to_lowercase();
    let words: Vec<&str> = name.split(|letter: char| !letter.is_ascii_alphanumeric()).collect();
    if words.iter().any(|word| OTHER_PRODUCTS.contains(word)) {
        return None;
    }
    let fitting = ROWS.iter().filter(|row| row.words.iter().all(|word| words.contains(word)));
    let away = |row: &Peaks| device.memory_bytes.map_or(0, |bytes| bytes.abs_diff(row.memory_bytes));
    fitting.min_by_key(|row| (std::cmp::Reverse(row.words.len()), away(row)))
}

/// Bytes per second that the links of a device to others of its host carry in one direction; `None` when the table does
/// not know them. Those of an `NVL` card lead to the cards beside it alone.
pub(crate) fn link_bytes_per_s(device: &Device) -> Option<i64> {
    let name = device.name.as_deref()?.to_lowercase();
    let is_card = name.split(|letter: char| !letter.is_ascii_alphanumeric()).any(|word| word == "nvl");
    peaks(device)?.link_bytes_per_s.filter(|_| !is_card)
}

impl Peaks {
    /// Operations per second of products of 32-bit floats outside of tensor cores, and of 16-bit ones in them; `None`
    /// when either is not known.
    pub(crate) fn plain_and_tensor_flops_per_s(&self) -> Option<(i64, i64)> {
        self.fp32.zip(self.fp16)
    }

    /// Operations per second of products of 64-bit and of 32-bit floats, each in the faster units that do such; `None` when
    /// either is not known.
    pub(crate) fn double_and_single_flops_per_s(&self) -> Option<(i64, i64)> {
        self.fp64_tensor.max(self.fp64).zip(self.fp32_tensor.max(self.fp32))
    }

    /// Operations per second for such work: products at the rate of what they compute with, of 32 and 64 bits at that of
    /// tensor cores when their kernels use these; everything else at that of plain 32-bit (64-bit) arithmetic.
    pub(super) fn flops_per_s(&self, work: &Work, uses_tensor_cores: bool) -> Option<i64> {
        match work.precision {
            Some(Precision::Fp64) if work.is_product && uses_tensor_cores => self.fp64_tensor.or(self.fp64),
            Some(Precision::Fp64) => self.fp64,
            _ if !work.is_product => self.fp32,
            Some(Precision::Fp32) if uses_tensor_cores => self.fp32_tensor.or(self.fp32),
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
        assert_eq!(found("NVIDIA H100 NVL", None), Some((8355, 3900)));
        assert_eq!(found("NVIDIA GH200 480GB", Some(102)), Some((9894, 4000)));
        assert_eq!(found("NVIDIA GH200 144G HBM3e", Some(150)), Some((9894, 4900)));
        assert_eq!(found("NVIDIA B200", Some(191)), Some((22500, 8000)));
        assert_eq!(found("NVIDIA GeForce RTX 3090", None), Some((710, 936)));
        assert_eq!(found("NVIDIA GeForce RTX 3090 Ti", None), Some((800, 1008)));
        assert_eq!(found("NVIDIA L4", None), Some((1210, 300)));
        assert_eq!(found("NVIDIA L40S", None), Some((3620, 864)));
        assert_eq!(found("AMD Instinct MI300X VF", Some(205)), Some((13074, 5300)));
        assert_eq!(found("AMD Instinct MI250X / MI250", Some(68)), Some((1915, 1638)));
        assert_eq!(found("Intel(R) Data Center GPU Max 1550", Some(69)), Some((4195, 1638)));
        assert_eq!(found("AMD Radeon Graphics", Some(68)), None);
        assert_eq!(found("NVIDIA A1000", None), None);
        assert_eq!(found("NVIDIA GeForce RTX 4090 Laptop GPU", None), None);
        assert_eq!(found("NVIDIA A100-SXM4-40GB MIG 1g.5gb", Some(5)), None);
    }

    #[test]
    fn links_of_a_device_are_as_many_as_its_architecture_has() {
        let link = |name: &str| {
            let device = Device { name: Some(name.into()), ..Device::default() };
            link_bytes_per_s(&device).map(|bytes_per_s| bytes_per_s / 1_000_000_000)
        };
        // Links, and what one carries in one direction, GB/s.
        assert_eq!(link("Tesla V100-SXM2-32GB"), Some(6 * 25));
        assert_eq!(link("NVIDIA A100-SXM4-40GB"), Some(12 * 25));
        assert_eq!(link("NVIDIA H100 80GB HBM3"), Some(18 * 25));
        assert_eq!(link("NVIDIA H200"), Some(18 * 25));
        assert_eq!(link("NVIDIA B200"), Some(18 * 50));
        let unknown = [
            "Tesla V100-PCIE-16GB",
            "NVIDIA A100 80GB PCIe",
            "NVIDIA A100-PCIE-40GB",
            "NVIDIA H100 PCIe",
            "NVIDIA H100 NVL",
            "NVIDIA H200 NVL",
            "NVIDIA L40S",
            "AMD Instinct MI300X",
            "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
            "Graphics",
        ];
        unknown.iter().for_each(|name| assert_eq!(link(name), None, "{name}"));
    }

    /// Operations that one unit does in a clock: fp64, fp64_tensor, fp32, fp32_tensor, fp16, fp8, int8.
    const A_CLOCK: [(&str, [i64; 7]); 14] = [
        ("volta", [64, 0, 128, 0, 1_024, 0, 0]),
        ("turing", [0, 0, 128, 0, 1_024, 0, 2_048]),
        ("ga100", [64, 128, 128, 1_024, 2_048, 0, 4_096]),
        ("ga10x", [0, 0, 256, 512, 1_024, 0, 2_048]),
        ("ga10x_geforce", [0, 0, 256, 256, 512, 0, 2_048]),
        ("ad10x", [0, 0, 256, 512, 1_024, 2_048, 2_048]),
        ("ad10x_geforce", [0, 0, 256, 256, 512, 1_024, 2_048]),
        ("gb20x_geforce", [0, 0, 256, 256, 512, 1_024, 2_048]),
        ("hopper", [128, 256, 256, 2_048, 4_096, 8_192, 8_192]),
        ("blackwell", [128, 128, 256, 4_096, 8_192, 16_384, 16_384]),
        ("cdna2", [128, 256, 128, 256, 1_024, 0, 1_024]),
        ("cdna3", [128, 256, 256, 256, 2_048, 4_096, 4_096]),
        ("cdna4", [128, 128, 256, 256, 4_096, 8_192, 8_192]),
        ("xe_hpc", [256, 0, 256, 2_048, 4_096, 0, 8_192]),
    ];

    /// Each rate divided by units and operations a clock is a clock; the rates of a device tell nearly the same one.
    #[test]
    fn rates_follow_from_the_units_of_each_device() {
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let cells: Vec<&str> = line.split('\t').collect();
            let (_, a_clock) = A_CLOCK.iter().find(|(name, _)| *name == cells[1]).unwrap_or_else(|| panic!("{line}"));
            let units: i64 = cells[2].parse().unwrap();
            let clock_mhz = |at: usize| scaled(cells[3 + at], 12).map(|rate| rate / (units * a_clock[at] * 1_000_000));
            for at in (0..7).filter(|at| cells[3 + at] != "-") {
                assert!(a_clock[at] > 0, "column {at} is not there: {line}");
                let mhz = clock_mhz(at).unwrap();
                assert!((1_300..2_650).contains(&mhz), "column {at} would run at {mhz} MHz: {line}");
                // Rates in tensor cores may be given at a lower clock; those in them are multiples of each other.
                let (of, percent) = if at < 3 { (2, 2) } else { (4, 3) };
                let other = clock_mhz(of).unwrap();
                let is_near = mhz.abs_diff(other) * 100 <= other.unsigned_abs() * percent;
                let is_vector_like = at < 4 && mhz.abs_diff(clock_mhz(2).unwrap()) * 50 <= mhz.unsigned_abs();
                assert!(is_near || is_vector_like, "column {at} at {mhz} MHz, not {other}: {line}");
            }
            let between = clock_mhz(2).unwrap() * 100 / clock_mhz(4).unwrap();
            assert!((95..=120).contains(&between), "plain rates and those of tensor cores differ: {line}");
            assert!(cells[13].len() > 10, "no source: {line}");
        }
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
        let double = Some(Precision::Fp64);
        assert_eq!(
            [rate(double, true, true), rate(double, true, false), rate(double, false, true)],
            [Some(19), Some(9), Some(9)]
        );
        assert_eq!((rate(Some(Precision::Fp8), true, true), rate(None, true, true)), (None, None));
    }
}

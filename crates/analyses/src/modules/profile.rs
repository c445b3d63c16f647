//! How large a module is and what its forward pass computes: what DeepSpeed's flops profiler lists.

use super::PassTime;
use stepscope_trace::ModuleSize;

columns! {
    /// How large modules are, and what they compute.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct ModuleProfile {
        /// How large they are; `None` when not known.
        size: Option<ModuleSize>,
        /// Number of parameters, those of the modules in it included. Absent when not known.
        parameters => Count = |row| row.size.map(|size| size.parameters),
        /// Share of the parameters of the outermost module.
        parameters_ratio => Ratio = |row| share(row.size?.parameters, row.whole.size?.parameters),
        /// Number of multiplications with an addition in the forward pass. Absent when not known.
        forward_macs: Option<i64> => Count,
        /// Share of the multiplications of the outermost module.
        forward_macs_ratio => Ratio = |row| share(row.forward_macs?, row.whole.forward_macs?),
        /// Time of the forward pass: on devices where the trace has any, else on the host.
        forward_ns: i64 => Nanoseconds,
        /// Share of the forward pass of the outermost module.
        forward_ratio => Ratio = |row| share(row.forward_ns, row.whole.forward_ns),
        /// Arithmetic operations of the forward pass in a second of it. Absent when not known.
        forward_flops_per_s => Count = ModuleProfile::forward_flops_per_s,
        /// Number of arithmetic operations of the forward pass. Absent when not known.
        forward_flops: Option<i64> => Count,
        /// Number of arithmetic operations of the backward pass. Absent when not known.
        backward_flops: Option<i64> => Count,
        /// Number of parameters that are trained. Absent when not known.
        trainable_parameters => Count = |row| row.size.map(|size| size.trainable),
        /// What shares are shares of.
        whole: Whole,
    }
}

/// What the outermost module has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Whole {
    /// How large it is.
    pub size: Option<ModuleSize>,
    /// Multiplications with an addition of its forward pass.
    pub forward_macs: Option<i64>,
    /// Time of its forward pass.
    pub forward_ns: i64,
}

impl ModuleProfile {
    /// Arithmetic operations of both passes; `None` when not known.
    pub fn flops(&self) -> Option<i64> {
        [self.forward_flops, self.backward_flops].into_iter().flatten().reduce(i64::saturating_add)
    }

    fn forward_flops_per_s(&self) -> Option<i64> {
        let (flops, ns) = (self.forward_flops?, self.forward_ns);
        (ns > 0).then(|| ((i128::from(flops) * 1_000_000_000 + i128::from(ns) / 2) / i128::from(ns)) as i64)
    }

    /// What it has as a whole of others.
    pub(super) fn as_whole(&self) -> Whole {
        Whole { size: self.size, forward_macs: self.forward_macs, forward_ns: self.forward_ns }
    }

    /// Adds those of another module.
    pub(super) fn add(&mut self, other: &Self) {
        add_sizes(&mut self.size, other.size);
        for (sum, part) in [
            (&mut self.forward_macs, other.forward_macs),
            (&mut self.forward_flops, other.forward_flops),
            (&mut self.backward_flops, other.backward_flops),
        ] {
            *sum = [*sum, part].into_iter().flatten().reduce(i64::saturating_add);
        }
        self.forward_ns = self.forward_ns.saturating_add(other.forward_ns);
    }
}

fn add_sizes(sum: &mut Option<ModuleSize>, part: Option<ModuleSize>) {
    let Some(part) = part else { return };
    let sum = sum.get_or_insert_default();
    sum.parameters = sum.parameters.saturating_add(part.parameters);
    sum.trainable = sum.trainable.saturating_add(part.trainable);
}

fn share(part: i64, whole: i64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The time of a forward pass as tables show it.
pub(super) fn forward_ns(forward: &PassTime, is_on_device: bool) -> i64 {
    if is_on_device { forward.device_total_ns } else { forward.host_total_ns }
}

/// Of each depth the rows that are among its first `top` by parameters, by multiplications or by time, in their order.
pub(super) fn top_of_each_depth<Row>(
    rows: Vec<Row>,
    top: Option<usize>,
    place: impl Fn(&Row) -> (i64, &ModuleProfile),
) -> Vec<Row> {
    let Some(top) = top else { return rows };
    let mut is_kept = vec![false; rows.len()];
    let measures: [fn(&ModuleProfile) -> i64; 3] = [
        |profile| profile.size.map_or(0, |size| size.parameters),
        |profile| profile.forward_macs.unwrap_or(0),
        |profile| profile.forward_ns,
    ];
    for measure in measures {
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|at| {
            let (depth, profile) = place(&rows[*at]);
            (depth, std::cmp::Reverse(measure(profile)))
        });
        for of_depth in order.chunk_by(|a, b| place(&rows[*a]).0 == place(&rows[*b]).0) {
            of_depth.iter().take(top).for_each(|at| is_kept[*at] = true);
        }
    }
    let kept = rows.into_iter().zip(is_kept).filter(|(_, is_kept)| *is_kept);
    kept.map(|(row, _)| row).collect()
}

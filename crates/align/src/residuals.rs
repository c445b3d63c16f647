//! By how much clocks of a trace still differ, as far as collectives show it.

use crate::clocks::Pairs;
use crate::{Domain, Part, domains};
use stepscope_base::percentiles::nearest_rank_of_unsorted;
use stepscope_trace::Trace;

/// What collectives show of one clock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Residual {
    /// The processes that read the clock.
    pub domain: Domain,
    /// The clock that it is compared with: of those of lower ranks the one that it shares most collectives with.
    pub reference: Option<Domain>,
    /// Collectives that both leave together.
    pub collectives: u64,
    /// By how much the ends differ: in the middle, and at most.
    pub difference_p50_ns: Option<i64>,
    /// The largest difference.
    pub difference_max_ns: Option<i64>,
    /// Collectives that one side leaves before the other has come.
    pub contradictions: u64,
}

/// One for each clock of `trace`, in the order of [`domains`]; `matched` has the parts of each of its collectives.
pub fn residuals<'a>(
    trace: &Trace,
    matched: impl Iterator<Item = impl Iterator<Item = &'a Part> + Clone>,
) -> Vec<Residual> {
    let domains = domains(trace);
    let pairs = Pairs::of(&domains, matched);
    let of_domain = |(at, domain): (usize, &Domain)| {
        let (reference, readings) = pairs.with_most_readings(at);
        let mut differences: Vec<i64> = readings.iter().map(|reading| reading.difference_ns.abs()).collect();
        Residual {
            domain: domain.clone(),
            reference: reference.map(|at| domains[at].clone()),
            collectives: readings.len() as u64,
            difference_max_ns: differences.iter().copied().max(),
            difference_p50_ns: nearest_rank_of_unsorted(&mut differences, 50),
            contradictions: readings.iter().filter(|reading| reading.contradicts(0)).count() as u64,
        }
    };
    domains.iter().enumerate().map(of_domain).collect()
}

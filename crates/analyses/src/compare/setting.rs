//! On what two runs ran, as far as their recordings say: what changed may come from that.

use super::side::Side;
use crate::{AnalysisContext, Outcome, Selection, temporal_breakdown};
use std::collections::{BTreeMap, BTreeSet};
use stepscope_base::units::format_count;
use stepscope_trace::{DataflowStage, FindingCode, Findings, SliceId, Trace};

/// A run's settings by name, in the order in which they are told.
type Settings = BTreeMap<(usize, String), String>;

/// What names itself otherwise than by a version.
const NAMED: [&str; 7] =
    ["backend", "cpu", "profile_memory", "record_shapes", "with_flops", "with_modules", "with_stack"];

fn settings(side: &Side<'_>) -> Settings {
    let (trace, selection) = side.asked();
    let mut settings = Settings::new();
    let devices = used_devices(side.whole);
    let mut add = |order: usize, name: &str, value: String| {
        if !value.is_empty() {
            settings.entry((order, name.to_string())).or_insert(value);
        }
    };
    add(0, "GPU", devices);
    let ranks: Vec<u32> = trace.ranks().into_iter().filter(|rank| selection.has_rank(*rank)).collect();
    add(1, "rank", if let [rank] = ranks[..] { rank.to_string() } else { format!("{} ranks", ranks.len()) });
    let sizes: BTreeSet<u32> = trace.processes.iter().filter_map(|process| process.world_size).collect();
    add(2, "world size", sizes.iter().map(u32::to_string).collect::<Vec<_>>().join(", "));
    add(3, "batch", samples_of_a_batch(trace, selection));
    for (key, value) in &trace.facts {
        let name = key.rsplit('.').next().unwrap_or(key);
        if name.ends_with("_version") || NAMED.contains(&name) {
            add(4, name, value.clone());
        }
    }
    settings
}

/// `64 samples`: what most batches of a `DataLoader` have, where it is known who made them.
fn samples_of_a_batch(trace: &Trace, selection: &Selection) -> String {
    let rank =
        |slice: SliceId| trace.processes[trace.tracks[trace.slices.track[slice.index()].index()].process.index()].rank;
    let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
    for fetch in trace.dataflow.iter().filter(|said| said.stage == DataflowStage::Fetch) {
        let Some(count) = fetch.count.filter(|_| selection.has_rank(rank(fetch.slice))) else { continue };
        *counts.entry(count).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|(count, batches)| (*batches, *count));
    most.map_or_else(String::new, |(count, _)| {
        format!("{} {}", format_count(count), if count == 1 { "sample" } else { "samples" })
    })
}

/// `2 × NVIDIA A100, …`: the devices that did something for what was asked for, or all that are known.
fn used_devices(context: &AnalysisContext<'_>) -> String {
    let AnalysisContext { trace, selection, .. } = *context;
    let used: BTreeSet<(u32, i64)> =
        temporal_breakdown::rows(context).iter().map(|row| (row.rank, row.device)).collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for device in &trace.devices {
        let is_used = used.is_empty() || used.contains(&(device.rank, device.ordinal));
        let Some(name) = device.name.as_deref().filter(|_| is_used) else { continue };
        *counts.entry(name).or_default() += usize::from(selection.has_rank(device.rank));
    }
    let told = counts.into_iter().filter(|(_, count)| *count > 0);
    let told = told.map(|(name, count)| if count > 1 { format!("{count} × {name}") } else { name.to_string() });
    told.collect::<Vec<_>>().join(", ")
}

columns! {
    /// A setting of two runs.
    struct Setting {
        /// The name of the setting.
        name: String => Text,
        /// Its value in the first run.
        a_value: Option<String> => Text,
        /// Its value in the second run.
        b_value: Option<String> => Text,
        /// Whether the runs differ in it. Absent when one of them does not say.
        differs: Option<bool> => Flag,
    }
}

/// A row is a setting that either run tells.
pub(super) fn outcome(a: &Side<'_>, b: &Side<'_>) -> Outcome {
    let [a, b] = [a, b].map(settings);
    let names: BTreeSet<_> = a.keys().chain(b.keys()).collect();
    let row = |key: &(usize, String)| {
        let (a_value, b_value) = (a.get(key).cloned(), b.get(key).cloned());
        let differs = a_value.as_ref().zip(b_value.as_ref()).map(|(a, b)| a != b);
        Setting { name: key.1.clone(), a_value, b_value, differs }
    };
    Outcome::of_runs(&names.into_iter().map(row).collect::<Vec<_>>())
}

/// What differs. Of two ranks of one run, and of ranks that were both asked for, the rank is meant to.
pub(super) fn findings(a: &Side<'_>, b: &Side<'_>) -> Findings {
    let [of_a, of_b] = [a, b].map(Side::asked);
    let is_rank_meant = std::ptr::eq(of_a.0, of_b.0) || (!of_a.1.ranks.are_all() && !of_b.1.ranks.are_all());
    let [a, b] = [a, b].map(settings);
    let mut findings = Findings::default();
    for (key, before) in &a {
        let Some(now) = b.get(key).filter(|now| *now != before) else { continue };
        if key.1 != "rank" || !is_rank_meant {
            findings.add(FindingCode::SettingDiffers, || format!("{}: {before} before, {now} now", key.1));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CellValue;
    use crate::batches::tests::with_batches;
    use crate::compare::side::with_sides;
    use stepscope_trace::drawn::drawn;

    fn run(rank: u32, gpu: &str, world_size: u32, facts: &[(&str, &str)]) -> Trace {
        let mut trace = drawn(&format!("rank {rank} stream 7 CC"));
        trace.devices[0].name = Some(gpu.into());
        trace.processes[0].world_size = Some(world_size);
        trace.facts = facts.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        trace
    }

    #[test]
    fn the_size_of_batches_is_that_of_most_of_them() {
        let run = |sizes: [i64; 3]| {
            let mut trace = with_batches("rank 0 step 000111222\nrank 0 label 1 a..b..c..");
            trace.dataflow.iter_mut().zip(sizes).for_each(|(fetch, size)| fetch.count = Some(size));
            trace
        };
        let (a, b, all) = (run([64, 64, 20]), run([32, 32, 32]), Selection::default());
        let found = with_sides((&a, &all), (&b, &all), findings);
        let said: Vec<&String> = found.iter().flat_map(|finding| &finding.examples).collect();
        assert_eq!(said, ["batch: 64 samples before, 32 samples now"]);
        assert!(with_sides((&a, &all), (&run([64, 64, 64]), &all), findings).is_empty());
    }

    #[test]
    fn what_differs_in_the_setting_of_two_runs_is_said() {
        let a =
            run(3, "A100", 8, &[("torch_version", "2.6.0"), ("distributedInfo.nccl_version", "2.20"), ("note", "x")]);
        let b = run(1, "V100", 8, &[("torch_version", "2.7.0"), ("nccl_version", "2.20"), ("python_version", "3.11")]);
        let all = Selection::default();
        let found = with_sides((&a, &all), (&b, &all), findings);
        let said: Vec<&String> = found.iter().flat_map(|finding| &finding.examples).collect();
        assert_eq!(
            said,
            ["GPU: A100 before, V100 now", "rank: 3 before, 1 now", "torch_version: 2.6.0 before, 2.7.0 now"]
        );
        let table = with_sides((&a, &all), (&b, &all), outcome).table;
        let names = ["GPU", "rank", "world size", "nccl_version", "python_version", "torch_version"];
        assert_eq!(table.column("name").unwrap().values, <&str>::values(names.map(Some).to_vec()));
        let of_rank = |rank: u32| Selection { ranks: rank.into(), ..all.clone() };
        assert_eq!(with_sides((&a, &of_rank(3)), (&b, &of_rank(1)), findings).count(FindingCode::SettingDiffers), 2);
        assert!(with_sides((&a, &all), (&a, &all), findings).is_empty());
    }
}

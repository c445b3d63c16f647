//! The traces of a job of many ranks, a file each, as PyTorch's profiler writes them: the step that is repeated for any
//! generated trace, at times of its own on each rank.

use super::job::{HOST_RANKS, Job, Shape};
use crate::generator::{self, Steps};
use crate::trace_text;
use flate2::{Compression, write::GzEncoder};
use memchr::memmem;
use serde_json::Value;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::Path;

/// What a folder of traces is to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Number of files.
    pub(super) ranks: usize,
    /// How much is in each.
    pub(super) size: RankSize,
    /// Whether they are gzipped.
    pub(super) is_packed: bool,
}

/// How much there is of a rank.
#[derive(Clone, Copy, Debug)]
pub(super) enum RankSize {
    /// About this many bytes of text.
    Bytes(u64),
    /// This number of steps of collectives, and little else.
    Thin(u64),
}

/// What was written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Files {
    /// Bytes of text, of all files together.
    pub(super) text_bytes: u64,
    /// Collectives of each rank.
    pub(super) collectives: u64,
}

/// Of kernels that are no collectives, a thin trace has every so manyth.
const THIN: usize = 40;
/// What PyTorch writes of a longer list of ranks: all of these but one, dots, and the last.
const LISTED_RANKS: usize = 30;

/// Writes the traces into `folder`, which must be empty.
pub(super) fn write(wanted: &Wanted, folder: &Path) -> io::Result<Files> {
    let text = match wanted.size {
        RankSize::Bytes(_) => generator::step()?,
        RankSize::Thin(_) => thin(&generator::step()?)?,
    };
    let shape = shape(&text)?;
    let steps = match wanted.size {
        RankSize::Thin(steps) => steps,
        RankSize::Bytes(bytes) => generator::nearest(bytes, Steps::of(&text)?.bytes_of(20, &|ns| ns)),
    };
    let job = Job::of(&shape, wanted.ranks, steps);
    let mut text_bytes = 0;
    for rank in 0..wanted.ranks {
        let text = of_rank(&text, rank, wanted.ranks)?;
        let (host, start_ns) = (rank / HOST_RANKS, job.shown_ns(rank, 0, shape.step_ns.start));
        let name = format!("node{host}_{}.{start_ns}.pt.trace.json", pid(rank));
        let time_of = |step| -> Box<dyn Fn(i64) -> i64> {
            let job = &job;
            Box::new(move |ns| job.shown_ns(rank, step, ns))
        };
        let steps_of_rank = Steps::of(&text)?;
        text_bytes += if wanted.is_packed {
            let mut file = GzEncoder::new(File::create(folder.join(name + ".gz"))?, Compression::fast());
            let written = steps_of_rank.write(steps, &time_of, &mut file)?;
            file.finish()?;
            written.bytes
        } else {
            let mut file = BufWriter::new(File::create(folder.join(name))?);
            let written = steps_of_rank.write(steps, &time_of, &mut file)?;
            file.flush()?;
            written.bytes
        };
    }
    Ok(Files { text_bytes, collectives: steps * shape.collectives.len() as u64 })
}

fn pid(rank: usize) -> usize {
    25_286 + rank % HOST_RANKS
}

/// The rows of the text, with where they are.
fn rows(text: &[u8]) -> io::Result<Vec<(Range<usize>, Value)>> {
    trace_text::rows(text).map(|place| Ok((place.clone(), serde_json::from_slice(&text[place])?))).collect()
}

fn is_collective(row: &Value) -> bool {
    row["cat"] == "kernel" && row["args"]["Collective name"].is_string()
}

/// When the collectives of a step are.
fn shape(text: &[u8]) -> io::Result<Shape> {
    let ns = |value: &Value| (value.as_f64().unwrap_or_default() * 1e3).round() as i64;
    let rows = rows(text)?;
    let kernels = rows.iter().map(|(_, row)| row).filter(|row| is_collective(row));
    // A double does not hold nanoseconds since the begin of the clock: a mark is as near as it need be.
    let mut collectives: Vec<_> = kernels.map(|row| ns(&row["ts"])..ns(&row["ts"]) + ns(&row["dur"])).collect();
    collectives.sort_by_key(|span| span.start);
    Ok(Shape { step_ns: Steps::of(text)?.step_ns, collectives })
}

/// The step with its collectives, a few other kernels, and what asked for these.
fn thin(text: &[u8]) -> io::Result<Vec<u8>> {
    let rows = rows(text)?;
    let id = |row: &Value| row["args"]["External id"].as_u64();
    let kernels = || rows.iter().map(|(_, row)| row).filter(|row| row["cat"] == "kernel");
    let others = kernels().filter(|row| !is_collective(row)).step_by(THIN);
    let kept: Vec<&Value> = kernels().filter(|row| is_collective(row)).chain(others).collect();
    let steps =
        rows.iter().filter(|(_, row)| row["name"].as_str().is_some_and(|name| name.starts_with("ProfilerStep")));
    // A collective's range is the second that is begun in the operator that its kernel names.
    let ids = kept.iter().filter_map(|row| id(row)).flat_map(|id| [id.saturating_sub(1), id, id + 1]);
    let ids: HashSet<u64> = ids.chain(steps.filter_map(|(_, row)| id(row))).collect();
    let correlations: HashSet<u64> = kept.iter().filter_map(|row| row["args"]["correlation"].as_u64()).collect();
    let is_kept = |row: &Value| match row["cat"].as_str() {
        None | Some("Trace") => true,
        Some("ac2g") => row["id"].as_u64().is_some_and(|id| correlations.contains(&id)),
        Some("kernel" | "cuda_runtime") => {
            row["args"]["correlation"].as_u64().is_some_and(|number| correlations.contains(&number))
        }
        Some("cpu_op" | "user_annotation" | "gpu_user_annotation") => id(row).is_some_and(|id| ids.contains(&id)),
        Some(_) => false,
    };
    let (Some((first, _)), Some((last, _))) = (rows.first(), rows.last()) else {
        return Err(io::Error::other("a step without rows"));
    };
    let kept: Vec<&[u8]> = rows.iter().filter(|(_, row)| is_kept(row)).map(|(place, _)| &text[place.clone()]).collect();
    Ok([&text[..first.start], &kept.join(&b",\n  "[..]), &text[last.end..]].concat())
}

/// The step as a rank of the job has it: its process, its groups, and their collectives.
fn of_rank(text: &[u8], rank: usize, ranks: usize) -> io::Result<Vec<u8>> {
    const INFO: &[u8] = b"\"distributedInfo\": ";
    let missing = || io::Error::other("the step says nothing of ranks");
    let info = memmem::find(text, INFO).ok_or_else(missing)? + INFO.len();
    let info_end = trace_text::object_end(text, info).ok_or_else(missing)?;
    let mut out = text[..info].to_vec();
    out.extend_from_slice(distributed_info(rank, ranks).as_bytes());
    let mut from = info_end;
    let mut kernels: Vec<_> = rows(text)?.into_iter().filter(|(_, row)| is_collective(row)).collect();
    kernels.sort_by_key(|(place, _)| place.start);
    for (number, (place, _)) in kernels.into_iter().enumerate() {
        const SIZE: &[u8] = b"\"Group size\": 8";
        const NAME: &[u8] = b"\"Process Group Name\"";
        let size = place.start + memmem::find(&text[place.clone()], SIZE).ok_or_else(missing)?;
        let name = place.start + memmem::find(&text[place.clone()], NAME).ok_or_else(missing)?;
        let list_end = name + memchr::memchr(b']', &text[name..]).ok_or_else(missing)? + 2;
        let group = Group::of(ranks, number, rank);
        out.extend_from_slice(&text[from..size]);
        write!(out, "\"Group size\": {}", group.ranks.len())?;
        out.extend_from_slice(&text[size + SIZE.len()..name]);
        write!(out, "\"Process Group Name\": \"{}\", \"Process Group Description\": ", group.name)?;
        write!(out, "\"{}\", \"Process Group Ranks\": \"{}\", ", group.description, group.listed())?;
        write!(out, "\"Seq\": {}", number + 1)?;
        from = list_end;
    }
    out.extend_from_slice(&text[from..]);
    Ok(with_pid(&out, pid(rank)))
}

/// A group of ranks.
struct Group {
    name: String,
    description: &'static str,
    ranks: Range<usize>,
}

impl Group {
    fn of(ranks: usize, collective: usize, rank: usize) -> Self {
        let ranks = Job::group(ranks, collective, rank);
        let (name, description) = match collective.is_multiple_of(2) {
            true => ((1 + rank / HOST_RANKS).to_string(), "mesh_tp"),
            false => ("0".into(), "default_pg"),
        };
        Self { name, description, ranks }
    }

    /// Its ranks as PyTorch lists them on a kernel.
    fn listed(&self) -> String {
        let listed = |ranks: Range<usize>| ranks.map(|rank| rank.to_string()).collect::<Vec<_>>().join(", ");
        let (first, end) = (self.ranks.start, self.ranks.end);
        match self.ranks.len() > LISTED_RANKS {
            true => format!("[{}, ..., {}]", listed(first..first + LISTED_RANKS - 1), end - 1),
            false => format!("[{}]", listed(first..end)),
        }
    }
}

/// As Python writes it: the peer looks for `"rank": `, with its blank.
fn distributed_info(rank: usize, ranks: usize) -> String {
    let config = |group: Group| {
        let members = group.ranks.clone().map(|rank| rank.to_string()).collect::<Vec<_>>().join(", ");
        let (name, description, size) = (group.name, group.description, group.ranks.len());
        format!(
            r#"{{"pg_name": "{name}", "pg_desc": "{description}", "backend_config": "cuda:nccl", "pg_size": {size}, "ranks": [{members}]}}"#
        )
    };
    let groups = [config(Group::of(ranks, 1, rank)), config(Group::of(ranks, 0, rank))];
    let known = format!(r#""backend": "nccl", "rank": {rank}, "world_size": {ranks}, "pg_count": {}"#, groups.len());
    format!(r#"{{{known}, "pg_config": [{}], "nccl_version": "2.21.5"}}"#, groups.join(", "))
}

/// The text with another number of its process, which its main thread has too.
fn with_pid(text: &[u8], pid: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut from = 0;
    for at in memmem::find_iter(text, b"id\": 25286") {
        out.extend_from_slice(&text[from..at]);
        out.extend_from_slice(format!("id\": {pid}").as_bytes());
        from = at + b"id\": 25286".len();
    }
    out.extend_from_slice(&text[from..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_import::open_bytes;
    use stepscope_trace::{DeviceEventClass, Severity};

    #[test]
    fn lists_of_ranks_are_cut_as_pytorch_cuts_them() {
        let listed = |ranks| Group::of(ranks, 1, 0).listed();
        assert_eq!(listed(3), "[0, 1, 2]");
        assert!(listed(30).ends_with(", 28, 29]") && listed(31).ends_with(", 27, 28, ..., 30]"));
    }

    #[test]
    fn a_rank_opens_as_a_trace_about_which_nothing_is_doubtful() {
        for size in [RankSize::Thin(3), RankSize::Bytes(6_000_000)] {
            let folder = tempfile::tempdir().expect("a folder");
            let wanted = Wanted { ranks: 1, size, is_packed: matches!(size, RankSize::Thin(_)) };
            let files = write(&wanted, folder.path()).expect("it is written");
            let file = std::fs::read_dir(folder.path()).expect("a folder").next().expect("a file").expect("a file");
            let trace = open_bytes(file.path(), &std::fs::read(file.path()).expect("it is there")).expect("a trace");
            let doubtful: Vec<_> =
                trace.findings.iter().filter(|row| row.code.severity() >= Severity::Suspect).collect();
            assert!(doubtful.is_empty(), "{doubtful:?}");
            let is_collective = |class| class == DeviceEventClass::Communication;
            let kernels: Vec<_> = trace.device_events.iter().filter(|event| is_collective(event.class)).collect();
            assert_eq!(kernels.len() as u64, files.collectives);
            assert!(kernels.iter().all(|event| event.launch.is_some()));
            assert_eq!(trace.steps.len() as u64 * 6, files.collectives);
            assert!(trace.device_events.len() as u64 > files.collectives * 2);
            let said: HashSet<_> = trace.collectives.iter().filter_map(|said| said.sequence_number).collect();
            assert_eq!(said.len() as u64, files.collectives, "each has its own number");
        }
    }
}

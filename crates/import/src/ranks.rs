//! Several files as one run: a trace for each rank, or for each window of a rank.
//!
//! A rank is what a file says of itself; else what its name says; else that of the file about the same process. Files are
//! on one clock when each says what its clock is. What is of another job, or cannot be read, is left out with a finding.

use crate::jobs::{self, FileOfJob};
use crate::window::Begun;
use crate::{ImportError, Progress, flight_recorder, input};
use regex_lite::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use stepscope_trace::{ClockSource, FindingCode, Findings, Joined, Trace, merge};

/// Endings of trace files in a folder.
const ENDINGS: [&str; 3] = ["json", "pfw", "trace"];
const COMPRESSED: [&str; 3] = ["gz", "zst", "zip"];

/// How files become one run.
#[derive(Clone, Debug, Default)]
pub struct Joining {
    /// Finds the rank in the path of a file that does not say it: the group called `rank`, else the first group, else the
    /// whole match.
    pub rank_from: Option<Regex>,
    /// Files are of one job, whatever their times and numbers of ranks say.
    pub is_one_job: bool,
}

impl Joining {
    fn rank_in(&self, path: &Path) -> Option<u32> {
        let Some(pattern) = &self.rank_from else { return rank_in_name(path) };
        let path = path.to_string_lossy();
        let found = pattern.captures(&path)?;
        let text = found.name("rank").or_else(|| found.get(1)).or_else(|| found.get(0))?;
        text.as_str().parse().ok()
    }
}

/// The trace files in a folder and in the folders directly inside, by name.
pub(crate) fn files_in(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = |folder: &Path| -> std::io::Result<BTreeSet<PathBuf>> {
        Ok(stepscope_store::list(folder)?.into_iter().collect())
    };
    let mut files = Vec::new();
    for path in entries(folder)? {
        if stepscope_store::is_folder(&path) {
            files.extend(entries(&path).unwrap_or_default().into_iter().filter(|path| is_trace_file(path)));
        } else if is_trace_file(&path) {
            files.push(path);
        }
    }
    Ok(files)
}

fn is_trace_file(path: &Path) -> bool {
    let has = |path: &Path, endings: &[&str]| {
        path.extension().and_then(OsStr::to_str).is_some_and(|ending| endings.contains(&ending))
    };
    let plain = if has(path, &COMPRESSED) { path.with_extension("") } else { path.to_path_buf() };
    stepscope_store::is_file(path) && (has(&plain, &ENDINGS) || is_flight_recorder_dump(path))
}

/// PyTorch puts the rank behind whatever name a dump is to have: there is no ending, and the content tells.
fn is_flight_recorder_dump(path: &Path) -> bool {
    let ends_with_rank =
        path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(|c: char| c.is_ascii_digit()));
    let head = || -> std::io::Result<Vec<u8>> {
        let mut head = Vec::new();
        stepscope_store::open(path)?.take(4_096).read_to_end(&mut head)?;
        Ok(head)
    };
    ends_with_rank && head().is_ok_and(|head| flight_recorder::is_head_of_dump(&head))
}

/// Whether each of `files` says a rank, or its name does, and there are several ranks.
pub(crate) fn are_of_job(files: &[PathBuf], joining: &Joining) -> bool {
    if joining.is_one_job {
        return files.len() > 1;
    }
    // Names first: they take no reading, and most files have a rank there, or none of them has.
    let rank = |path: &PathBuf| joining.rank_in(path).or_else(|| rank_at_head(path));
    let ranks: Option<BTreeSet<u32>> = files.iter().map(rank).collect();
    ranks.is_some_and(|ranks| ranks.len() > 1)
}

/// The rank that the beginning of a file of PyTorch's profiler says.
fn rank_at_head(path: &Path) -> Option<u32> {
    let begun = Begun::of(input::open(path, &Progress::default()).ok()?.blocks);
    let behind = |text: &[u8], key: &str| memchr::memmem::find(text, key.as_bytes()).map(|at| at + key.len());
    let info = &begun.head()[behind(begun.head(), "\"distributedInfo\"")?..];
    // Its fields are numbers and lists of groups; `rank` stands before these.
    let value = info[behind(info, "\"rank\"")?..].trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let digits = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&value[..digits]).ok()?.parse().ok()
}

/// Files that were joined.
pub struct JoinedFiles {
    /// Their traces, merged in the order of `files`.
    pub trace: Trace,
    /// Their places in the list of files.
    pub files: Vec<usize>,
}

/// A file that was read.
struct Source {
    /// Its place in the list of files.
    place: usize,
    path: PathBuf,
    trace: Trace,
    /// Its first and last moment on the clock of its job, where that is known.
    times: Option<(i64, i64)>,
    rank_from: RankFrom,
}

/// What says which rank a file is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RankFrom {
    /// The file.
    File,
    /// Its name.
    Name,
    /// A file about the same process.
    Process,
    /// Nothing.
    Nothing,
}

/// Opens `files` as one run called `name`, as far as they are to be joined.
///
/// # Errors
/// When none of them can be read: what is wrong with the first. When a store refuses one.
pub(crate) fn open(
    name: String,
    files: &[PathBuf],
    joining: &Joining,
    progress: &Progress,
) -> Result<Trace, ImportError> {
    let mut read = |at: usize| crate::open_joining(&files[at], joining, progress);
    Ok(join(name, files, joining, &mut read)?.trace)
}

/// As [`open_several`](crate::open_several), of `files` that `read` opens, by their place, each once. What it gives may be
/// a trace of few slices of the file, as long as it has its processes, steps, facts, findings, first and last moment.
///
/// # Errors
/// When none of them can be read: what is wrong with the first. When a store refuses one.
pub(crate) fn join(
    name: String,
    files: &[PathBuf],
    joining: &Joining,
    read: &mut dyn FnMut(usize) -> Result<Trace, ImportError>,
) -> Result<JoinedFiles, ImportError> {
    let mut findings = Findings::default();
    let (mut sources, mut first_error) = (Vec::new(), None);
    for (place, path) in files.iter().enumerate() {
        match read(place) {
            Ok(trace) => sources.push(Source::of(place, path.clone(), trace, joining, &mut findings)),
            // Without it there is no whole answer, and the next time it may be there.
            Err(error) if error.of_store().is_some() => return Err(error),
            Err(error) => {
                findings.add(FindingCode::FileLeftOut, || error.to_string());
                first_error.get_or_insert(error);
            }
        }
    }
    if sources.is_empty() {
        return Err(first_error.unwrap_or_else(|| ImportError::Empty { path: name.into() }));
    }
    let mut sources = if joining.is_one_job { sources } else { of_one_job(sources, &mut findings) };
    take_ranks_of_processes(&mut sources);
    let missing_ranks = report_ranks(&sources, &mut findings);
    let mut joined = joined(&sources, missing_ranks);
    // Where one clock is arbitrary, all begin together: nothing says more.
    let starts: Option<Vec<i64>> = sources.iter().map(|source| source.trace.start_unix_ns).collect();
    if starts.is_none() {
        let unknown = sources.iter().filter(|source| source.trace.start_unix_ns.is_none());
        unknown.for_each(|source| findings.add(FindingCode::ClocksUnrelated, || source.path.display().to_string()));
        joined.clocks = ClockSource::BegunTogether;
    }
    let clock_zero_unix_ns = starts.as_ref().map(|_| 0);
    let starts = starts.unwrap_or_else(|| vec![0; sources.len()]);
    let files = sources.iter().map(|source| source.place).collect();
    let traces = sources.into_iter().map(|source| source.trace).zip(starts).collect();
    let mut trace = merge(name, traces, clock_zero_unix_ns);
    trace.joined = Some(joined).filter(|joined| joined.files() > 1);
    trace.findings.extend(&findings);
    Ok(JoinedFiles { trace, files })
}

impl Source {
    fn of(place: usize, path: PathBuf, trace: Trace, joining: &Joining, findings: &mut Findings) -> Self {
        let says_rank = trace.facts.iter().any(|(key, _)| key == "distributedInfo.rank") || trace.ranks().len() > 1;
        let named = if says_rank { None } else { joining.rank_in(&path) };
        let times = trace.start_unix_ns.zip(trace.span()).map(|(start_ns, span)| (start_ns, start_ns + span.end_ns));
        let rank_from = if says_rank { RankFrom::File } else { RankFrom::Nothing };
        let mut source = Self { place, path, trace, times, rank_from };
        if let Some(rank) = named {
            findings.add(FindingCode::RankFromName, || format!("rank {rank}: {}", source.path.display()));
            source.set_rank(rank, RankFrom::Name);
        }
        source
    }

    fn set_rank(&mut self, rank: u32, from: RankFrom) {
        self.trace.set_rank(rank);
        self.rank_from = from;
    }

    fn has_rank(&self) -> bool {
        self.rank_from != RankFrom::Nothing
    }

    fn file_of_job(&self) -> FileOfJob {
        let ranks = if self.has_rank() { self.trace.ranks() } else { Vec::new() };
        FileOfJob { path: self.path.clone(), times: self.times, world_size: self.world_size(), ranks }
    }

    /// The processes that it is about, where their numbers are known.
    fn pids(&self) -> impl Iterator<Item = i64> {
        self.trace.processes.iter().filter_map(|process| process.pid)
    }

    fn has_io(&self) -> bool {
        !self.trace.io.is_empty()
    }

    fn ranks_by_pid(&self) -> impl Iterator<Item = (i64, u32)> {
        self.trace.processes.iter().filter_map(|process| Some((process.pid?, process.rank)))
    }

    fn world_size(&self) -> Option<u32> {
        self.trace.processes.iter().find_map(|process| process.world_size)
    }

    /// Whether two files of one rank are of the same time. What another profiler has of a process, such as its calls of
    /// files, is beside it.
    fn claims_the_same(&self, other: &Self) -> bool {
        let is_other_time = self.times.zip(other.times).is_some_and(|(a, b)| a.1 <= b.0 || b.1 <= a.0);
        let is_same_process = || self.pids().any(|pid| other.pids().any(|same| same == pid));
        !(is_other_time || self.has_io() != other.has_io() && is_same_process())
    }
}

/// The rank that a file's name, or the name of its folder, states: `rank3_trace.json`, `rank_3/trace.json`,
/// `trace-3-of-24.json`, accelerate's `profile_3.json`, SGLang's `1795937495-TP-3.trace.json.gz`. Numbers of processes, as in
/// `host_4711.pt.trace.json`, are no ranks.
fn rank_in_name(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    let folder = path.parent().and_then(Path::file_name).and_then(OsStr::to_str).unwrap_or_default();
    let of_accelerate = || crate::trace_name(path).strip_prefix("profile_")?.parse().ok();
    let stated = after_rank(name).or_else(|| before_of(name)).or_else(of_accelerate);
    stated.or_else(|| only_dimension(name)).or_else(|| after_rank(folder))
}

/// The rank of a dump of the Flight Recorder: what its name states, or else the number that it ends with.
pub(crate) fn rank_at_end_of_name(path: &Path) -> Option<u32> {
    let name = crate::trace_name(path);
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    rank_in_name(path).or_else(|| name[name.len() - digits..].parse().ok())
}

/// The number behind the word `rank`.
fn after_rank(name: &str) -> Option<u32> {
    let lower = name.to_lowercase();
    lower.match_indices("rank").find_map(|(at, word)| {
        let is_word = !lower[..at].ends_with(|before: char| before.is_alphanumeric());
        let number = lower[at + word.len()..].trim_start_matches(['-', '_', ' ', '=']);
        let digits = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        number[..digits].parse().ok().filter(|_| is_word)
    })
}

/// The first number of `-3-of-24`.
fn before_of(name: &str) -> Option<u32> {
    let (before, after) = name.split_once("-of-")?;
    let (_, number) = before.rsplit_once('-')?;
    number.parse().ok().filter(|_| after.starts_with(|c: char| c.is_ascii_digit()))
}

/// The number behind `-TP-`, where those of the other dimensions that the name states are 0: else the rank depends on how
/// large each is.
fn only_dimension(name: &str) -> Option<u32> {
    let number = |dimension: &str| {
        let (_, after) = name.split_once(dimension)?;
        after[..after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len())].parse::<u32>().ok()
    };
    number("-TP-").filter(|_| ["-DP-", "-PP-", "-EP-"].iter().all(|other| number(other).unwrap_or(0) == 0))
}

/// A file that does not say its rank, of another profiler, has the rank of the file about the same process. A number that
/// processes of two ranks have, as on two hosts, says nothing.
fn take_ranks_of_processes(sources: &mut [Source]) {
    let known: Vec<(i64, u32)> =
        sources.iter().filter(|source| source.has_rank()).flat_map(Source::ranks_by_pid).collect();
    for source in sources.iter_mut().filter(|source| !source.has_rank()) {
        let own: BTreeSet<i64> = source.pids().collect();
        let ranks: BTreeSet<u32> = known.iter().filter(|(pid, _)| own.contains(pid)).map(|(_, rank)| *rank).collect();
        if let (Some(rank), 1) = (ranks.first(), ranks.len()) {
            source.set_rank(*rank, RankFrom::Process);
        }
    }
}

/// The files of the job with the most ranks. The others are left out.
fn of_one_job(sources: Vec<Source>, findings: &mut Findings) -> Vec<Source> {
    let files: Vec<FileOfJob> = sources.iter().map(Source::file_of_job).collect();
    let jobs = jobs::jobs(&files);
    let Some((kept, others)) = jobs.split_first() else { return sources };
    others.iter().for_each(|job| findings.add(FindingCode::OtherJob, || jobs::told(&files, job)));
    let places = sources.into_iter().enumerate();
    places.filter(|(at, _)| kept.files.binary_search(at).is_ok()).map(|(_, source)| source).collect()
}

/// Says which ranks are missing, unknown, or claimed by several files at one time. Gives those that are missing.
fn report_ranks(sources: &[Source], findings: &mut Findings) -> Vec<u32> {
    let mut claims: BTreeMap<u32, Vec<&Source>> = BTreeMap::new();
    for source in sources {
        if !source.has_rank() && sources.len() > 1 {
            findings.add(FindingCode::RankUnknown, || source.path.display().to_string());
        }
        let own = source.trace.ranks();
        let of_same_rank = own.iter().filter_map(|rank| claims.get(rank)).flatten();
        if let Some(other) = of_same_rank.into_iter().find(|other| other.claims_the_same(source)) {
            findings.add(FindingCode::RankTwice, || {
                format!("rank {}: {} and {}", own[0], other.path.display(), source.path.display())
            });
        }
        own.into_iter().for_each(|rank| claims.entry(rank).or_default().push(source));
    }
    let world_size = sources.iter().find_map(Source::world_size).unwrap_or(0);
    let missing: Vec<u32> = (0..world_size).filter(|rank| !claims.contains_key(rank)).collect();
    for rank in &missing {
        findings.add(FindingCode::RankMissing, || format!("rank {rank} of {world_size}"));
    }
    missing
}

/// What the files are put together by; clocks are as files state them.
fn joined(sources: &[Source], missing_ranks: Vec<u32>) -> Joined {
    let count = |from: RankFrom| sources.iter().filter(|source| source.rank_from == from).count() as u32;
    Joined {
        ranks_stated: count(RankFrom::File),
        ranks_named: count(RankFrom::Name),
        ranks_of_processes: count(RankFrom::Process),
        ranks_unknown: count(RankFrom::Nothing),
        missing_ranks,
        clocks: ClockSource::Stated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_read_from_names_but_numbers_of_processes_are_not() {
        let rank = |path: &str| rank_in_name(Path::new(path));
        let with_rank =
            ["rank3_trace.json.gz", "a/rank-3.json", "trace_rank_3.pt.trace.json", "rank_3/a.json", "1/Rank3"];
        with_rank.iter().for_each(|path| assert_eq!(rank(path), Some(3), "{path}"));
        for of_others in [
            "torch-trace-3-of-24-step5.json",
            "profile_3.json",
            "1795-TP-3.trace.json.gz",
            "1795-TP-3-DP-0-DECODE.json.gz",
        ] {
            assert_eq!(rank(of_others), Some(3), "{of_others}");
        }
        let without = [
            "host_4711.pt.trace.json",
            "crank3.json",
            "rank.json",
            "best-of-5.json",
            "r0-2024.json",
            "profile_3b.json",
            "a-TP-1-PP-1.json",
        ];
        without.iter().for_each(|path| assert_eq!(rank(path), None, "{path}"));
    }

    /// A trace of one operator, as a rank of a job writes it.
    fn written(folder: &Path, name: &str, rank: Option<(u32, u32)>, start_us: i64) -> PathBuf {
        let info = rank.map_or(String::new(), |(rank, world_size)| {
            format!(r#""distributedInfo": {{"rank": {rank}, "world_size": {world_size}}},"#)
        });
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let event = format!(r#"{{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":{start_us},"dur":5}}"#);
        let text = format!(r#"{{{info} "baseTimeNanoseconds": 0, "traceEvents": [{event}]}}"#);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn opened(folder: &Path) -> (Vec<u32>, usize, Vec<(&'static str, u64)>) {
        opened_with(folder, &Joining::default())
    }

    fn opened_with(folder: &Path, joining: &Joining) -> (Vec<u32>, usize, Vec<(&'static str, u64)>) {
        let trace = open("run".into(), &files_in(folder).unwrap(), joining, &Progress::default()).unwrap();
        let findings = trace.findings.iter().map(|finding| (finding.code.code(), finding.count));
        let findings = findings.filter(|(code, _)| *code != "import.no_device_events" && *code != "trace.no_steps");
        (trace.ranks(), trace.slices.len(), findings.collect())
    }

    #[test]
    fn the_ranks_of_a_job_are_one_run() {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path(), "a.pt.trace.json", Some((1, 3)), 1_000_000);
        written(folder.path(), "b.pt.trace.json", Some((0, 3)), 1_000_007);
        std::fs::write(folder.path().join("notes.txt"), "no trace").unwrap();
        assert_eq!(opened(folder.path()), (vec![0, 1], 2, vec![("import.rank_missing", 1)]));
    }

    #[test]
    fn what_is_of_another_job_or_is_no_trace_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path(), "rank_0/a.json", None, 1_000_000);
        written(folder.path(), "rank_1/a.json", None, 1_000_000);
        written(folder.path(), "rank_1/again.json", None, 1_000_001);
        written(folder.path(), "rank_2/next_day.json", None, 86_400_000_000);
        std::fs::write(folder.path().join("settings.json"), "{\"a\": 1}").unwrap();
        let expected = vec![
            ("import.rank_from_name", 4),
            ("import.file_left_out", 1),
            ("import.other_job", 1),
            ("import.rank_twice", 1),
        ];
        let (ranks, slices, mut findings) = opened(folder.path());
        findings.sort_unstable();
        let mut expected = expected;
        expected.sort_unstable();
        assert_eq!((ranks, slices, findings), (vec![0, 1], 3, expected));
    }

    #[test]
    fn a_pattern_says_where_in_the_path_the_rank_is() {
        let rank = |pattern: &str, path: &str| {
            let joining = Joining { rank_from: Some(Regex::new(pattern).unwrap()), ..Joining::default() };
            joining.rank_in(Path::new(path))
        };
        assert_eq!(rank(r"worker(\d+)", "a/worker12_rank3.json"), Some(12));
        assert_eq!(rank(r"(node\d+)/gpu(?P<rank>\d+)", "node1/gpu3.json"), Some(3));
        assert_eq!(rank(r"\d+", "a7.json"), Some(7));
        assert_eq!(rank(r"worker(\d+)", "rank3.json"), None);
    }

    #[test]
    fn files_of_two_days_are_one_job_when_somebody_says_so() {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path(), "a.json", Some((0, 2)), 1_000_000);
        written(folder.path(), "b.json", Some((1, 2)), 86_400_000_000);
        assert_eq!(opened(folder.path()).0, [1], "of two with as many ranks the later");
        let joined = opened_with(folder.path(), &Joining { is_one_job: true, ..Joining::default() });
        assert_eq!(joined, (vec![0, 1], 2, vec![]));
    }

    #[test]
    fn a_trace_says_what_it_was_put_together_by() {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path(), "a.json", Some((0, 4)), 1_000_000);
        written(folder.path(), "rank2.json", None, 1_000_000);
        let files = files_in(folder.path()).unwrap();
        let joined = || open("run".into(), &files, &Joining::default(), &Progress::default()).unwrap().joined;
        let expected = Joined { ranks_stated: 1, ranks_named: 1, missing_ranks: vec![1, 3], ..Joined::default() };
        assert_eq!(joined(), Some(expected));
        let alone = open("run".into(), &files[..1], &Joining::default(), &Progress::default()).unwrap();
        assert_eq!(alone.joined, None);
    }

    #[test]
    fn a_folder_is_a_job_when_its_files_say_several_ranks() {
        let is_job = |files: &[(&str, Option<(u32, u32)>)], joining: &Joining| {
            let folder = tempfile::tempdir().unwrap();
            files.iter().for_each(|(name, rank)| drop(written(folder.path(), name, *rank, 1)));
            crate::is_job(folder.path(), joining)
        };
        let none = Joining::default();
        assert!(is_job(&[("a.json", Some((0, 2))), ("b.json", Some((1, 2)))], &none), "files say it");
        assert!(is_job(&[("rank0.json", None), ("rank_1/a.json", None), ("c.json", Some((2, 3)))], &none), "names do");
        assert!(!is_job(&[("a.json", Some((0, 2))), ("b.json", None)], &none), "one says none");
        assert!(!is_job(&[("a.json", Some((0, 1))), ("b.json", Some((0, 1)))], &none), "two of one rank");
        assert!(!is_job(&[("rank3.json", None)], &none) && !is_job(&[], &none), "one file is itself");
        let join = Joining { is_one_job: true, ..Joining::default() };
        assert!(is_job(&[("a.json", None), ("b.json", None)], &join) && !is_job(&[("a.json", None)], &join));
        let worker = Joining { rank_from: Some(Regex::new(r"w(\d)\.json").unwrap()), ..Joining::default() };
        assert!(is_job(&[("w0.json", None), ("w1.json", None)], &worker));
    }

    #[test]
    fn another_profiler_s_file_has_the_rank_of_its_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path(), "torch.json", Some((1, 2)), 1_000_000);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace(r#""pid":1"#, r#""pid":4711"#)).unwrap();
        let row = r#"{"id":0,"name":"read","cat":"POSIX","pid":4711,"tid":4711,"ts":1000001,"dur":3,"ph":"X","args":{"hhash":"1"}}"#;
        std::fs::write(folder.path().join("io.pfw"), format!("[\n{row}\n")).unwrap();
        let (ranks, slices, findings) = opened(folder.path());
        assert_eq!((ranks, slices), (vec![1], 2), "{findings:?}");
        assert!(!findings.iter().any(|(code, _)| ["import.rank_twice", "import.rank_unknown"].contains(code)));
    }
}

//! Which files of a folder are of one job.
//!
//! Files of one number of ranks that follow one another within the longest pause are of one job. A file that does not say
//! how many ranks its job has is of the job of its time; one of which the time is not known is of the largest job.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use stepscope_base::units::format_ns;
use stepscope_base::utc::utc;

/// A job that is recorded in windows may run as long as this between two of them.
const LONGEST_PAUSE_NS: i64 = 3_600_000_000_000;

/// What tells the job of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileOfJob {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Unix time of its first and of its last moment in ns, where that is known.
    pub(crate) times: Option<(i64, i64)>,
    /// Number of ranks of its job, where it says so.
    pub(crate) world_size: Option<u32>,
    /// Its ranks; none when they are not known.
    pub(crate) ranks: Vec<u32>,
}

/// Files of one job, by their place in the list that was divided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Job {
    /// In the order of the list.
    pub(crate) files: Vec<usize>,
    /// From when to when it was recorded, where that is known of a file.
    times: Option<(i64, i64)>,
}

/// The jobs that `files` are of, each file in one. The first is the one with the most ranks, of several the last one;
/// the others come in the order of time. Each file whose rank is not known counts as a rank.
pub(crate) fn jobs(files: &[FileOfJob]) -> Vec<Job> {
    let of = |size: Option<u32>, has_times: bool| -> Vec<usize> {
        let is_one = |at: &usize| files[*at].world_size == size && files[*at].times.is_some() == has_times;
        (0..files.len()).filter(is_one).collect()
    };
    let mut jobs = Vec::new();
    let sizes: BTreeSet<u32> = files.iter().filter_map(|file| file.world_size).collect();
    for size in sizes {
        let mut of_size = chains(files, of(Some(size), true));
        add_to_largest(files, &mut of_size, of(Some(size), false));
        jobs.extend(of_size);
    }
    let (mut near, mut far) = (Vec::new(), Vec::new());
    for at in of(None, true) {
        let is_near = |job: &usize| pause_ns(jobs[*job].times, files[at].times) <= LONGEST_PAUSE_NS;
        match (0..jobs.len()).filter(is_near).max_by_key(|job| largeness(files, &jobs[*job])) {
            Some(job) => near.push((job, at)),
            None => far.push(at),
        }
    }
    near.into_iter().for_each(|(job, at)| jobs[job].files.push(at));
    jobs.extend(chains(files, far));
    add_to_largest(files, &mut jobs, of(None, false));
    jobs.iter_mut().for_each(|job| job.files.sort_unstable());
    jobs.sort_by_key(|job| (job.times, job.files.clone()));
    if let Some(largest) = largest(files, &jobs) {
        jobs[..=largest].rotate_right(1);
    }
    jobs
}

/// How long no file of either is of: 0 when they overlap, as long as can be when a time is not known.
fn pause_ns(a: Option<(i64, i64)>, b: Option<(i64, i64)>) -> i64 {
    let Some(((a_start, a_end), (b_start, b_end))) = a.zip(b) else { return i64::MAX };
    b_start.saturating_sub(a_end).max(a_start.saturating_sub(b_end)).max(0)
}

/// The files in `places`, all of known times, in groups that follow one another within the longest pause.
fn chains(files: &[FileOfJob], mut places: Vec<usize>) -> Vec<Job> {
    places.sort_by_key(|at| files[*at].times);
    let mut jobs: Vec<Job> = Vec::new();
    for at in places {
        let own = files[at].times;
        match jobs.last_mut() {
            Some(job) if pause_ns(job.times, own) <= LONGEST_PAUSE_NS => {
                job.times = job.times.zip(own).map(|(all, own)| (all.0.min(own.0), all.1.max(own.1)));
                job.files.push(at);
            }
            _ => jobs.push(Job { files: vec![at], times: own }),
        }
    }
    jobs
}

fn add_to_largest(files: &[FileOfJob], jobs: &mut Vec<Job>, added: Vec<usize>) {
    match largest(files, jobs) {
        _ if added.is_empty() => {}
        Some(at) => jobs[at].files.extend(added),
        None => jobs.push(Job { files: added, times: None }),
    }
}

fn largest(files: &[FileOfJob], jobs: &[Job]) -> Option<usize> {
    (0..jobs.len()).max_by_key(|at| largeness(files, &jobs[*at]))
}

/// What makes a job the one that is meant: its ranks, then its time, then its files.
fn largeness(files: &[FileOfJob], job: &Job) -> (usize, Option<i64>, usize) {
    (rank_count(files, job), job.times.map(|(_, end_ns)| end_ns), job.files.len())
}

fn rank_count(files: &[FileOfJob], job: &Job) -> usize {
    let own = || job.files.iter().map(|at| &files[*at]);
    let known: BTreeSet<u32> = own().flat_map(|file| file.ranks.iter().copied()).collect();
    known.len() + own().filter(|file| file.ranks.is_empty()).count()
}

/// What a person is told of a job that is left out: its files, ranks and time, and how to open it.
pub(crate) fn told(files: &[FileOfJob], job: &Job) -> String {
    let first = files[job.files[0]].path.display();
    let to_open = match pattern_of(files, job) {
        Some(pattern) => format!("stepscope report '{}'", pattern.display()),
        None => format!("{first} and {} more; stepscope report @FILE, a list of them", job.files.len() - 1),
    };
    let (ranks, count) = (rank_count(files, job), job.files.len());
    let [ranks, count] = [(ranks, "rank"), (count, "file")]
        .map(|(count, what)| if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") });
    let times = job.times.map_or("of an unknown time".into(), |(start_ns, end_ns)| {
        format!("of {}, over {}", utc(start_ns), format_ns(end_ns.saturating_sub(start_ns)))
    });
    format!("{ranks}, {count} {times}: {to_open}")
}

/// The path of a job's only file, or a pattern that all of its files match, and no other of `files`.
fn pattern_of(files: &[FileOfJob], job: &Job) -> Option<PathBuf> {
    let parts = |path: &Path| -> Option<Vec<String>> {
        path.components().map(|part: Component<'_>| part.as_os_str().to_str().map(str::to_string)).collect()
    };
    let paths: Vec<Vec<String>> = job.files.iter().map(|at| parts(&files[*at].path)).collect::<Option<_>>()?;
    let length = paths[0].len();
    if paths.iter().any(|path| path.len() != length) {
        return None;
    }
    let common: Vec<(String, Option<String>)> =
        (0..length).map(|at| common(&paths.iter().map(|path| path[at].as_str()).collect::<Vec<_>>())).collect();
    let matches = |path: &Path| {
        parts(path)
            .is_some_and(|path| path.len() == length && path.iter().zip(&common).all(|(part, of)| fits(part, of)))
    };
    // What patterns mean something by cannot stand for itself in one. A path without a pattern may have it.
    let is_special = |(start, end): &(String, Option<String>)| {
        (start.clone() + end.as_deref().unwrap_or("")).contains(['*', '?', '['])
    };
    if paths.len() > 1 && common.iter().any(is_special) {
        return None;
    }
    let is_other = |at: &usize| !job.files.contains(at);
    if (0..files.len()).filter(is_other).any(|at| matches(&files[at].path)) {
        return None;
    }
    Some(common.iter().map(|(start, end)| end.as_ref().map_or(start.clone(), |end| format!("{start}*{end}"))).collect())
}

/// The text that `texts` all are; or else what all begin and end with.
fn common(texts: &[&str]) -> (String, Option<String>) {
    let first = texts[0];
    if texts.iter().all(|text| *text == first) {
        return (first.to_string(), None);
    }
    let starts = first.char_indices().map(|(at, _)| at).chain([first.len()]).rev();
    let start = starts.map(|end| &first[..end]).find(|start| texts.iter().all(|text| text.starts_with(start)));
    let start = start.unwrap_or_default();
    let mut ends = first[start.len()..].char_indices().map(|(at, _)| &first[start.len() + at..]);
    let end = ends.find(|end| texts.iter().all(|text| text[start.len()..].ends_with(end))).unwrap_or_default();
    (start.to_string(), Some(end.to_string()))
}

fn fits(text: &str, (start, end): &(String, Option<String>)) -> bool {
    match end {
        None => text == start,
        Some(end) => text.strip_prefix(start.as_str()).is_some_and(|rest| rest.ends_with(end.as_str())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOUR_NS: i64 = 3_600_000_000_000;

    /// A file of each: name, hours from when to when, number of ranks, rank.
    type Drawn = (&'static str, Option<(i64, i64)>, Option<u32>, Option<u32>);

    fn files(drawn: &[Drawn]) -> Vec<FileOfJob> {
        let file = |(name, hours, world_size, rank): &Drawn| FileOfJob {
            path: Path::new("runs").join(name),
            times: hours.map(|(start, end)| (start * HOUR_NS, end * HOUR_NS)),
            world_size: *world_size,
            ranks: rank.iter().copied().collect(),
        };
        drawn.iter().map(file).collect()
    }

    fn divided(drawn: &[Drawn]) -> Vec<Vec<usize>> {
        jobs(&files(drawn)).into_iter().map(|job| job.files).collect()
    }

    #[test]
    fn jobs_are_told_apart_by_time_and_number_of_ranks() {
        let (two, none) = (Some(2), None);
        let of_days =
            [("a", Some((0, 1)), two, Some(0)), ("b", Some((0, 1)), two, Some(1)), ("c", Some((75, 76)), two, Some(0))];
        assert_eq!(divided(&of_days), [vec![0, 1], vec![2]]);
        let windows =
            [("a", Some((0, 1)), two, Some(0)), ("b", Some((2, 3)), two, Some(0)), ("c", Some((5, 6)), two, Some(0))];
        assert_eq!(divided(&windows), [vec![2], vec![0, 1]], "of as many ranks the last");
        let sizes = [
            ("a", Some((0, 1)), two, Some(0)),
            ("b", Some((0, 1)), Some(4), Some(1)),
            ("c", Some((0, 1)), Some(4), Some(2)),
        ];
        assert_eq!(divided(&sizes), [vec![1, 2], vec![0]]);
        let io = [("a", Some((0, 1)), two, Some(0)), ("b", Some((0, 3)), none, None), ("c", Some((9, 9)), none, None)];
        assert_eq!(divided(&io), [vec![0, 1], vec![2]]);
        let untimed = [("a", None, two, Some(0)), ("b", None, none, None), ("c", Some((0, 1)), two, Some(1))];
        assert_eq!(divided(&untimed), [vec![0, 1, 2]]);
        assert_eq!(divided(&[("a", None, two, Some(0)), ("b", None, none, None)]), [vec![0, 1]]);
        assert_eq!(divided(&[]), Vec::<Vec<usize>>::new());
    }

    #[test]
    fn a_job_that_is_left_out_is_told_with_how_to_open_it() {
        let told = |drawn: &[Drawn], at: usize| told(&files(drawn), &jobs(&files(drawn))[at]);
        let (a, b) =
            (("rank0/a.json", Some((0, 1)), Some(3), Some(0)), ("rank1/a.json", Some((0, 1)), Some(3), Some(1)));
        let later = ("rank0/b.json", Some((75, 76)), Some(3), Some(0));
        assert_eq!(
            told(&[a, b, later], 1),
            "1 rank, 1 file of 1970-01-04 03:00:00 UTC, over 1.00 h: stepscope report 'runs/rank0/b.json'"
        );
        let third = ("rank2/b.json", Some((75, 76)), Some(3), Some(2));
        let fourth = ("rank1/b.json", Some((75, 76)), Some(3), Some(1));
        assert_eq!(
            told(&[a, b, later, third, fourth], 1),
            "2 ranks, 2 files of 1970-01-01 00:00:00 UTC, over 1.00 h: stepscope report 'runs/rank*/a.json'"
        );
        let (x, y) = (("[x]/a", Some((0, 1)), Some(3), Some(0)), ("[x]/b", Some((0, 1)), Some(3), Some(1)));
        let special = told(&[x, y, later, third, fourth], 1);
        assert!(special.ends_with("runs/[x]/a and 1 more; stepscope report @FILE, a list of them"), "{special}");
        let alike = ("rank3/a.json", Some((75, 76)), Some(3), Some(3));
        assert_eq!(
            told(&[a, b, later, third, fourth, alike], 1),
            "2 ranks, 2 files of 1970-01-01 00:00:00 UTC, over 1.00 h: runs/rank0/a.json and 1 more; stepscope report @FILE, a list of them"
        );
    }

    proptest! {
        /// Files are of one job when they are joined by files of their number of ranks that are near to each other.
        #[test]
        fn jobs_are_what_near_files_of_one_size_join(
            drawn in prop::collection::vec((0_i64..20, 0_i64..4, 1_u32..4), 0..12),
        ) {
            let file = |(at, (start, hours, size)): (usize, &(i64, i64, u32))| FileOfJob {
                path: format!("{at}.json").into(),
                times: Some((start * HOUR_NS, (start + hours) * HOUR_NS)),
                world_size: Some(*size),
                ranks: vec![at as u32],
            };
            let files: Vec<FileOfJob> = drawn.iter().enumerate().map(file).collect();
            let mut job_of: Vec<usize> = (0..files.len()).collect();
            for _ in 0..files.len() {
                for (a, b) in (0..files.len()).flat_map(|a| (0..files.len()).map(move |b| (a, b))) {
                    let ((a_start, a_end), (b_start, b_end)) = (files[a].times.unwrap(), files[b].times.unwrap());
                    let is_near = b_start <= a_end + HOUR_NS && a_start <= b_end + HOUR_NS;
                    if is_near && files[a].world_size == files[b].world_size {
                        let least = job_of[a].min(job_of[b]);
                        (job_of[a], job_of[b]) = (least, least);
                    }
                }
            }
            let mut expected: Vec<Vec<usize>> = (0..files.len())
                .map(|job| (0..files.len()).filter(|at| job_of[*at] == job).collect::<Vec<_>>())
                .filter(|job| !job.is_empty())
                .collect();
            let found = jobs(&files);
            let most = expected.iter().map(Vec::len).max();
            prop_assert_eq!(found.first().map(|job| job.files.len()), most);
            let mut found: Vec<Vec<usize>> = found.into_iter().map(|job| job.files).collect();
            found.sort();
            expected.sort();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn a_common_pattern_fits_all_texts(texts in prop::collection::vec("[ab]{0,4}", 1..4), other in "[ab]{0,4}") {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let of = common(&texts);
            texts.iter().for_each(|text| assert!(fits(text, &of), "{text} {of:?}"));
            let (start, end) = &of;
            let slow = match end {
                None => other == *start,
                Some(end) => other.len() >= start.len() + end.len() && other.starts_with(start) && other.ends_with(end),
            };
            prop_assert_eq!(fits(&other, &of), slow);
        }
    }
}

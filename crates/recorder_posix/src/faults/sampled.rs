//! Page faults where the system does not tell of each: how many there were it counts, and which pages are in memory it
//! says when it is asked.
//!
//! ```text
//! faults of each thread since ─┐
//!                              ├─▶ as many records, spread over the pages
//! pages that are there now ────┘
//! ```

use super::mappings::mapped_file;
use super::monotonic_ns;
use crate::files::File;
use crate::memory_maps;
use crate::start::is_on;
use std::collections::{HashMap, HashSet};
use std::ffi::c_int;
use std::fs::File as OpenFile;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Time from one look to the next, and how many times as long as a look it is at least.
const PERIOD: Duration = Duration::from_millis(100);
const TIMES_A_LOOK: u32 = 50;
/// A look takes no longer; the next one goes on where it ended.
const LONGEST_LOOK: Duration = Duration::from_millis(5);
const PAGE: u64 = 4096;
/// A word for each page.
pub(super) const TABLE: &str = "/proc/self/pagemap";
/// Pages that are asked for at once, each of which takes a word.
const AT_ONCE: u64 = 1 << 13;
const PRESENT: u64 = 1 << 63;

/// In place of the number of a thread: of those that have ended, which the system does not tell apart.
const ENDED: u32 = 0;

/// Mapped files, and which of their pages were there.
pub(super) struct Sampler {
    mapped: HashMap<Place, Pages>,
    /// Faults that are done with, of the process and of each thread.
    of_process: u64,
    of_threads: HashMap<u32, u64>,
    /// Those that were counted at the last look.
    left: (u64, HashMap<u32, u64>),
    /// Where the last look was cut short.
    resume_at: u64,
    has_looked: bool,
}

/// Memory that a part of a file is mapped into.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    start: u64,
    end: u64,
    file: u32,
    offset: u64,
}

impl Place {
    fn pages(self) -> u64 {
        (self.end - self.start) / PAGE
    }
}

/// A bit for each page of a mapping.
struct Pages(Vec<u64>);

/// A page that had to be read.
pub(super) struct ReadPage {
    pub(super) tid: u32,
    pub(super) file: &'static File,
    pub(super) offset: u64,
}

/// Pages of a file that are new in memory, one behind the other.
#[derive(Clone, Copy)]
struct Run {
    file: &'static File,
    offset: u64,
    pages: u64,
}

impl Sampler {
    /// What is touched from now on is found. Where nothing was recorded so far, what is there already is looked up first.
    pub(super) fn begin() -> Self {
        let of_process = major_faults_of(libc::RUSAGE_SELF);
        let of_threads: HashMap<u32, u64> = faults_of_threads().collect();
        Self {
            mapped: HashMap::new(),
            left: (of_process, of_threads.clone()),
            of_process,
            of_threads,
            resume_at: 0,
            has_looked: is_on(),
        }
    }

    /// One major fault each since the last look, as far as there are pages for them; the time until the next look.
    ///
    /// # Errors
    /// When the system does not say which pages are there.
    pub(super) fn look(&mut self) -> std::io::Result<(Vec<ReadPage>, Duration)> {
        if self.has_looked && major_faults_of(libc::RUSAGE_SELF) == self.of_process {
            return Ok((Vec::new(), PERIOD));
        }
        let began_ns = monotonic_ns();
        let new = self.new_pages(began_ns + LONGEST_LOOK.as_nanos() as i64)?;
        // Afterwards: a page that is there has been counted.
        let (counted, now) = (major_faults_of(libc::RUSAGE_SELF), faults_of_threads().collect());
        if !self.has_looked {
            // What is there at first was not read now.
            (self.of_process, self.of_threads, self.has_looked) = (counted, now, true);
            return Ok((Vec::new(), PERIOD));
        }
        let found = self.spend(&self.faults_since(counted, &now), &new);
        // Those that are left may be on pages that were touched after they were looked at. What was left before is on
        // other memory, unless the look was cut short.
        if self.resume_at == 0 {
            let (before, by_thread) = std::mem::replace(&mut self.left, (counted, now));
            self.of_process = self.of_process.max(before);
            for (tid, before) in by_thread {
                let known = self.of_threads.entry(tid).or_default();
                *known = before.max(*known);
            }
        }
        let took = Duration::from_nanos((monotonic_ns() - began_ns) as u64);
        Ok((found, PERIOD.max(took * TIMES_A_LOOK)))
    }

    /// As [`Sampler::look`], at a part of a file before it is unmapped.
    pub(super) fn look_at(&mut self, addresses: &Range<u64>, file: &'static File, offset: u64) -> Vec<ReadPage> {
        let has_faults = major_faults_of(libc::RUSAGE_SELF) > self.of_process;
        let (true, true, Ok(table)) = (self.has_looked, has_faults, OpenFile::open(TABLE)) else { return Vec::new() };
        let until_ns = monotonic_ns() + LONGEST_LOOK.as_nanos() as i64;
        let Range { start, end } = *addresses;
        let contains = |(place, _): &(&Place, &mut Pages)| place.start <= start && end <= place.end;
        let place = Place { start, end, file: file.number, offset };
        let mut none = Pages::none(place);
        let (place, pages) =
            self.mapped.iter_mut().find(contains).map_or((place, &mut none), |(place, pages)| (*place, pages));
        let (first, last) = ((start - place.start) / PAGE, (end - place.start) / PAGE);
        let mut new = Vec::new();
        let mut take = |page, pages| new.push(Run { file, offset: offset + (page - first) * PAGE, pages });
        let _ = pages.look(&table, place, first..last, until_ns, &mut take);
        let (counted, tid) = (major_faults_of(libc::RUSAGE_SELF), thread_id());
        let known = self.of_threads.get(&tid).copied().unwrap_or(0);
        let own = major_faults_of(libc::RUSAGE_THREAD).saturating_sub(known);
        let is_own = own >= counted.saturating_sub(self.of_process);
        let faults = if is_own { vec![(tid, own)] } else { self.faults_since(counted, &faults_of_threads().collect()) };
        self.spend(&faults, &new)
    }

    /// How many faults each thread had since; those of threads that have ended are [`ENDED`]'s.
    fn faults_since(&self, counted: u64, now: &HashMap<u32, u64>) -> Vec<(u32, u64)> {
        let before = |tid: &u32| self.of_threads.get(tid).copied().unwrap_or(0);
        let mut since: Vec<(u32, u64)> =
            now.iter().map(|(tid, faults)| (*tid, faults.saturating_sub(before(tid)))).collect();
        since.sort_unstable();
        let known: u64 = since.iter().map(|(_, faults)| faults).sum();
        since.push((ENDED, counted.saturating_sub(self.of_process).saturating_sub(known)));
        since.retain(|(_, faults)| *faults > 0);
        since
    }

    /// Faults on these pages, which are then counted.
    fn spend(&mut self, faults: &[(u32, u64)], new: &[Run]) -> Vec<ReadPage> {
        let mut found = spread(faults, new);
        self.of_process += found.len() as u64;
        for page in &mut found {
            if page.tid == ENDED {
                page.tid = std::process::id();
            } else {
                *self.of_threads.entry(page.tid).or_default() += 1;
            }
        }
        found
    }

    /// Pages of watched files that are in memory and were not.
    fn new_pages(&mut self, until_ns: i64) -> std::io::Result<Vec<Run>> {
        let table = OpenFile::open(TABLE)?;
        let maps = memory_maps::all().unwrap_or_default();
        // Of programs and libraries, many pages are touched that were there.
        let code: HashSet<&[u8]> = maps.iter().filter(|range| range.is_executable).map(|range| &*range.path).collect();
        let watched = |range: &memory_maps::MappedRange| {
            let is_data = !range.path.is_empty() && !code.contains(&*range.path);
            let file = if is_data { mapped_file(&range.path) } else { None }?;
            Some((Place { start: range.start, end: range.end, file: file.number, offset: range.offset }, file))
        };
        let mut places: Vec<(Place, &'static File)> = maps.iter().filter_map(watched).collect();
        self.mapped.retain(|place, _| places.iter().any(|(there, _)| there == place));
        let first = places.partition_point(|(place, _)| place.end <= self.resume_at);
        places.rotate_left(first);
        let mut found = Vec::new();
        let from = std::mem::take(&mut self.resume_at);
        for (place, file) in places {
            let pages = self.mapped.entry(place).or_insert_with(|| Pages::none(place));
            let first = if (place.start..place.end).contains(&from) { (from - place.start) / PAGE } else { 0 };
            let reached = pages.look(&table, place, first..place.pages(), until_ns, &mut |page, count| {
                found.push(Run { file, offset: place.offset + page * PAGE, pages: count });
            })?;
            if let Some(page) = reached {
                self.resume_at = place.start + page * PAGE;
                break;
            }
        }
        Ok(found)
    }
}

impl Pages {
    fn none(place: Place) -> Self {
        Self(vec![0; place.pages().div_ceil(64) as usize])
    }

    /// Hands over those of these pages that are there and were not, in runs with how many; the page up to which there was
    /// time, `None` where that is the end.
    fn look(
        &mut self,
        table: &OpenFile,
        place: Place,
        Range { start: mut at, end: count }: Range<u64>,
        until_ns: i64,
        take: &mut dyn FnMut(u64, u64),
    ) -> std::io::Result<Option<u64>> {
        let mut words = vec![0; (AT_ONCE.min(count) * 8) as usize];
        let mut run = 0..0;
        while at < count {
            if monotonic_ns() >= until_ns {
                break;
            }
            let bytes = &mut words[..(AT_ONCE.min(count - at) * 8) as usize];
            let read = table.read_at(bytes, (place.start / PAGE + at) * 8)?;
            // Something else is mapped by now.
            if read < 8 {
                break;
            }
            for word in bytes[..read].as_chunks::<8>().0 {
                if self.set(at, u64::from_ne_bytes(*word) & PRESENT != 0) {
                    if run.end != at {
                        hand_over(&run, take);
                        run = at..at;
                    }
                    run.end = at + 1;
                }
                at += 1;
            }
        }
        hand_over(&run, take);
        Ok((at < count).then_some(at))
    }

    /// Whether the page is there and was not.
    fn set(&mut self, page: u64, is_there: bool) -> bool {
        let (word, bit) = (&mut self.0[page as usize / 64], 1 << (page % 64));
        let was_there = *word & bit != 0;
        // Words of pages that never were are not written: they take no memory.
        if was_there != is_there {
            *word ^= bit;
        }
        is_there && !was_there
    }
}

fn hand_over(run: &Range<u64>, take: &mut dyn FnMut(u64, u64)) {
    if !run.is_empty() {
        take(run.start, run.end - run.start);
    }
}

/// As many pages as there were faults, at even distances; each with a thread, as many as that had.
fn spread(faults: &[(u32, u64)], new: &[Run]) -> Vec<ReadPage> {
    let wanted: u64 = faults.iter().map(|(_, faults)| faults).sum();
    let there: u64 = new.iter().map(|run| run.pages).sum();
    let count = wanted.min(there);
    let mut runs = new.iter().copied();
    let mut threads = faults.iter().copied();
    let (mut run, mut thread) = (None::<Run>, None::<(u32, u64)>);
    let (mut pages_before, mut faults_before) = (0, 0);
    let mut found = Vec::new();
    for at in 0..count {
        let part_of = |whole: u64| (u128::from(at) * u128::from(whole) / u128::from(count)) as u64;
        let (page, fault) = (part_of(there), part_of(wanted));
        while run.is_none_or(|run| page >= pages_before + run.pages) {
            pages_before += run.map_or(0, |run| run.pages);
            run = runs.next();
        }
        while thread.is_none_or(|(_, faults)| fault >= faults_before + faults) {
            faults_before += thread.map_or(0, |(_, faults)| faults);
            thread = threads.next();
        }
        if let (Some(Run { file, offset, .. }), Some((tid, _))) = (run, thread) {
            found.push(ReadPage { tid, file, offset: offset + (page - pages_before) * PAGE });
        }
    }
    found
}

fn thread_id() -> u32 {
    // SAFETY: a plain system call.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// Those of the calling thread so far, or of all threads, also of those that have ended.
fn major_faults_of(who: c_int) -> u64 {
    // SAFETY: a plain structure that the call fills.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &mut usage);
        usage
    };
    usage.ru_majflt as u64
}

/// Those of each thread that there is.
fn faults_of_threads() -> impl Iterator<Item = (u32, u64)> {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    threads.filter_map(|thread| {
        let stat = std::fs::read(thread.path().join("stat")).ok()?;
        Some((thread.file_name().to_str()?.parse().ok()?, faults_in(&stat)?))
    })
}

/// The twelfth field; the second is a name in parentheses, which may have any in it.
fn faults_in(stat: &[u8]) -> Option<u64> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    std::str::from_utf8(&stat[name_end + 1..]).ok()?.split_ascii_whitespace().nth(9)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::file;

    #[test]
    fn fields_are_found_behind_any_name() {
        let stat = b"12 (a) b) R 1 12 12 0 -1 4194304 1234 0 77 0 3 4 0 0 20 0";
        assert_eq!((faults_in(stat), faults_in(b"12 (a")), (Some(77), None));
    }

    #[test]
    fn each_fault_gets_a_page_as_far_as_there_are_any() {
        let [a, b] = [b"/data/a", b"/data/b"].map(|path| file(path).unwrap());
        let new = [Run { file: a, offset: 0, pages: 4 }, Run { file: b, offset: 8 * PAGE, pages: 2 }];
        let of = |faults: &[(u32, u64)]| -> Vec<(u32, u32, u64)> {
            let found = spread(faults, &new);
            found.iter().map(|page| (page.tid, page.file.number, page.offset / PAGE)).collect()
        };
        let (a, b) = (a.number, b.number);
        assert_eq!(of(&[(7, 1), (8, 2)]), [(7, a, 0), (8, a, 2), (8, b, 8)]);
        // More faults than pages: those on other memory.
        assert_eq!(of(&[(7, 6), (8, 6)]), [(7, a, 0), (7, a, 1), (7, a, 2), (8, a, 3), (8, b, 8), (8, b, 9)]);
        assert_eq!((of(&[]), spread(&[(7, 3)], &[]).len()), (vec![], 0));
    }

    #[test]
    fn what_was_there_before_is_not_new() {
        let mut pages = Pages(vec![0; 2]);
        let there = |pages: &mut Pages, at: &[u64]| -> Vec<u64> {
            (0..128).filter(|page| pages.set(*page, at.contains(page))).collect()
        };
        assert_eq!(there(&mut pages, &[0, 63, 64]), [0, 63, 64]);
        assert_eq!(there(&mut pages, &[0, 64, 127]), [127]);
        assert_eq!(there(&mut pages, &[63, 127]), [63]);
    }

    #[test]
    fn pages_that_are_touched_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        std::fs::write(&path, vec![1; 64 * PAGE as usize]).unwrap();
        let data = OpenFile::open(&path).unwrap();
        // SAFETY: a mapping of its own, for as long as the test.
        let base = unsafe {
            let fd = std::os::fd::AsRawFd::as_raw_fd(&data);
            let base = libc::mmap(std::ptr::null_mut(), 64 * PAGE as usize, libc::PROT_READ, libc::MAP_PRIVATE, fd, 0);
            libc::madvise(base, 64 * PAGE as usize, libc::MADV_RANDOM);
            base.cast::<u8>()
        };
        let table = OpenFile::open(TABLE).unwrap();
        let place = Place { start: base as u64, end: base as u64 + 64 * PAGE, file: 0, offset: 0 };
        let mut pages = Pages::none(place);
        let mut look = |first, until_ns| {
            let mut found = Vec::new();
            let reached = pages.look(&table, place, first..64, until_ns, &mut |page, count| found.push((page, count)));
            (found, reached.unwrap())
        };
        // SAFETY: within the mapping.
        assert_eq!(unsafe { base.add(40 * PAGE as usize).read_volatile() }, 1);
        let (first, _) = look(0, i64::MAX);
        // The system may have mapped what lies around it.
        assert!(first.iter().any(|(page, count)| (*page..page + count).contains(&40)), "{first:?}");
        assert_eq!(look(0, i64::MAX), (vec![], None));
        assert_eq!(look(3, 0), (vec![], Some(3)));
    }
}

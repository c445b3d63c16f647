//! What the machine does beside the process: processors, memory, swap, disks, networks, network file systems, pressure.
//!
//! All are read from files of the system; a file that is not there, or is written otherwise, has no counters.

use crate::buffer::counter;
use std::path::{Path, PathBuf};

/// A quantity by its name, with its unit.
pub(crate) type Counters = Vec<(String, i64)>;

/// Reads the quantities.
pub(crate) struct HostSampler {
    tick_ns: i64,
    page_bytes: i64,
}

impl HostSampler {
    pub(crate) fn new() -> Self {
        // SAFETY: plain questions.
        let [ticks_per_s, page_bytes] =
            [libc::_SC_CLK_TCK, libc::_SC_PAGESIZE].map(|name| unsafe { libc::sysconf(name) });
        Self { tick_ns: 1_000_000_000 / ticks_per_s.max(1), page_bytes }
    }

    /// Writes what holds now.
    pub(crate) fn sample(&self) {
        let of = |path: &str, read: &dyn Fn(&str) -> Counters| {
            let text = std::fs::read(path).unwrap_or_default();
            read(&String::from_utf8_lossy(&text)).iter().for_each(|(name, value)| counter(name, *value));
        };
        of("/proc/stat", &|text| processors(text, self.tick_ns));
        of("/proc/meminfo", &memory);
        of("/proc/vmstat", &|text| swapped(text, self.page_bytes));
        of("/proc/diskstats", &disks);
        of("/proc/net/dev", &networks);
        of("/proc/self/mountstats", &nfs);
        for what in ["cpu", "memory", "io"] {
            of(&format!("/proc/pressure/{what}"), &|text| pressure(what, text));
        }
        for stats in lustre_files() {
            let name = stats.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
            of(&stats.to_string_lossy(), &|text| lustre(&name, text));
        }
    }
}

pub(crate) fn number(word: Option<&str>) -> Option<i64> {
    word?.parse().ok()
}

/// The number behind a word that begins a line.
pub(crate) fn field(text: &str, key: &str) -> Option<i64> {
    let mut lines = text.lines().map(str::split_ascii_whitespace);
    lines.find_map(|mut words| (words.next() == Some(key)).then(|| number(words.next()))?)
}

/// `/proc/stat`: time of all processors together, and threads that want one.
fn processors(text: &str, tick_ns: i64) -> Counters {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default();
    let ticks: Vec<i64> = line.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
    let mut found = Vec::new();
    if let [user, nice, system, idle, waiting, interrupts, soft_interrupts, stolen, ..] = ticks[..] {
        // Time of virtual machines that this one runs is in that of programs.
        let times = [
            ("user", user + nice),
            ("system", system + interrupts + soft_interrupts),
            ("idle", idle),
            ("waiting for I/O", waiting),
            ("stolen", stolen),
        ];
        found.extend(times.map(|(name, ticks)| (format!("host CPU {name} (ns)"), ticks.saturating_mul(tick_ns))));
    }
    let threads =
        [("procs_running", "host threads that run or could"), ("procs_blocked", "host threads that wait for I/O")];
    found.extend(threads.iter().filter_map(|(key, name)| Some(((*name).into(), field(text, key)?))));
    found
}

/// `/proc/meminfo`.
fn memory(text: &str) -> Counters {
    let bytes = |key: &str| field(text, key)?.checked_mul(1024);
    let swap = bytes("SwapTotal:").zip(bytes("SwapFree:")).map(|(total, free)| total - free);
    let all = [
        ("available memory", bytes("MemAvailable:")),
        ("page cache", bytes("Cached:")),
        ("pages to be written", bytes("Dirty:")),
        ("used swap", swap),
    ];
    all.into_iter().filter_map(|(name, value)| Some((format!("host {name} (bytes)"), value?))).collect()
}

/// `/proc/vmstat`: what went between memory and swap.
fn swapped(text: &str, page_bytes: i64) -> Counters {
    let ways = [("pswpin", "host swapped in (bytes)"), ("pswpout", "host swapped out (bytes)")];
    ways.iter().filter_map(|(key, name)| Some(((*name).into(), field(text, key)?.checked_mul(page_bytes)?))).collect()
}

/// `/proc/diskstats`: each disk that has done something; no parts of disks, and none that are made of others.
fn disks(text: &str) -> Counters {
    let mut found = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, _, name, rest @ ..] = &words[..] else { continue };
        let numbers: Vec<i64> = rest.iter().map_while(|word| word.parse().ok()).collect();
        let [_, _, read_sectors, _, _, _, written_sectors, _, _, busy_ms, ..] = numbers[..] else { continue };
        if is_disk(name) && (read_sectors > 0 || written_sectors > 0) {
            found.push((format!("disk {name} read (bytes)"), read_sectors.saturating_mul(512)));
            found.push((format!("disk {name} written (bytes)"), written_sectors.saturating_mul(512)));
            found.push((format!("disk {name} busy (ns)"), busy_ms.saturating_mul(1_000_000)));
        }
    }
    found
}

/// By the names that the system gives: `sda`, `vdb`, `xvda`, `nvme0n1`, `mmcblk0`.
fn is_disk(name: &str) -> bool {
    let letters = |prefix: &str| {
        name.strip_prefix(prefix)
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_lowercase()))
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let nvme = || name.strip_prefix("nvme")?.split_once('n');
    ["sd", "vd", "xvd", "hd"].into_iter().any(letters)
        || nvme().is_some_and(|(controller, space)| is_number(controller) && is_number(space))
        || name.strip_prefix("mmcblk").is_some_and(is_number)
}

/// `/proc/net/dev`: each interface that has done something, but for the one to the machine itself.
fn networks(text: &str) -> Counters {
    let mut found = Vec::new();
    for (name, numbers) in text.lines().filter_map(|line| line.split_once(':')) {
        let (name, mut numbers) = (name.trim(), numbers.split_ascii_whitespace());
        let (received, sent) = (number(numbers.next()), number(numbers.nth(7)));
        if let Some((received, sent)) = received.zip(sent).filter(|bytes| name != "lo" && *bytes != (0, 0)) {
            found.push((format!("network {name} received (bytes)"), received));
            found.push((format!("network {name} sent (bytes)"), sent));
        }
    }
    found
}

/// `/proc/self/mountstats`: what each file system of NFS reads from and writes to its server.
fn nfs(text: &str) -> Counters {
    let (mut found, mut place) = (Vec::new(), None);
    for line in text.lines() {
        if let Some(mount) = line.strip_prefix("device ") {
            let words: Vec<&str> = mount.split(' ').collect();
            // `SERVER mounted on PLACE with fstype nfs4 statvers=1.1`, of which the place has no spaces.
            let at = words.iter().position(|word| *word == "fstype");
            let is_nfs = at.and_then(|at| words.get(at + 1)).is_some_and(|kind| kind.starts_with("nfs"));
            place = words.get(3).filter(|_| is_nfs).copied();
        } else if let Some((place, bytes)) = place.zip(line.trim_start().strip_prefix("bytes:")) {
            let bytes: Vec<i64> = bytes.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
            if let [_, _, _, _, read, written, ..] = bytes[..] {
                found.push((format!("NFS {place} read (bytes)"), read));
                found.push((format!("NFS {place} written (bytes)"), written));
            }
        }
    }
    found
}

/// The counters of each file system of Lustre.
fn lustre_files() -> Vec<PathBuf> {
    let folders = std::fs::read_dir("/proc/fs/lustre/llite").into_iter().flatten();
    folders.filter_map(|folder| Some(folder.ok()?.path().join("stats"))).collect()
}

/// `llite/NAME/stats`, whose lines end with a sum: `read_bytes 5 samples [bytes] 1 1048576 4194304`.
fn lustre(name: &str, text: &str) -> Counters {
    let sum = |key: &str| {
        let mut lines = text.lines().map(str::split_ascii_whitespace);
        lines.find_map(|mut words| (words.next() == Some(key)).then(|| number(words.nth(5)))?)
    };
    let sums = [("read", sum("read_bytes")), ("written", sum("write_bytes"))];
    sums.into_iter().filter_map(|(way, sum)| Some((format!("Lustre {name} {way} (bytes)"), sum?))).collect()
}

/// `/proc/pressure/…`: for how long some threads waited for it, and for how long all that had something to do.
fn pressure(what: &str, text: &str) -> Counters {
    let name = if what == "memory" { what.into() } else { what.to_ascii_uppercase() };
    let share = |line: &str| {
        let (share, rest) = line.split_once(' ')?;
        let waited_us: i64 = rest.rsplit_once("total=")?.1.trim().parse().ok()?;
        let who = match share {
            "some" => "some threads wait for",
            "full" => "all threads wait for",
            _ => return None,
        };
        Some((format!("host {who} {name} (ns)"), waited_us.saturating_mul(1_000)))
    };
    text.lines().filter_map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(counters: Counters) -> Vec<String> {
        counters.into_iter().map(|(name, value)| format!("{name}: {value}")).collect()
    }

    #[test]
    fn processors_and_memory() {
        let text = "cpu  10 2 30 400 5 6 7 8 9 1\ncpu0 1 1 1 1 1 1 1 1 1 1\nprocs_running 3\nprocs_blocked 1\n";
        let expected = [
            "host CPU user (ns): 120000000",
            "host CPU system (ns): 430000000",
            "host CPU idle (ns): 4000000000",
            "host CPU waiting for I/O (ns): 50000000",
            "host CPU stolen (ns): 80000000",
            "host threads that run or could: 3",
            "host threads that wait for I/O: 1",
        ];
        assert_eq!(lines(processors(text, 10_000_000)), expected);
        let text = "MemTotal: 9 kB\nMemAvailable:    8 kB\nCached: 2 kB\nSwapTotal: 7 kB\nSwapFree: 3 kB\n";
        let expected =
            ["host available memory (bytes): 8192", "host page cache (bytes): 2048", "host used swap (bytes): 4096"];
        assert_eq!(lines(memory(text)), expected);
        assert_eq!((lines(processors("", 1)), lines(memory("?"))), (vec![], vec![]));
        let text = "pgpgin 9\npswpin 3\npswpout 5\n";
        assert_eq!(lines(swapped(text, 4096)), ["host swapped in (bytes): 12288", "host swapped out (bytes): 20480"]);
    }

    #[test]
    fn disks_without_their_parts() {
        let text = " 254 0 vda 10 0 16 5 20 0 40 6 0 77 11\n 254 1 vda1 10 0 16 5 20 0 40 6 0 77 11\n\
                    \x207 0 loop0 9 0 9 9 9 0 9 9 0 9 9\n 259 0 nvme0n1 0 0 0 0 1 0 2 0 0 3 0\n 253 0 dm-0 1 0 1 1 1 0 1 1 0 1 1\n";
        let expected = [
            "disk vda read (bytes): 8192",
            "disk vda written (bytes): 20480",
            "disk vda busy (ns): 77000000",
            "disk nvme0n1 read (bytes): 0",
            "disk nvme0n1 written (bytes): 1024",
            "disk nvme0n1 busy (ns): 3000000",
        ];
        assert_eq!(lines(disks(text)), expected);
        let names = ["sda", "sda1", "nvme1n12", "nvme0n1p1", "nvme0", "mmcblk0", "mmcblk0p1", "md0", "sr0", "xvdb"];
        assert_eq!(names.map(is_disk), [true, false, true, false, false, true, false, false, false, true]);
    }

    #[test]
    fn networks_and_network_file_systems() {
        let text = "Inter-| Receive | Transmit\n face |bytes packets|bytes packets\n    lo: 5 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n\
                    eth0:100 1 0 0 0 0 0 0 200 1 0 0 0 0 0 0\n  ib0: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
        assert_eq!(lines(networks(text)), ["network eth0 received (bytes): 100", "network eth0 sent (bytes): 200"]);
        let text = "device /dev/vda mounted on / with fstype ext4\ndevice server:/data mounted on /data with fstype nfs4 statvers=1.1\n\
                    \tage:\t9\n\tbytes:\t1 2 3 4 50 60 7 8\ndevice proc mounted on /proc with fstype proc\n\tbytes: 1 1 1 1 1 1\n";
        assert_eq!(lines(nfs(text)), ["NFS /data read (bytes): 50", "NFS /data written (bytes): 60"]);
        let text = "snapshot_time 1.5 secs.nsecs\nread_bytes 5 samples [bytes] 1 1048576 4194304\n";
        assert_eq!(lines(lustre("scratch-ff", text)), ["Lustre scratch-ff read (bytes): 4194304"]);
    }

    #[test]
    fn pressure_says_how_long_threads_wait() {
        let text =
            "some avg10=0.00 avg60=0.10 avg300=0.00 total=1234\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5\n";
        let expected = ["host some threads wait for IO (ns): 1234000", "host all threads wait for IO (ns): 5000"];
        assert_eq!(lines(pressure("io", text)), expected);
    }
}

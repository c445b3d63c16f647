//! Captures as a recorded process writes them, from records that a test gives.

use std::collections::HashMap;
use std::path::Path;
use stepscope_capture::device::{ActivityRecord, encode};
use stepscope_capture::io::IoRecord;
use stepscope_capture::layout::{
    BeginWord, HEADER_BYTES, MAGIC, SEGMENT_MAGIC, Tag, VERSION, first_word, padded, scope,
};

/// What every clock says of time 0 of a capture: the device's is another one than Unix time.
pub(crate) const UNIX_NS: i64 = 1_700_000_000_000_000_000;
pub(crate) const DEVICE_NS: i64 = 900_000_000_000_000_000;
const CUDA: u8 = 1;

/// A capture whose ticks are nanoseconds since it was opened.
#[derive(Default)]
pub(crate) struct MadeCapture {
    words: Vec<u64>,
    names: HashMap<String, u32>,
    threads: u64,
    pub(crate) pid: u64,
    pub(crate) parent_pid: u64,
    pub(crate) is_killed: bool,
    /// It is not closed, and writes on.
    pub(crate) is_running: bool,
    /// When it was opened: of the host's monotonic clock, and how far its time of day was then from [`UNIX_NS`] more.
    pub(crate) opened_ns: i64,
    pub(crate) moved_ns: i64,
    /// Which host.
    pub(crate) boot: u8,
}

impl MadeCapture {
    /// An empty one.
    pub(crate) fn new(pid: u64) -> Self {
        Self { words: vec![u64::from(SEGMENT_MAGIC) << 32, 0], pid, ..Self::default() }
    }

    fn add(&mut self, at_ns: i64, tag: Tag, words: &[u64], text: &str) {
        self.words.push(first_word(at_ns as u64, tag));
        self.words.extend(words);
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(padded(bytes.len()), 0);
        self.words.extend(bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))));
    }

    /// What follows is of a thread that is new. It comes before everything else.
    pub(crate) fn thread(&mut self, tid: u32, handle: u32, name: &str) {
        self.add(0, Tag::Thread, &[self.threads, u64::from(tid) | u64::from(handle) << 32, self.threads + 1], "");
        self.threads += 1;
        self.add(0, Tag::ThreadName, &[name.len() as u64], name);
    }

    /// A metadata entry of the process.
    pub(crate) fn fact(&mut self, key: &str, value: &str) {
        let lengths = key.len() as u64 | (value.len() as u64) << 32;
        self.add(0, Tag::Fact, &[lengths], &format!("{key}{value}"));
    }

    /// The id of a name.
    pub(crate) fn name(&mut self, name: &str) -> u32 {
        if let Some(id) = self.names.get(name) {
            return *id;
        }
        let id = self.names.len() as u32;
        self.add(0, Tag::Name, &[u64::from(id) | (name.len() as u64) << 32], name);
        self.names.insert(name.into(), id);
        id
    }

    /// An op begins, with its sequence number.
    pub(crate) fn begin(&mut self, at_ns: i64, name: &str, number: Option<u64>) {
        let name = self.name(name);
        self.add(at_ns, Tag::Begin, &[BeginWord::pack(name, 0, number.map_or(0, |number| number + 1))], "");
    }

    /// A label begins.
    pub(crate) fn begin_label(&mut self, at_ns: i64, name: &str) {
        let name = self.name(name);
        self.add(at_ns, Tag::Begin, &[BeginWord::pack(name, scope::LABEL, 0)], "");
    }

    /// The innermost one ends.
    pub(crate) fn end(&mut self, at_ns: i64) {
        self.add(at_ns, Tag::End, &[], "");
    }

    /// The clock of the device's profiler is read.
    pub(crate) fn device_clock(&mut self, at_ns: i64) {
        self.add(at_ns, Tag::DeviceClock, &[(DEVICE_NS + at_ns) as u64], "");
    }

    /// An activity record, whose times count from when the capture was opened, by the device's clock once written.
    pub(crate) fn activity(&mut self, mut record: ActivityRecord, name: Option<&str>) {
        let id = name.map(|name| self.name(name));
        if let Some(place) = record.name_mut() {
            *place = id;
        }
        let is_open = matches!(record, ActivityRecord::Range(range) if range.end_ns == 0);
        if let Some((start_ns, end_ns)) = record.span_mut() {
            *start_ns += DEVICE_NS;
            *end_ns += if is_open { 0 } else { DEVICE_NS };
        }
        self.add(0, Tag::Device, encode(&record, CUDA).as_slice(), "");
    }

    /// Both clocks of the host are read: its time of day is `moved_ns` ahead of what it was for the others.
    pub(crate) fn clock(&mut self, at_ns: i64, moved_ns: i64) {
        let monotonic_ns = self.opened_ns + at_ns;
        self.add(at_ns, Tag::Clock, &[monotonic_ns as u64, (UNIX_NS + monotonic_ns + moved_ns) as u64], "");
    }

    /// A sample of a quantity.
    pub(crate) fn sample(&mut self, at_ns: i64, name: &str, value: i64) {
        let name = self.name(name);
        self.add(at_ns, Tag::Counter, &[name.into(), value as u64], "");
    }

    /// The path of a file that calls name by a number.
    pub(crate) fn file(&mut self, number: u32, path: &str) {
        self.add(0, Tag::File, &[u64::from(number) | (path.len() as u64) << 32], path);
    }

    /// A call on a file.
    pub(crate) fn io(&mut self, at_ns: i64, record: &IoRecord) {
        let (words, len) = record.words();
        self.add(at_ns, Tag::Io, &words[..len], "");
    }

    /// Memory of a device is allocated.
    pub(crate) fn allocate(&mut self, at_ns: i64, device: u8, bytes: i64) {
        let device = u64::from(CUDA) | u64::from(device) << 8;
        self.add(at_ns, Tag::MemoryReserved, &[0x7000, bytes as u64, bytes as u64, 2 << 20, device], "");
    }

    /// Writes it as the raw file of a run.
    pub(crate) fn write(&self, run: &Path) {
        let mut bytes = vec![0; HEADER_BYTES];
        let segment_bytes = (self.words.len() * 8 + 8).next_multiple_of(4096);
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..20].copy_from_slice(&(segment_bytes as u32).to_le_bytes());
        bytes[24..32].copy_from_slice(&self.pid.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.parent_pid.to_le_bytes());
        bytes[56] = self.boot;
        bytes[80..88].copy_from_slice(&self.opened_ns.to_le_bytes());
        bytes[88..96].copy_from_slice(&(UNIX_NS + self.opened_ns + self.moved_ns).to_le_bytes());
        bytes[96] = u8::from(!self.is_killed && !self.is_running);
        // A heartbeat from the future is a clock that runs ahead.
        let heartbeat_ns = if self.is_running { i64::MAX / 2 } else { 0 };
        bytes[104..112].copy_from_slice(&heartbeat_ns.to_le_bytes());
        bytes.extend(self.words.iter().flat_map(|word| word.to_le_bytes()));
        bytes.resize(HEADER_BYTES + segment_bytes, 0);
        std::fs::create_dir_all(run.join("raw")).expect("a folder");
        std::fs::write(run.join(format!("raw/{}-1.capture", self.pid)), bytes).expect("written");
    }
}

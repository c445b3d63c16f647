//! `generate-capture`: a raw capture of operators that launch kernels, as a process with a GPU leaves it.

use crate::quantity;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::PathBuf;
use stepscope_capture::device::{ActivityRecord, Api, Call, DeviceWork, Kernel, WorkKind, encode};
use stepscope_capture::layout::{
    BeginWord, HEADER_BYTES, MAGIC, SEGMENT_HEADER_BYTES, SEGMENT_MAGIC, Tag, VERSION, first_word, padded, scope,
};

/// What `generate-capture` is told.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// File to write
    #[arg(short, long)]
    output: PathBuf,
    /// Kernels; as many calls launch them
    #[arg(long, default_value = "1M", value_parser = quantity::parse)]
    kernels: u64,
    /// Operators around each call
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=8))]
    depth: u64,
}

const CUDA: u8 = 1;
const SEGMENT_BYTES: usize = 256 << 10;
/// Bytes of a segment that records do not reach, so that the longest one has room.
const MARGIN: usize = 256;
/// The thread that runs operators, and the one that writes what the device's profiler reports.
const MAIN: u64 = 0;
const WRITER: u64 = 1;
const HANDLE: u32 = 0x7001;
const OPERATORS: u32 = 40;
const KERNELS: u32 = 120;
const LAUNCH: u32 = OPERATORS + KERNELS;
const LABEL: u32 = LAUNCH + 1;
/// Kernels of a label and of a step.
const PER_LABEL: u64 = 50;
const PER_STEP: u64 = 1_000;
/// From one moment at which clocks are read to the next.
const PER_MOMENT: u64 = 250_000;
/// From one launch to the next, and how much later a kernel runs, ns.
const EACH_NS: u64 = 4_000;
const LATER_NS: u64 = 20_000;

/// Writes it.
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let path = arguments.output.display();
    let written = File::create(&arguments.output).and_then(|file| write(file, arguments.kernels, arguments.depth));
    let bytes = written.map_err(|error| format!("cannot write the capture: {error}: {path}"))?;
    println!("{path}: {:.1} MB, {} kernels", bytes as f64 / 1e6, arguments.kernels);
    Ok(())
}

/// One thread's segment in the making.
struct Writing {
    thread: u64,
    part: u64,
    bytes: Vec<u8>,
}

/// The file, and the segments that are not full yet.
struct Captured<W> {
    file: W,
    segments: u64,
    threads: [Writing; 2],
}

impl<W: Write> Captured<W> {
    fn put(&mut self, thread: u64, ticks: u64, tag: Tag, words: &[u64]) -> io::Result<()> {
        if self.threads[thread as usize].bytes.len() + MARGIN > SEGMENT_BYTES {
            self.end_segment(thread)?;
        }
        let writing = &mut self.threads[thread as usize];
        if writing.bytes.is_empty() {
            writing.bytes.resize(SEGMENT_HEADER_BYTES, 0);
            let handle = if thread == MAIN { HANDLE } else { 0 };
            let about = [writing.thread | writing.part << 32, (100 + thread) | u64::from(handle) << 32, thread + 1];
            push(&mut writing.bytes, ticks, Tag::Thread, &about);
            writing.part += 1;
        }
        push(&mut writing.bytes, ticks, tag, words);
        Ok(())
    }

    fn text(&mut self, tag: Tag, word: u64, text: &str) -> io::Result<()> {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(padded(text.len()), 0);
        let text = bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
        self.put(MAIN, 1, tag, &std::iter::once(word).chain(text).collect::<Vec<u64>>())
    }

    fn activity(&mut self, record: ActivityRecord) -> io::Result<()> {
        self.put(WRITER, record.span().unwrap_or_default().1 as u64, Tag::Device, encode(&record, CUDA).as_slice())
    }

    fn end_segment(&mut self, thread: u64) -> io::Result<()> {
        let bytes = &mut self.threads[thread as usize].bytes;
        if bytes.is_empty() {
            return Ok(());
        }
        bytes[..8].copy_from_slice(&(u64::from(SEGMENT_MAGIC) << 32 | self.segments).to_le_bytes());
        bytes.resize(SEGMENT_BYTES, 0);
        self.file.write_all(bytes)?;
        bytes.clear();
        self.segments += 1;
        Ok(())
    }
}

fn push(bytes: &mut Vec<u8>, ticks: u64, tag: Tag, words: &[u64]) {
    bytes.extend(first_word(ticks, tag).to_le_bytes());
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}

/// Ticks are nanoseconds, also those of the device's profiler.
fn write(file: File, kernels: u64, depth: u64) -> io::Result<u64> {
    let mut header = vec![0; HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[16..20].copy_from_slice(&(SEGMENT_BYTES as u32).to_le_bytes());
    header[96] = 1;
    let writing = |thread: u64| Writing { thread, part: 0, bytes: Vec::with_capacity(SEGMENT_BYTES) };
    let mut captured = Captured { file: BufWriter::new(file), segments: 0, threads: [writing(MAIN), writing(WRITER)] };
    captured.file.write_all(&header)?;
    let operators = (0..OPERATORS).map(|number| format!("aten::operator_{number}"));
    let names = operators.chain((0..KERNELS).map(|number| format!("void kernel_{number}<float>(float*)")));
    for (id, name) in (0_u64..).zip(names.chain(["cudaLaunchKernel".into(), "forward".into()])) {
        captured.text(Tag::Name, id | (name.len() as u64) << 32, &name)?;
    }
    captured.put(WRITER, 1, Tag::DeviceClock, &[1])?;
    for kernel in 0..kernels {
        launch(&mut captured, kernel, depth)?;
    }
    let end = (kernels + 10) * EACH_NS + LATER_NS;
    captured.put(WRITER, end, Tag::DeviceClock, &[end])?;
    captured.put(MAIN, end, Tag::Clock, &[end, end])?;
    [MAIN, WRITER].into_iter().try_for_each(|thread| captured.end_segment(thread))?;
    let mut file = captured.file.into_inner()?;
    file.seek(SeekFrom::End(0))
}

/// A kernel, the call that launches it, and the operators around that.
fn launch(captured: &mut Captured<impl Write>, kernel: u64, depth: u64) -> io::Result<()> {
    let at = 1_000 + kernel * EACH_NS;
    let begin = |name: u32, scope: u8| [BeginWord::pack(name, scope, 0)];
    if kernel.is_multiple_of(PER_STEP) {
        captured.put(MAIN, at, Tag::StepBegin, &[kernel / PER_STEP])?;
    }
    if kernel.is_multiple_of(PER_LABEL) {
        captured.put(MAIN, at + 10, Tag::Begin, &begin(LABEL, scope::LABEL))?;
    }
    for level in 0..depth {
        let name = (kernel * 7 + level * 13) as u32 % OPERATORS;
        captured.put(MAIN, at + 20 + level * 100, Tag::Begin, &begin(name, 0))?;
    }
    for level in 0..depth {
        captured.put(MAIN, at + 3_000 + level * 100, Tag::End, &[])?;
    }
    if (kernel + 1).is_multiple_of(PER_LABEL) {
        captured.put(MAIN, at + 3_900, Tag::End, &[])?;
    }
    if (kernel + 1).is_multiple_of(PER_STEP) {
        captured.put(MAIN, at + 3_950, Tag::StepEnd, &[kernel / PER_STEP])?;
    }
    if kernel.is_multiple_of(PER_MOMENT) {
        captured.put(WRITER, at, Tag::DeviceClock, &[at])?;
        captured.put(MAIN, at + 3_960, Tag::Clock, &[at + 3_960, at + 3_960])?;
    }
    let (correlation, start_ns) = (kernel as u32 + 1, (at + 1_000) as i64);
    let (api, name) = (Api::Runtime, Some(LAUNCH));
    let call = Call { api, name, start_ns, end_ns: start_ns + 1_500, thread: HANDLE, correlation, status: 0 };
    captured.activity(ActivityRecord::Call(call))?;
    let kind = WorkKind::Kernel(Kernel {
        name: Some(OPERATORS + (kernel * 11) as u32 % KERNELS),
        grid: Some([kernel as u32 % 97 + 1, 1, 1]),
        block: Some([256, 1, 1]),
        registers: Some(32),
        static_shared_bytes: Some(0),
        dynamic_shared_bytes: Some(0),
    });
    let start_ns = start_ns + LATER_NS as i64;
    let (context, stream) = (Some(1), Some(7 + (kernel % 3) as u32));
    let end_ns = start_ns + 2_000 + (kernel % 1_000) as i64;
    let work = DeviceWork { kind, start_ns, end_ns, device: 0, context, stream, correlation, graph: 0, graph_node: 0 };
    captured.activity(ActivityRecord::Work(work))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_a_capture_of_as_many_kernels() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        write(file.reopen().expect("a file"), 5_000, 2).expect("a capture is written");
        let capture = stepscope_capture::read(file.path()).expect("a capture");
        assert_eq!((capture.events.len(), capture.device.len(), capture.steps.len()), (10_100, 10_000, 5));
        assert!(capture.damaged.is_empty() && capture.events.iter().all(|event| !event.is_unfinished));
    }
}

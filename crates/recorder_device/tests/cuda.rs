//! CUPTI's callbacks on many threads, with records of any bytes, while sessions come and go: to be run under valgrind
//! and AddressSanitizer, too. What the records say is tested in `tests/python/test_cupti.py`.
#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use stepscope_capture::device::{ActivityRecord, DeviceWork, WorkKind};
use stepscope_recorder as recorder;
use stepscope_recorder_device as device;
use stepscope_recorder_device::Library;

/// Kinds, and the lengths of their records in CUDA 13.0. The first is that of kernels.
const KINDS: [(u32, usize); 11] =
    [(10, 216), (1, 96), (22, 96), (2, 88), (51, 56), (4, 40), (5, 40), (17, 56), (38, 56), (36, 56), (12, 56)];
const THREADS: u64 = 3;
const SESSIONS: u64 = 4;
/// Kernels that are reported in each session, at least.
const KERNELS: u64 = 1500;

fn build(folder: &Path, source: &str, name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fake_cupti").join(source);
    let path = folder.join(name);
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-shared", "-fPIC"]).arg(format!("-Wl,-soname,{name}")).arg("-o").arg(&path);
    assert!(compiler.arg(source).args(["-lpthread", "-ldl"]).status().expect("a C compiler").success());
    path
}

/// A kernel that ran, told by its number.
fn kernel(number: u64) -> [u8; 216] {
    let mut record = [0; 216];
    record[0] = 10;
    record[16..24].copy_from_slice(&(1000 + number).to_ne_bytes());
    record[24..32].copy_from_slice(&(2000 + number).to_ne_bytes());
    record[144..152].copy_from_slice(&number.to_ne_bytes());
    record
}

/// A record of another kind and of any bytes, without a name where that is an address.
fn any(random: &mut u64) -> Vec<u8> {
    let mut next = || {
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        *random
    };
    let (kind, len) = KINDS[1 + next() as usize % (KINDS.len() - 1)];
    let mut record: Vec<u8> = std::iter::repeat_with(|| next() as u8).take(len).collect();
    record[..4].copy_from_slice(&kind.to_ne_bytes());
    if kind == 12 {
        record[40..48].fill(0);
    }
    record
}

/// Whatever happens, the threads are not left to run for ever.
struct EndsAll<'a>(&'a AtomicBool);

impl Drop for EndsAll<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn no_kernel_is_written_twice_and_no_bytes_do_harm() {
    let folder = tempfile::tempdir().unwrap();
    // Once it is loaded, it is found by its name.
    assert!(Library::load(&build(folder.path(), "cuda.c", "libcuda.so.1")).is_ok());
    let path = build(folder.path(), "cupti.c", "libcupti.so");
    let cupti = Library::load(&path).unwrap();
    // SAFETY: the types that the fake gives them.
    let (put, size, hold) = unsafe {
        let put: unsafe extern "C" fn(*const u8) -> i32 = cupti.function(c"fake_put").unwrap();
        let size: extern "C" fn(u32, usize) = cupti.function(c"fake_size").unwrap();
        let hold: extern "C" fn(i32) = cupti.function(c"fake_hold").unwrap();
        (put, size, hold)
    };
    KINDS.iter().for_each(|(kind, len)| size(*kind, *len));
    let run = folder.path().join("run");
    std::fs::create_dir(&run).unwrap();
    let capture = recorder::open(&run, &[]).unwrap().path;
    let wanted = device::Wanted {
        libraries: vec![path],
        buffer_limit_bytes: 16 << 20,
        flush_period: Duration::from_millis(1),
        has_ranges: true,
        ..device::Wanted::default()
    };
    let (is_over, reported) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let _ends = EndsAll(&is_over);
        for thread in 0..THREADS {
            let (is_over, reported) = (&is_over, &reported);
            scope.spawn(move || {
                let mut random = 88_172_645_463_325_252 + thread;
                let mut number = thread << 32;
                while !is_over.load(Ordering::Acquire) {
                    number += 1;
                    // The fake's lock is not fair: who never waits has it all the time.
                    if number % 50 == 0 {
                        std::thread::sleep(Duration::from_micros(200));
                    }
                    // SAFETY: records as long as their kinds, without addresses.
                    let is_reported = unsafe {
                        put(any(&mut random).as_ptr());
                        put(kernel(number).as_ptr()) == 1
                    };
                    reported.fetch_add(u64::from(is_reported), Ordering::AcqRel);
                }
            });
        }
        for session in 0..SESSIONS {
            let before = reported.load(Ordering::Acquire);
            assert_eq!(device::start("cuda", &wanted).unwrap().interface, "v1");
            while reported.load(Ordering::Acquire) < before + KERNELS {
                device::flush();
            }
            // What is held back at the end of a session comes in the next one, where nobody asks for it. Nothing would
            // ever come of what the last one held back.
            hold(i32::from(session == 1));
            device::stop();
            hold(0);
        }
    });
    recorder::close();
    let capture = stepscope_capture::read(&capture).unwrap();
    assert!(capture.damaged.is_empty(), "{:?}", capture.damaged);
    let (mut numbers, mut dropped) = (Vec::new(), 0);
    for activity in capture.device.iter() {
        match activity.record {
            ActivityRecord::Work(DeviceWork { kind: WorkKind::Kernel(_), graph_node, .. }) => numbers.push(graph_node),
            ActivityRecord::Dropped(of) => dropped += of.count,
            _ => {}
        }
    }
    let written = numbers.len();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), written, "a kernel was written twice");
    let reported = reported.into_inner();
    assert!((KERNELS..=reported).contains(&(written as u64)) && written as u64 + dropped >= reported);
}

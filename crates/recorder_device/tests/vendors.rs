//! Intel's and AMD's GPUs from the vendor's library to the capture, by libraries that make their records up.
#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use stepscope_capture::device::{
    ActivityRecord, Api, Call, DeviceWork, Direction, Kernel, Memcpy, MemoryKind, Memset, SynchronizationKind, WorkKind,
};
use stepscope_capture::{Capture, DeviceActivity};
use stepscope_recorder as recorder;
use stepscope_recorder_device as device;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests");

/// A library made of one of the sources, once.
fn library(source: &str, name: &str, flags: &[&str]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()));
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-shared", "-fPIC", "-o"]).arg(&path).arg(Path::new(SOURCES).join(source)).args(flags);
    assert!(compiler.status().expect("a C compiler").success());
    path
}

fn pti() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| library("fake_pti/fake_pti.c", "libpti_view.so", &[]))
}

fn roctracer() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    // Under its own name it is HIP, too.
    let name = "-Wl,-soname,libamdhip64.so.6";
    PATH.get_or_init(|| library("fake_roctracer/fake_roctracer.c", "libroctracer64.so", &[name]))
}

/// What a process leaves that records a scenario of [`scenarios`] with the variables set; and what it prints.
fn run(scenario: &str, variables: &[(&str, &str)]) -> (Capture, String) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("run.json"), "{}").unwrap();
    let mut process = Command::new(std::env::current_exe().unwrap());
    process.args(["--exact", "scenarios", "--nocapture", "--test-threads=1"]);
    process.env("STEPSCOPE_TEST_SCENARIO", scenario).env("STEPSCOPE_TEST_RUN", folder.path());
    process.env("STEPSCOPE_PTI", pti()).env("STEPSCOPE_ROCTRACER", roctracer()).envs(variables.iter().copied());
    let output = process.output().unwrap();
    let summary = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{summary}{}", String::from_utf8_lossy(&output.stderr));
    let file = std::fs::read_dir(folder.path().join("raw")).unwrap().next().unwrap().unwrap().path();
    (stepscope_capture::read(&file).unwrap(), summary)
}

/// A function of the library that the variable names.
fn function<F: Copy>(variable: &str, name: &CStr) -> F {
    let library = device::Library::load(Path::new(&std::env::var(variable).unwrap())).unwrap();
    // SAFETY: callers know the fake's functions.
    unsafe { library.function(name) }.unwrap()
}

type PtiKernel = extern "C" fn(*const c_char, u32, u32, u64);
type PtiCopy = extern "C" fn(u32, u32, u64, u32, u32, u64);
type RocmKernel = extern "C" fn(*const c_char, i32, u64, u64);
type RocmCopy = extern "C" fn(u32, u64, i32, u64, u64);

/// Kernels that each thread launches.
const KERNELS: u64 = 20_000;
const THREADS: u64 = 3;

fn xpu_work() {
    let kernel: PtiKernel = function("STEPSCOPE_PTI", c"fake_pti_kernel");
    let copy: PtiCopy = function("STEPSCOPE_PTI", c"fake_pti_copy");
    let others: extern "C" fn(u32) = function("STEPSCOPE_PTI", c"fake_pti_others");
    let broken: extern "C" fn() = function("STEPSCOPE_PTI", c"fake_pti_broken");
    let thread = |number: u64| {
        move || {
            recorder::name_thread(&format!("thread {number}"));
            recorder::end_label(recorder::begin_label("label"), "label");
            for at in 0..KERNELS {
                kernel(c"_Z6vecAddPKfS0_Pfi".as_ptr(), (at % 2) as u32, number as u32, 1000 + at);
            }
        }
    };
    let threads: Vec<_> = (0..THREADS).map(|number| std::thread::spawn(thread(number))).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    copy(0, 2, 1 << 20, 0, 0, 5000);
    copy(2, 1, 1 << 10, 1, 1, 500);
    others(1);
    broken();
}

#[test]
fn scenarios() {
    let Ok(scenario) = std::env::var("STEPSCOPE_TEST_SCENARIO") else { return };
    recorder::open(Path::new(&std::env::var_os("STEPSCOPE_TEST_RUN").unwrap()), &[]).expect("the capture opens");
    // PyTorch has loaded it.
    device::Library::load(Path::new("libstdc++.so.6")).unwrap();
    let (kind, what) = scenario.split_once(' ').unwrap();
    let wanted = device::Wanted { buffer_limit_bytes: 256 << 20, ..device::Wanted::default() };
    if what == "find" {
        println!("\n{:?}\n{:?}", device::find(kind, &[], false), device::find(kind, &[], true));
    } else {
        match device::start(kind, &wanted) {
            Ok(found) => println!("{found:?}"),
            Err(refusal) => println!("refused: {refusal}"),
        }
        match (what, kind) {
            ("work", "xpu") => xpu_work(),
            ("work", "rocm") => rocm_work(),
            ("twice", "xpu") => {
                for _ in 0..2 {
                    device::stop();
                    xpu_one();
                    device::start(kind, &wanted).unwrap();
                    xpu_one();
                }
            }
            _ => {}
        }
        device::stop();
    }
    recorder::close();
}

fn xpu_one() {
    let kernel: PtiKernel = function("STEPSCOPE_PTI", c"fake_pti_kernel");
    kernel(c"once".as_ptr(), 0, 0, 1000);
}

fn rocm_work() {
    let kernel: RocmKernel = function("STEPSCOPE_ROCTRACER", c"fake_roctracer_kernel");
    let copy: RocmCopy = function("STEPSCOPE_ROCTRACER", c"fake_roctracer_copy");
    let others: extern "C" fn() = function("STEPSCOPE_ROCTRACER", c"fake_roctracer_others");
    let thread = |number: u64| {
        move || {
            recorder::name_thread(&format!("thread {number}"));
            recorder::end_label(recorder::begin_label("label"), "label");
            for at in 0..KERNELS {
                kernel(c"_Z6vecAddPKfS0_Pfi".as_ptr(), 0, number, 1000 + at);
            }
        }
    };
    let threads: Vec<_> = (0..THREADS).map(|number| std::thread::spawn(thread(number))).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    copy(1, 1 << 20, 0, 0, 5000);
    copy(2, 1 << 10, 0, 1, 500);
    copy(4, 77, 0, 1, 50);
    others();
    device::flush();
    others();
}

fn works(capture: &Capture) -> Vec<DeviceWork> {
    let work = |activity: DeviceActivity| match activity.record {
        ActivityRecord::Work(work) => Some(work),
        _ => None,
    };
    capture.device.iter().filter_map(work).collect()
}

fn calls(capture: &Capture) -> Vec<Call> {
    let call = |activity: DeviceActivity| match activity.record {
        ActivityRecord::Call(call) => Some(call),
        _ => None,
    };
    capture.device.iter().filter_map(call).collect()
}

fn dropped(capture: &Capture) -> u64 {
    capture
        .device
        .iter()
        .map(|activity| if let ActivityRecord::Dropped(dropped) = activity.record { dropped.count } else { 0 })
        .sum()
}

fn name(capture: &Capture, id: Option<u32>) -> &str {
    id.map_or("", |id| &capture.names[id as usize])
}

/// As [`run`], of a scenario whose kernels are launched by `launch` and of which `broken` records have no times: a run
/// that lost no others. Threads that do nothing but launch are faster than a busy machine writes; what is lost is
/// counted.
fn run_without_loss(scenario: &str, variables: &[(&str, &str)], launch: &str, broken: u64) -> (Capture, String) {
    for _ in 0..20 {
        let (capture, summary) = run(scenario, variables);
        let is_kernel = |work: &DeviceWork| matches!(work.kind, WorkKind::Kernel(_));
        let kernels = works(&capture).into_iter().filter(is_kernel).count() as u64;
        let launches = calls(&capture).into_iter().filter(|call| name(&capture, call.name) == launch).count() as u64;
        let dropped = dropped(&capture);
        let expected = 2 * KERNELS * THREADS + broken;
        assert!(
            kernels + launches + dropped >= expected,
            "{kernels} + {launches} + {dropped}: not all that is missing is counted"
        );
        if dropped == broken {
            return (capture, summary);
        }
    }
    panic!("every run lost something");
}

/// Every kernel lies on the stream of the thread whose call has its number, begins when that call ends, and is as long
/// as it was told to be.
fn check_kernels(capture: &Capture, launch: &str, devices: usize) {
    let launches: BTreeMap<u32, Call> = calls(capture)
        .into_iter()
        .filter(|call| name(capture, call.name) == launch)
        .map(|call| (call.correlation, call))
        .collect();
    let mut durations = vec![Vec::new(); THREADS as usize];
    let mut works_of_devices = vec![0; devices];
    for work in works(capture) {
        let WorkKind::Kernel(kernel) = work.kind else { continue };
        assert_eq!(name(capture, kernel.name), "vecAdd(float const*, float const*, float*, int)");
        assert_eq!(kernel, Kernel { name: kernel.name, ..Kernel::default() }, "nothing else is reported");
        let call = launches[&work.correlation];
        assert!((work.start_ns - call.end_ns).abs() <= 2, "one clock: {} {}", work.start_ns, call.end_ns);
        works_of_devices[work.device as usize] += 1;
        let thread = &capture.threads[call.thread as usize];
        let number: usize = thread.name.strip_prefix("thread ").unwrap().parse().unwrap();
        durations[number].push((work.stream, work.end_ns - work.start_ns));
    }
    assert_eq!(works_of_devices, vec![(KERNELS * THREADS) as usize / devices; devices]);
    let streams: Vec<_> = durations.iter().map(|all| all[0].0).collect();
    for (all, stream) in durations.iter_mut().zip(&streams) {
        assert!(all.iter().all(|(of, _)| of == stream));
        all.sort_unstable();
        // Times are as exact as the clock's points: a nanosecond either way.
        let expected = (0..KERNELS as i64).map(|at| 1000 + at);
        assert_eq!(all.len(), KERNELS as usize);
        assert!(all.iter().zip(expected).all(|((_, ns), expected)| (ns - expected).abs() <= 1));
    }
    let mut distinct = streams.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), THREADS as usize, "{streams:?}");
}

fn metadata_value<'a>(capture: &'a Capture, key: &str) -> &'a str {
    capture.metadata.iter().find(|(known, _)| known == key).map_or("", |(_, value)| value)
}

#[test]
fn kernels_of_xpu_come_back_exact_from_each_release() {
    for (variables, version) in [(&[][..], "0.12.3"), (&[("FAKE_PTI_LONG", "1")][..], "1.2.0")] {
        let (capture, summary) = run_without_loss("xpu work", variables, "urEnqueueKernelLaunch", 1);
        assert!(summary.contains(version) && summary.contains("not verified on hardware"), "{summary}");
        check_kernels(&capture, "urEnqueueKernelLaunch", 2);
        assert!(capture.device.iter().all(|activity| activity.device_type == 12));
        // Each launch is a call of SYCL and one of the driver in it; copies are one of SYCL.
        let of = |api: Api| calls(&capture).iter().filter(|call| call.api == api).count() as u64;
        assert_eq!((of(Api::Runtime), of(Api::Driver)), (KERNELS * THREADS + 2, KERNELS * THREADS));
        assert_eq!(dropped(&capture), 1, "the one without times");
        assert_eq!(capture.dropped, 0);
        let metadata = metadata_value(&capture, "devices");
        assert!(
            metadata.contains(r#"{"type":"xpu","index":0,"name":"Intel(R) Data Center GPU Max 1550","#),
            "{metadata}"
        );
        assert!(
            metadata.contains(r#""driver_version":"1.6.33578","memory_bytes":68719476736,"sm_count":128}"#),
            "{metadata}"
        );
        assert!(metadata.contains(r#""index":1"#) && !metadata.contains("a processor"), "{metadata}");
    }
}

#[test]
fn copies_fills_and_waits_of_xpu_are_what_they_were() {
    let (capture, _) = run_without_loss("xpu work", &[], "urEnqueueKernelLaunch", 1);
    let others: Vec<_> = works(&capture).into_iter().filter(|work| !matches!(work.kind, WorkKind::Kernel(_))).collect();
    let copy = |bytes, direction, source, destination, devices| {
        WorkKind::Memcpy(Memcpy { bytes: Some(bytes), direction, source, destination, devices })
    };
    let expected = [
        copy(1 << 20, Direction::HostToDevice, MemoryKind::Pageable, MemoryKind::Device, None),
        copy(1 << 10, Direction::DeviceToHost, MemoryKind::Device, MemoryKind::Pinned, None),
        copy(4096, Direction::PeerToPeer, MemoryKind::Device, MemoryKind::Device, Some((0, 1))),
        WorkKind::Memset(Memset { bytes: Some(512), memory: MemoryKind::Device }),
    ];
    let mut kinds: Vec<_> = others.iter().map(|work| work.kind).collect();
    kinds.sort_by_key(|kind| expected.iter().position(|known| known == kind));
    assert_eq!(kinds, expected);
    let [between, fill] = [2, 3].map(|at| others.iter().find(|work| work.kind == expected[at]).unwrap());
    // Without a number of SYCL's, the queue is identified by the driver's handle.
    assert_eq!(between.stream, fill.stream);
    let waits: Vec<_> = capture
        .device
        .iter()
        .filter_map(|activity| match activity.record {
            ActivityRecord::Synchronization(wait) => Some(wait),
            _ => None,
        })
        .collect();
    let [wait] = &waits[..] else { panic!("{waits:?}") };
    assert_eq!((wait.kind, wait.stream), (SynchronizationKind::Stream, fill.stream));
    assert!((wait.end_ns - wait.start_ns - 3000).abs() <= 1);
    let overheads: Vec<_> = capture
        .device
        .iter()
        .filter_map(|activity| match activity.record {
            ActivityRecord::Overhead(overhead) => Some(name(&capture, overhead.name)),
            _ => None,
        })
        .collect();
    assert_eq!(overheads, ["BUFFER_FLUSH"]);
}

#[test]
fn what_a_release_does_not_have_is_said_and_the_rest_is_recorded() {
    let (capture, summary) = run("xpu work", &[("FAKE_PTI_WITHOUT", "3,5,6,11")]);
    for what in ["calls of SYCL", "calls of Level Zero", "waits", "overhead"] {
        assert!(
            summary.contains(&format!("{what} of Intel GPUs are not recorded: PTI_ERROR_NOT_IMPLEMENTED")),
            "{summary}"
        );
    }
    assert_eq!((works(&capture).len() as u64, calls(&capture).len()), (KERNELS * THREADS + 4, 0));

    let (capture, summary) = run("xpu work", &[("FAKE_PTI_WITHOUT", "1")]);
    assert!(
        summary.contains("refused: Intel's PTI 0.12.3 does not record kernels: PTI_ERROR_NOT_IMPLEMENTED"),
        "{summary}"
    );
    assert!(capture.device.is_empty());

    let (_, summary) = run("xpu work", &[("FAKE_PTI_ODD", "1")]);
    assert!(
        summary.contains("refused: Intel's PTI 0.12.3 lays kernels out in a way that is not known (176 bytes)"),
        "{summary}"
    );
}

#[test]
fn calls_of_old_releases_have_their_names_in_them() {
    let old = library("fake_pti/fake_pti.c", "libpti_view_old.so", &["-DFAKE_PTI_HAS_NO_IDS"]);
    let variables = [("STEPSCOPE_PTI", old.to_str().unwrap()), ("FAKE_PTI_OLD", "1")];
    let (capture, summary) = run_without_loss("xpu work", &variables, "piEnqueueKernelLaunch", 1);
    assert!(summary.contains("waits of Intel GPUs are not recorded: this release has none"), "{summary}");
    check_kernels(&capture, "piEnqueueKernelLaunch", 2);
}

#[test]
fn pti_is_not_touched_where_the_driver_does_not_start() {
    let (capture, summary) = run("xpu work", &[("FAKE_PTI_NO_DRIVER", "1")]);
    assert!(summary.contains("refused: the driver of Intel GPUs does not start (zeInit gave 0x78000001)"), "{summary}");
    assert!(capture.device.is_empty());
    let (_, summary) = run("xpu find", &[("FAKE_PTI_NO_DRIVER", "1")]);
    let [passive, active] =
        summary.lines().filter(|line| line.starts_with("Ok") || line.starts_with("Err")).collect::<Vec<_>>()[..]
    else {
        panic!("{summary}")
    };
    assert!(passive.starts_with("Ok") && passive.contains("devices: []"), "{passive}");
    assert!(active.starts_with("Err") && active.contains("does not start"), "{active}");
}

#[test]
fn nothing_is_recorded_between_two_recordings() {
    let (capture, _) = run("xpu twice", &[]);
    assert_eq!((works(&capture).len(), dropped(&capture)), (2, 0));
}

#[test]
fn kernels_of_rocm_come_back_exact() {
    let (capture, summary) = run_without_loss("rocm work", &[], "hipLaunchKernel", 2);
    assert!(summary.contains("not verified on hardware"), "{summary}");
    check_kernels(&capture, "hipLaunchKernel", 1);
    // PyTorch calls these devices CUDA.
    assert!(capture.device.iter().all(|activity| activity.device_type == 1));
    let mut kinds: Vec<_> = works(&capture).into_iter().map(|work| work.kind).collect();
    kinds.retain(|kind| !matches!(kind, WorkKind::Kernel(_)));
    let copy = |bytes, direction, source, destination| {
        WorkKind::Memcpy(Memcpy { bytes: Some(bytes), direction, source, destination, devices: None })
    };
    assert_eq!(
        kinds,
        [
            copy(1 << 20, Direction::HostToDevice, MemoryKind::Unknown, MemoryKind::Device),
            copy(1 << 10, Direction::DeviceToHost, MemoryKind::Device, MemoryKind::Unknown),
            WorkKind::Memset(Memset { bytes: Some(77), memory: MemoryKind::Device }),
        ]
    );
    let mut named: BTreeMap<&str, u64> = BTreeMap::new();
    calls(&capture).iter().for_each(|call| *named.entry(name(&capture, call.name)).or_default() += 1);
    // `hipGetDevice`, before each launch and when the device is asked for its properties, is left out.
    let expected = [("hipLaunchKernel", KERNELS * THREADS), ("hipMemcpyAsync", 3), ("hipStreamSynchronize", 2)];
    assert_eq!(named.into_iter().collect::<Vec<_>>(), expected);
    assert_eq!((dropped(&capture), capture.dropped), (2, 0), "those without times");
    let metadata = metadata_value(&capture, "devices");
    assert!(
        metadata.starts_with(r#"[{"type":"hip","index":0,"name":"AMD Instinct MI250X","driver_version":"6.2.41133","#),
        "{metadata}"
    );
    assert!(metadata.contains(r#""sm_count":110,"compute_capability_major":9,"compute_capability_minor":0,"max_threads_per_sm":2048,"warp_size":64"#), "{metadata}");
}

#[test]
fn rocm_says_what_it_cannot_do() {
    let (_, summary) = run("rocm find", &[("FAKE_ROCTRACER_MAJOR", "5")]);
    assert!(summary.contains("roctracer 5.1 is not known, only 4"), "{summary}");
    let (_, summary) = run("rocm work", &[("FAKE_ROCTRACER_WITHOUT", "2")]);
    assert!(summary.contains("refused: roctracer does not record AMD GPUs: it was told to"), "{summary}");
    let (capture, summary) = run("rocm work", &[("FAKE_ROCTRACER_WITHOUT", "3")]);
    assert!(summary.contains("calls of HIP are not recorded: it was told to"), "{summary}");
    assert_eq!((works(&capture).len() as u64, calls(&capture).len()), (KERNELS * THREADS + 3, 0));
    let (_, summary) = run("rocm find", &[]);
    let [passive, active] = summary.lines().filter(|line| line.starts_with("Ok")).collect::<Vec<_>>()[..] else {
        panic!("{summary}")
    };
    assert!(passive.contains("devices: []") && active.contains("MI250X"), "{summary}");
}

#[test]
fn a_machine_without_such_a_gpu_loads_nothing() {
    // Where there is one, it is found.
    for (kind, why) in [("xpu", "no Intel GPU"), ("rocm", "no AMD GPU"), ("npu", "not a kind of device")] {
        let (_, summary) = run(&format!("{kind} none"), &[("STEPSCOPE_PTI", ""), ("STEPSCOPE_ROCTRACER", "")]);
        assert!(summary.contains(why) || summary.contains("Found") || summary.contains("HIP"), "{summary}");
    }
}

use super::*;
use crate::{DeviceProperties, Write};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

/// Hangs as it starts, until it is let go.
struct Hangs(Mutex<Receiver<()>>);

impl DeviceProfiler for Hangs {
    fn device_type(&self) -> u8 {
        1
    }

    fn find(&mut self, _: &[PathBuf], _: bool) -> Result<Found, Refusal> {
        Ok(Found::default())
    }

    fn start(&mut self, _: &Wanted) -> Result<Found, Refusal> {
        let _ = self.0.lock().unwrap().recv();
        let devices = vec![DeviceProperties { kind: "cuda", ..DeviceProperties::default() }];
        Ok(Found { devices, ..Found::default() })
    }

    fn flush(&mut self) {}

    fn write(&mut self, _: Write<'_>) {}

    fn take_dropped(&mut self) -> u64 {
        0
    }

    fn clock_ns(&self) -> Option<i64> {
        Some(1)
    }

    fn devices(&self) -> Vec<DeviceProperties> {
        Vec::new()
    }

    fn stop(&mut self) {}
}

#[test]
fn a_library_that_hangs_as_it_starts_is_waited_for_once_and_writes_nothing_later() {
    let run = tempfile::tempdir().unwrap();
    let capture = stepscope_recorder::open(run.path(), &[]).unwrap().path;
    let (go, go_on) = channel();
    let wanted = Wanted { sample_period: None, ..Wanted::default() };
    let began = Instant::now();
    let refusal = start_within(Duration::from_millis(1500), Box::new(Hangs(Mutex::new(go_on))), &wanted).unwrap_err();
    assert_eq!(refusal.to_string(), "the devices' profiler did not start within 1.5 s");
    assert!(began.elapsed() < TIMEOUT, "its end was waited for, too");
    let worker = CURRENT.lock().clone().unwrap();
    let again = start_with(Box::new(Hangs(Mutex::new(channel().1))), &wanted).unwrap_err();
    assert_eq!(again.to_string(), "the devices' profiler hangs");
    go.send(()).unwrap();
    assert!(worker.request(Request::Stop, TIMEOUT));
    stepscope_recorder::close();
    let capture = stepscope_capture::read(&capture).unwrap();
    assert!(capture.metadata.iter().all(|(key, _)| key != "devices"), "{:?}", capture.metadata);
}

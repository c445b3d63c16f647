use super::*;
use crate::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

/// What a profiler was asked for.
type Recorded = Arc<Mutex<Vec<&'static str>>>;

/// Says what it is asked for, and hangs where it is told to until it is let go.
struct Watched {
    recorded: Recorded,
    hangs_in: &'static str,
    go_on: Mutex<Receiver<()>>,
}

impl Watched {
    fn say(&self, what: &'static str) {
        self.recorded.lock().unwrap().push(what);
        if self.hangs_in == what {
            let _ = self.go_on.lock().unwrap().recv();
        }
    }
}

impl DeviceProfiler for Watched {
    fn device_type(&self) -> u8 {
        1
    }

    fn find(&mut self, _: &[PathBuf], _: bool) -> Result<Found, Refusal> {
        Ok(Found::default())
    }

    fn start(&mut self, _: &Wanted) -> Result<Found, Refusal> {
        self.say("start");
        if self.hangs_in == "refuses" { Err(Refusal("no".into())) } else { Ok(Found::default()) }
    }

    fn flush(&mut self) {
        self.say("flush");
    }

    fn write(&mut self, _: Write<'_>) {}

    fn take_dropped(&mut self) -> u64 {
        0
    }

    fn clock_ns(&self) -> Option<i64> {
        None
    }

    fn devices(&self) -> Vec<DeviceProperties> {
        Vec::new()
    }

    fn stop(&mut self) {
        self.say("stop");
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.recorded.lock().unwrap().push("dropped");
    }
}

/// The thread with a profiler that hangs in a call, what that says, and what lets it go.
fn started(hangs_in: &'static str) -> (Arc<Worker>, Recorded, Sender<()>) {
    let (go, go_on) = channel();
    let recorded = Arc::new(Mutex::new(Vec::new()));
    let watched = Watched { recorded: Arc::clone(&recorded), hangs_in, go_on: Mutex::new(go_on) };
    let wanted = Wanted { flush_period: Duration::from_secs(3600), sample_period: None, ..Wanted::default() };
    (Worker::start(Box::new(watched), wanted).unwrap(), recorded, go)
}

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(20);

#[test]
fn it_flushes_when_asked_and_ends_when_told() {
    let (worker, recorded, _go) = started("");
    assert_eq!(worker.started(LONG), Some(Ok(Found::default())));
    assert!(worker.request(Request::Flush, LONG));
    assert!(worker.request(Request::Flush, LONG));
    assert!(worker.request(Request::Stop, LONG));
    assert_eq!(*recorded.lock().unwrap(), ["start", "flush", "flush", "stop", "dropped"]);
    assert!(
        worker.request(Request::Flush, LONG) && worker.request(Request::Stop, LONG),
        "nobody waits for what has ended"
    );
}

#[test]
fn a_refusal_ends_it_without_a_stop() {
    let (worker, recorded, _go) = started("refuses");
    assert_eq!(worker.started(LONG), Some(Err(Refusal("no".into()))));
    assert!(worker.request(Request::Stop, LONG));
    assert_eq!(*recorded.lock().unwrap(), ["start", "dropped"]);
}

#[test]
fn a_library_that_hangs_is_not_waited_for_and_ended_when_it_comes_back() {
    for hangs_in in ["start", "flush", "stop"] {
        let (worker, recorded, go) = started(hangs_in);
        if hangs_in == "start" {
            assert_eq!(worker.started(SHORT), None);
        } else {
            let request = if hangs_in == "flush" { Request::Flush } else { Request::Stop };
            assert_eq!(worker.started(LONG), Some(Ok(Found::default())));
            assert!(!worker.request(request, SHORT), "{hangs_in}");
        }
        worker.abandon();
        assert!(!worker.is_over() && worker.is_abandoned());
        go.send(()).unwrap();
        assert!(worker.request(Request::Stop, LONG));
        assert_eq!(recorded.lock().unwrap().last(), Some(&"dropped"), "{hangs_in}");
    }
}

//! Calls on files as a recorded process writes them, and as they are in process files.

use crate::made_capture::MadeCapture;
use stepscope_capture::io::{IoFunction, IoRecord};
use stepscope_import::open;
use stepscope_trace::{IoEvent, Trace};

/// Calls as `function layer action bytes of asked@offset file errno start+duration`.
fn calls(trace: &Trace) -> Vec<String> {
    let shown = |number: Option<i64>| number.map_or("-".into(), |number| number.to_string());
    let call = |event: &IoEvent| {
        let (name, span) = (trace.slice_name(event.slice), trace.slices.span(event.slice));
        let (layer, action, file) = (event.layer.as_str(), event.action.as_str(), trace.strings.get(event.file));
        let bytes = format!("{} of {}@{}", shown(event.bytes), shown(event.asked_bytes), shown(event.offset));
        let errno = event.errno.map_or("-".into(), |errno| errno.to_string());
        format!("{name} {layer} {action} {bytes} {file} {errno} {}", span.duration_ns())
    };
    trace.io.iter().map(call).collect()
}

#[test]
fn calls_have_their_error_and_what_they_asked_for_also_in_process_files() {
    let run = tempfile::tempdir().unwrap();
    std::fs::write(run.path().join("run.json"), r#"{"format":"stepscope-run","version":1,"created_unix_ns":1}"#)
        .unwrap();
    let mut made = MadeCapture::new(10);
    made.thread(10, 0, "main");
    made.file(1, "/data/a");
    let open_call = IoRecord {
        function: IoFunction::Open,
        errno: 0,
        duration_ticks: 5,
        file: 1,
        other_file: 0,
        bytes: 0,
        asked: None,
        offset: None,
        thread: 0,
    };
    let read = IoRecord { function: IoFunction::Read, bytes: 70, offset: Some(40), ..open_call };
    let short = IoRecord { asked: Some(4_096), ..read };
    let failed = IoRecord { bytes: 0, asked: Some(9), errno: 28, function: IoFunction::Fwrite, offset: None, ..read };
    for (at, record) in [open_call, read, short, failed].iter().enumerate() {
        made.io(10 * at as i64, record);
    }
    made.write(run.path());
    let expected = [
        "open posix open - of -@- /data/a - 5",
        "read posix read 70 of 70@40 /data/a - 5",
        "read posix read 70 of 4096@40 /data/a - 5",
        "fwrite stdio write 0 of 9@- /data/a 28 5",
    ];
    assert_eq!(calls(&open(run.path()).unwrap()), expected);
    stepscope_run::recover(run.path()).unwrap();
    assert!(!run.path().join("raw").exists(), "all of it is in process files");
    assert_eq!(calls(&open(run.path()).unwrap()), expected);
}

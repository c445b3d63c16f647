//! Traces of steps.

/// A trace of steps that take `steps` microseconds, each with an operator that takes half of its step.
pub(crate) fn steps_of(folder: &tempfile::TempDir, name: &str, steps: &[u32]) -> String {
    let mut at = 1_000;
    let mut events = Vec::new();
    for (number, us) in steps.iter().enumerate() {
        let event = |cat: &str, name: &str, dur: u32| {
            format!(r#"{{"ph":"X","cat":"{cat}","name":"{name}","pid":1,"tid":1,"ts":{at},"dur":{dur}}}"#)
        };
        events.push(event("user_annotation", &format!("ProfilerStep#{number}"), *us));
        events.push(event("cpu_op", "aten::mm", us / 2));
        at += us;
    }
    let path = folder.path().join(name);
    std::fs::write(&path, format!(r#"{{"schemaVersion":1,"traceEvents":[{}]}}"#, events.join(","))).unwrap();
    path.to_str().unwrap().to_string()
}

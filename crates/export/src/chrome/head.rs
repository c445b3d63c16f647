//! What stands before the events: devices, the rank, metadata about the environment.

use super::Document;
use serde::de::IgnoredAny;
use stepscope_trace::{Device, ProcessGroup, Trace};

/// Members that are written from elsewhere, and never as metadata.
const RESERVED: [&str; 8] = [
    "schemaVersion",
    "traceEvents",
    "stackFrames",
    "deviceProperties",
    "distributedInfo",
    "baseTimeNanoseconds",
    "traceName",
    "displayTimeUnit",
];
/// Metadata of this group are members of an object.
const DISTRIBUTED: &str = "distributedInfo.";
/// What the program added itself, as JSON.
const METADATA: &str = "metadata.";

/// Writes everything up to and with the first event, which the others follow with a comma before each.
pub(super) fn write(document: &mut Document<'_>) {
    let trace = document.trace;
    let json = &mut document.json;
    json.open(None);
    json.int("schemaVersion", 1);
    write_devices(document);
    write_distributed(document);
    let json = &mut document.json;
    // Beyond this range no reader takes it; times then count from an arbitrary moment.
    if let Some(start_ns) = trace.start_unix_ns.filter(|ns| (0..1 << 62).contains(ns)) {
        // No time lies before it.
        let first_ns = document.window.map_or(0, |window| window.start_ns.min(0)).saturating_add(start_ns).max(0);
        // In whole microseconds, so that times have the fractions that the source's had: some readers drop them.
        let base_ns = first_ns - first_ns % 1_000;
        json.zero_ns = start_ns - base_ns;
        json.int("baseTimeNanoseconds", base_ns);
    }
    let mut written: Vec<&str> = RESERVED.to_vec();
    if document.profile.is_some()
        && let Some(host) = trace.processes.iter().find_map(|process| process.host.as_deref())
    {
        json.text("host_name", host);
        written.push("host_name");
    }
    for (key, value) in trace.facts.iter().filter(|(key, _)| !key.starts_with(DISTRIBUTED)) {
        let name = key.strip_prefix(METADATA).unwrap_or(key);
        if written.contains(&name) {
            continue;
        }
        written.push(name);
        match name == key.as_str() || !is_json(value) {
            true => write_fact(json, name, value),
            false => {
                json.any_key(name);
                json.verbatim_value(value);
            }
        }
    }
    json.text("traceName", &trace.name);
    json.text("displayTimeUnit", "ms");
    json.verbatim("traceEvents", "[\n");
    // An event for the others to follow: which program wrote this.
    json.open(None);
    json.text("ph", "M");
    json.text("name", "stepscope_version");
    json.int("pid", 0);
    json.int("tid", 0);
    json.time(0);
    json.open(Some("args"));
    json.text("version", env!("CARGO_PKG_VERSION"));
    json.close();
    json.close();
}

fn write_devices(document: &mut Document<'_>) {
    let devices = document.trace.devices.iter().zip(&document.numbers.device);
    let asked: Vec<_> = devices.filter(|(device, _)| document.has_rank(device.rank)).collect();
    let json = &mut document.json;
    json.verbatim("deviceProperties", "[");
    for (at, (device, number)) in asked.into_iter().enumerate() {
        json.raw(if at > 0 { ",\n" } else { "\n" });
        json.open(None);
        json.int("id", *number);
        write_device(json, device);
        json.close();
    }
    json.raw("]");
    json.raw(",\n");
}

fn write_device(json: &mut super::Json, device: &Device) {
    if let Some(name) = &device.name {
        json.text("name", name);
    }
    let (major, minor) = device.compute_capability.unzip();
    let facts = [
        ("totalGlobalMem", device.memory_bytes),
        ("computeMajor", major.map(i64::from)),
        ("computeMinor", minor.map(i64::from)),
        ("maxThreadsPerMultiprocessor", device.max_threads_per_sm.map(i64::from)),
        ("warpSize", device.warp_size.map(i64::from)),
        ("regsPerMultiprocessor", device.registers_per_sm.map(i64::from)),
        ("sharedMemPerMultiprocessor", device.shared_bytes_per_sm),
        ("numSms", device.sm_count.map(i64::from)),
    ];
    facts.into_iter().filter_map(|(key, value)| Some((key, value?))).for_each(|(key, value)| json.int(key, value));
}

/// The rank, when the file is of one rank of several.
fn write_distributed(document: &mut Document<'_>) {
    let trace = document.trace;
    let ranks: Vec<u32> = trace.ranks().into_iter().filter(|rank| document.has_rank(*rank)).collect();
    let is_one_of_several = trace.ranks().len() > ranks.len();
    let json = &mut document.json;
    let world_size = trace.processes.iter().find_map(|process| process.world_size);
    let facts = trace.facts.iter().filter_map(|(key, value)| Some((key.strip_prefix(DISTRIBUTED)?, value)));
    let mut facts: Vec<_> = facts.filter(|(key, _)| !matches!(*key, "rank" | "world_size")).collect();
    let [rank] = ranks[..] else { return };
    // What this rank says of its groups comes before what the run's main process says of its own.
    let groups = groups_of(trace, rank);
    if !groups.is_empty() {
        facts.retain(|(key, _)| *key != "pg_config");
    }
    if world_size.is_none() && rank == 0 && facts.is_empty() && groups.is_empty() && !is_one_of_several {
        return;
    }
    json.open(Some("distributedInfo"));
    for (key, value) in facts {
        write_fact(json, key, value);
    }
    json.int("rank", rank.into());
    world_size.into_iter().for_each(|size| json.int("world_size", size.into()));
    if !groups.is_empty() {
        json.verbatim("pg_config", "[");
        for (at, group) in groups.iter().enumerate() {
            json.raw(if at > 0 { ", " } else { "" });
            write_group(json, group);
        }
        json.raw("]");
    }
    json.close();
}

/// The groups that a rank is in.
fn groups_of(trace: &Trace, rank: u32) -> &[ProcessGroup] {
    let processes = trace.processes.iter().filter(|process| process.rank == rank);
    processes.map(|process| &process.process_groups[..]).find(|groups| !groups.is_empty()).unwrap_or_default()
}

/// As `torch.distributed` describes a group.
fn write_group(json: &mut super::Json, group: &ProcessGroup) {
    json.open(None);
    json.text("pg_name", &group.name);
    json.text("pg_desc", &group.description);
    json.text("backend_config", &group.backend);
    group.size.into_iter().for_each(|size| json.int("pg_size", size.into()));
    if !group.ranks.is_empty() {
        json.verbatim("ranks", &format!("{:?}", group.ranks));
    }
    json.close();
}

/// Whole numbers stay numbers, lists and objects what they are.
fn write_fact(json: &mut super::Json, key: &str, value: &str) {
    json.any_key(key);
    match value.parse::<i64>() {
        Ok(number) if number.to_string() == value => json.integer(number),
        _ if value.starts_with(['[', '{']) && is_json(value) => json.verbatim_value(value),
        _ => json.string(value),
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

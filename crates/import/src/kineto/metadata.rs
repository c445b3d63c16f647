//! What stands beside the events: devices, the rank, and facts about the environment.

use super::event::written;
use crate::json::numbers;
use crate::json::scanner::{Scanner, Stop, Value};
use crate::json::text;
use crate::process_groups::{self, comm_backend};
use rustc_hash::FxHashMap;
use stepscope_trace::{CommBackend, Device, ProcessGroup};

/// More facts than this, or longer ones, are somebody's data, not facts.
const MAX_ENTRIES: usize = 500;
const MAX_ENTRY_BYTES: usize = 2_000;

/// Everything but the events.
#[derive(Debug, Default)]
pub(super) struct Metadata {
    /// The devices of `deviceProperties`; their ranks are filled in later.
    pub(super) devices: Vec<Device>,
    pub(super) rank: Option<u32>,
    pub(super) world_size: Option<u32>,
    /// What carries collectives.
    pub(super) comm_backend: Option<CommBackend>,
    pub(super) process_groups: Vec<ProcessGroup>,
    /// Unix time of the events' time 0, in ns.
    pub(super) clock_zero_unix_ns: Option<i64>,
    pub(super) host: Option<String>,
    /// The frames of `stackFrames` by their number: the name, and the frame that called it.
    pub(super) stack_frames: FxHashMap<i64, (String, Option<i64>)>,
    /// Other scalars: `("cuda_runtime_version", "12040")`; those one level down are named `distributedInfo.backend`.
    pub(super) entries: Vec<(String, String)>,
}

impl Metadata {
    /// Reads the value of the top-level member `key`.
    pub(super) fn read_member(&mut self, scanner: &mut Scanner<'_>, key: &[u8]) -> Result<(), Stop> {
        let value = scanner.value()?;
        let is_object = value == Value::Container && scanner.peek()? == b'{';
        match key {
            b"deviceProperties" if value == Value::Container && !is_object => {
                scanner.list(|scanner| self.read_device(scanner))
            }
            b"baseTimeNanoseconds" => {
                // Kept within 64 bits when event times are added: years 1970 to 2116.
                let in_range = |ns: &i64| (0..1 << 62).contains(ns);
                self.clock_zero_unix_ns = written(value).and_then(numbers::integer).filter(in_range);
                self.finish_value(scanner, value)
            }
            b"stackFrames" if is_object => scanner.object(|scanner, number| self.read_stack_frame(scanner, number)),
            _ if is_object => scanner.object(|scanner, inner| {
                let start = scanner.at();
                let value = scanner.skip_value()?;
                if key == b"distributedInfo" {
                    let json = || &scanner.bytes()[start..scanner.at()];
                    let number = || written(value).and_then(numbers::integer).and_then(|n| u32::try_from(n).ok());
                    match inner {
                        b"rank" => self.rank = number(),
                        b"world_size" => self.world_size = number(),
                        b"pg_config" => self.process_groups = process_groups::read(json(), process_groups::PG_CONFIG),
                        b"backend" => self.comm_backend = written(value).and_then(comm_backend),
                        _ => {}
                    }
                }
                self.add_fact(&[key, b".", inner].concat(), value);
                Ok(())
            }),
            _ => {
                if matches!(key, b"hostname" | b"host_name") {
                    self.host = written(value).map(|name| text::decode(name).text.into_owned());
                }
                self.add_fact(key, value);
                self.finish_value(scanner, value)
            }
        }
    }

    fn read_stack_frame(&mut self, scanner: &mut Scanner<'_>, number: &[u8]) -> Result<(), Stop> {
        let (mut name, mut parent) = (None, None);
        match scanner.value()? {
            Value::Container if scanner.peek()? == b'{' => scanner.object(|scanner, key| {
                let value = scanner.skip_value()?;
                match key {
                    b"name" => name = written(value).map(|name| text::decode(name).text.into_owned()),
                    b"parent" => parent = written(value).and_then(numbers::integer),
                    _ => {}
                }
                Ok(())
            })?,
            value => self.finish_value(scanner, value)?,
        }
        if let Some((number, name)) = numbers::integer(number).zip(name) {
            self.stack_frames.insert(number, (name, parent));
        }
        Ok(())
    }

    fn finish_value(&self, scanner: &mut Scanner<'_>, value: Value<'_>) -> Result<(), Stop> {
        if value == Value::Container { scanner.skip_value().map(drop) } else { Ok(()) }
    }

    fn add_fact(&mut self, key: &[u8], value: Value<'_>) {
        let Some(bytes) = written(value) else { return };
        if self.entries.len() < MAX_ENTRIES && key.len() + bytes.len() <= MAX_ENTRY_BYTES {
            self.entries.push((text::decode(key).text.into_owned(), text::decode(bytes).text.into_owned()));
        }
    }

    fn read_device(&mut self, scanner: &mut Scanner<'_>) -> Result<(), Stop> {
        match scanner.value()? {
            Value::Container if scanner.peek()? == b'{' => {}
            Value::Container => return scanner.skip_value().map(drop),
            _ => return Ok(()),
        }
        let mut device = Device { ordinal: self.devices.len() as i64, ..Device::default() };
        let (mut major, mut minor) = (None, None);
        scanner.object(|scanner, key| {
            let value = scanner.skip_value()?;
            let integer = || written(value).and_then(numbers::integer);
            let small = || integer().and_then(|n| u32::try_from(n).ok());
            match key {
                b"id" => device.ordinal = integer().unwrap_or(device.ordinal),
                b"name" => device.name = written(value).map(|name| text::decode(name).text.into_owned()),
                b"totalGlobalMem" => device.memory_bytes = integer().filter(|bytes| *bytes > 0),
                b"computeMajor" => major = small(),
                b"computeMinor" => minor = small(),
                b"numSms" => device.sm_count = small().filter(|count| *count > 0),
                b"maxThreadsPerMultiprocessor" => device.max_threads_per_sm = small(),
                b"warpSize" => device.warp_size = small(),
                b"regsPerMultiprocessor" => device.registers_per_sm = small(),
                b"sharedMemPerMultiprocessor" => device.shared_bytes_per_sm = integer(),
                _ => {}
            }
            Ok(())
        })?;
        device.compute_capability = major.zip(minor);
        if self.devices.iter().all(|known| known.ordinal != device.ordinal) {
            self.devices.push(device);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Metadata {
        let mut metadata = Metadata::default();
        let mut scanner = Scanner::new(text.as_bytes());
        scanner.object(|scanner, key| metadata.read_member(scanner, key)).expect("an object");
        metadata
    }

    #[test]
    fn devices_rank_and_facts_are_kept() {
        let metadata = read(
            r#"{"deviceProperties": [{"id": 0, "name": "A100", "computeMajor": 8, "computeMinor": 0, "numSms": 108}, 7, [1]],
                "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8, "pg_config": [{"pg_name": "0"}]},
                "baseTimeNanoseconds": 1711964646000000000, "cuda_runtime_version": 12040, "list": [1, {"a": 2}], "with_stack": true}"#,
        );
        assert_eq!(metadata.devices.len(), 1);
        assert_eq!((metadata.devices[0].sm_count, metadata.devices[0].compute_capability), (Some(108), Some((8, 0))));
        assert_eq!((metadata.rank, metadata.world_size), (Some(3), Some(8)));
        assert_eq!(metadata.clock_zero_unix_ns, Some(1_711_964_646_000_000_000));
        assert_eq!(metadata.comm_backend, Some(CommBackend::Nccl));
        assert_eq!(metadata.process_groups, [ProcessGroup { name: "0".into(), ..ProcessGroup::default() }]);
        let entries: Vec<String> = metadata.entries.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let expected = "distributedInfo.backend=nccl distributedInfo.rank=3 distributedInfo.world_size=8 \
                        cuda_runtime_version=12040 with_stack=true";
        assert_eq!(entries.join(" "), expected);
    }
}

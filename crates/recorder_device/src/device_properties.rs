//! Properties of a device.

use std::fmt::Write;

/// A device; what is not known is absent.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DeviceProperties {
    /// `cuda`, `hip`, `xpu`.
    pub kind: &'static str,
    /// Its number in this process, as activity records have it.
    pub index: u32,
    /// Its name.
    pub name: Option<String>,
    /// Its memory.
    pub memory_bytes: Option<u64>,
    /// Its multiprocessors, or what corresponds to them.
    pub sm_count: Option<u64>,
    /// Compute capability, before the dot.
    pub compute_capability_major: Option<u64>,
    /// And after it.
    pub compute_capability_minor: Option<u64>,
    /// Threads that one multiprocessor holds.
    pub max_threads_per_sm: Option<u64>,
    /// Threads that run in step.
    pub warp_size: Option<u64>,
    /// Registers of a multiprocessor.
    pub registers_per_sm: Option<u64>,
    /// Shared memory of a multiprocessor.
    pub shared_bytes_per_sm: Option<u64>,
    /// The driver's version, `13.0`.
    pub driver_version: Option<String>,
    /// The runtime's.
    pub runtime_version: Option<String>,
}

impl DeviceProperties {
    /// A JSON list, as the metadata key `devices` has it.
    pub fn to_json(devices: &[Self]) -> String {
        let devices: Vec<String> = devices.iter().map(Self::to_object).collect();
        format!("[{}]", devices.join(","))
    }

    fn to_object(&self) -> String {
        let mut members = vec![format!("\"type\":{}", quoted(self.kind)), format!("\"index\":{}", self.index)];
        let mut text = |key, value: &Option<String>| {
            value.iter().for_each(|value| members.push(format!("\"{key}\":{}", quoted(value))));
        };
        text("name", &self.name);
        text("driver_version", &self.driver_version);
        text("runtime_version", &self.runtime_version);
        let numbers = [
            ("memory_bytes", self.memory_bytes),
            ("sm_count", self.sm_count),
            ("compute_capability_major", self.compute_capability_major),
            ("compute_capability_minor", self.compute_capability_minor),
            ("max_threads_per_sm", self.max_threads_per_sm),
            ("warp_size", self.warp_size),
            ("registers_per_sm", self.registers_per_sm),
            ("shared_bytes_per_sm", self.shared_bytes_per_sm),
        ];
        let numbers = numbers.iter().filter_map(|(key, value)| Some(format!("\"{key}\":{}", (*value)?)));
        members.extend(numbers);
        format!("{{{}}}", members.join(","))
    }
}

/// A JSON text.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            // A text takes it all, so this cannot fail.
            '\0'..='\x1f' => drop(write!(quoted, "\\u{:04x}", u32::from(letter))),
            _ => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_left_out_and_names_are_escaped() {
        let named = DeviceProperties {
            kind: "cuda",
            index: 1,
            name: Some("a \"b\"\\\n".into()),
            sm_count: Some(132),
            ..DeviceProperties::default()
        };
        let bare = DeviceProperties { kind: "xpu", ..DeviceProperties::default() };
        assert_eq!(
            DeviceProperties::to_json(&[named, bare]),
            r#"[{"type":"cuda","index":1,"name":"a \"b\"\\\u000a","sm_count":132},{"type":"xpu","index":0}]"#
        );
        assert_eq!(DeviceProperties::to_json(&[]), "[]");
    }
}

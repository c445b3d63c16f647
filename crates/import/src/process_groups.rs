//! The groups of a process as JSON, which is how every source that has them writes them.

use serde_json::Value;
use stepscope_trace::{CommBackend, ProcessGroup};

/// What a source calls the members of a group: name, description, backend, size, ranks.
pub(crate) type Keys = [&'static str; 5];

/// The names that `torch.distributed` gives them, in traces of `torch.profiler`.
pub(crate) const PG_CONFIG: Keys = ["pg_name", "pg_desc", "backend_config", "pg_size", "ranks"];
/// The names of our own recorder's fact.
pub(crate) const METADATA_KEYS: Keys = ["name", "description", "backend_config", "size", "ranks"];

/// The groups of a list; none where it is no list.
pub(crate) fn read(json: &[u8], [name, description, backend, size, ranks]: Keys) -> Vec<ProcessGroup> {
    let Ok(Value::Array(groups)) = serde_json::from_slice(json) else { return Vec::new() };
    let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
    let group = |group: &Value| {
        let text = |key| group.get(key).and_then(Value::as_str).unwrap_or_default().to_string();
        let all = group.get(ranks).and_then(Value::as_array);
        ProcessGroup {
            name: text(name),
            description: text(description),
            backend: text(backend),
            size: group.get(size).and_then(number),
            // All of them or none: a rank that is left out would be another group.
            ranks: all.and_then(|all| all.iter().map(number).collect()).unwrap_or_default(),
        }
    };
    groups.iter().map(group).collect()
}

/// What `torch.profiler` writes into `distributedInfo` of the first group, and of how many there are.
pub(crate) fn distributed_info(json: &str) -> Vec<(String, String)> {
    let Ok(Value::Array(groups)) = serde_json::from_str(json) else { return Vec::new() };
    let backend = groups.first().and_then(|group| group.get("backend")?.as_str());
    let facts = [("backend", backend.map(str::to_string)), ("pg_count", Some(groups.len().to_string()))];
    let known = facts.into_iter().filter_map(|(key, value)| Some((format!("distributedInfo.{key}"), value?)));
    known.filter(|_| !groups.is_empty()).collect()
}

/// The backend that `torch.distributed` names so: `nccl`, or one a kind of device, `cpu:gloo,cuda:nccl`.
pub(crate) fn comm_backend(text: &[u8]) -> Option<CommBackend> {
    let names = || text.split(|byte| matches!(byte, b',' | b':')).map(<[u8]>::trim_ascii);
    let is_named = |wanted: &str| names().any(|name| name.eq_ignore_ascii_case(wanted.as_bytes()));
    let known = [("nccl", CommBackend::Nccl), ("gloo", CommBackend::Gloo), ("mpi", CommBackend::Mpi)];
    known.into_iter().find(|(name, _)| is_named(name)).map(|(_, backend)| backend)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backend_is_found_among_those_of_several_kinds_of_devices() {
        assert_eq!(comm_backend(b"cpu:gloo,cuda:nccl"), Some(CommBackend::Nccl));
        assert_eq!(comm_backend(b"cpu:gloo,cuda:gloo"), Some(CommBackend::Gloo));
        assert_eq!((comm_backend(b"MPI"), comm_backend(b"ucc")), (Some(CommBackend::Mpi), None));
    }

    #[test]
    fn groups_are_read_and_what_is_missing_is_not_known() {
        let json = br#"[{"pg_name": "3", "pg_desc": "dp", "backend_config": "cpu:gloo", "pg_size": 2, "ranks": [5, 1]},
            {"pg_name": 4, "ranks": [1, "x"]}, null]"#;
        let [first, second, third] = &read(json, PG_CONFIG)[..] else { panic!("three groups") };
        let summary =
            (first.name.as_str(), first.description.as_str(), first.backend.as_str(), first.size, &*first.ranks);
        assert_eq!(summary, ("3", "dp", "cpu:gloo", Some(2), &[5, 1][..]));
        assert_eq!((second, third), (&ProcessGroup::default(), &ProcessGroup::default()));
        assert!(read(b"{}", PG_CONFIG).is_empty() && read(b"[", PG_CONFIG).is_empty());
    }
}

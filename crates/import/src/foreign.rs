//! Files of other tools that no reader knows: what they are, by their first bytes, and what to do instead.

use std::path::Path;

/// A file without a reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Foreign {
    /// What it is.
    pub(crate) found: &'static str,
    /// What to do instead.
    pub(crate) hint: &'static str,
}

const RECORD: &str =
    "record the job with stepscope record, or with PyTorch's profiler: prof.export_chrome_trace(\"trace.json.gz\")";
const UNPACK: &str = "unpack it; JSON of PyTorch's profiler is read, plain or packed with gzip, zstd or zip";

/// How much of a text or a database is searched for what tells it apart.
const SEARCHED_BYTES: usize = 1 << 16;

/// What the file at `path` is, which begins with `head`; `None` when a reader may know it.
pub(crate) fn foreign(path: &Path, head: &[u8]) -> Option<Foreign> {
    let is = |found, hint| Some(Foreign { found, hint });
    let searched = &head[..head.len().min(SEARCHED_BYTES)];
    let has = |text: &str| memchr::memmem::find(searched, text.as_bytes()).is_some();
    let first = searched.iter().find(|byte| !byte.is_ascii_whitespace());
    match () {
        () if head.starts_with(b"PAR1") => {
            is("a Parquet file", "the Parquet files of a run are read together: name its folder")
        }
        () if head.starts_with(b"SQLite format 3\0") => match () {
            () if has("CUPTI_ACTIVITY_KIND") || has("NSYS_") => is("a database of Nsight Systems", RECORD),
            () if has("rocpd_") => is("a database of rocprof", RECORD),
            () => is("an SQLite database", RECORD),
        },
        () if head.starts_with(b"BZh") => is("bzip2 data", UNPACK),
        () if head.starts_with(b"\xfd7zXZ\0") => is("xz data", UNPACK),
        () if is_utf16(head) => is("UTF-16 text", "make it UTF-8: iconv -f UTF-16 -t UTF-8 IN.json -o OUT.json"),
        () if is_xplane(head) => is(
            "an XPlane file of XLA (xplane.pb)",
            "JAX writes a trace that is read with jax.profiler.trace(FOLDER, create_perfetto_trace=True)",
        ),
        () if is_perfetto(head) => is(
            "a Perfetto trace",
            "open the file that it was made from; stepscope convert writes Perfetto traces and does not read them",
        ),
        () if first == Some(&b'{') && has("\"rocprofiler-sdk-tool\"") => is("JSON of rocprofv3", RECORD),
        () if first == Some(&b'{') && has("\"schema\"") && has("\"nodes\"") && !has("\"traceEvents\"") => is(
            "an execution trace of PyTorch, which has no times",
            "profile the same steps with PyTorch's profiler: prof.export_chrome_trace(\"trace.json.gz\")",
        ),
        () if !matches!(first, Some(b'{' | b'[')) && is_rocprof_csv(searched) => is("a CSV file of rocprof", RECORD),
        () if has_ending(path, &[".nsys-rep", ".qdrep", ".qdstrm"]) && is_binary(head) => {
            is("a report of Nsight Systems", RECORD)
        }
        () if has_ending(path, &[".ncu-rep"]) && is_binary(head) => is("a report of Nsight Compute", RECORD),
        () => None,
    }
}

/// With a mark of the byte order, or JSON in which every second byte is 0.
fn is_utf16(head: &[u8]) -> bool {
    let begins_with_json = |byte: usize| {
        let mut units = head.chunks_exact(2).map(|unit| (unit[byte], unit[1 - byte]));
        let first = units.find(|(byte, other)| *other != 0 || !byte.is_ascii_whitespace());
        matches!(first, Some((b'{' | b'[', 0)))
    };
    matches!(head, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]) || begins_with_json(0) || begins_with_json(1)
}

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    endings.iter().any(|ending| name.contains(ending))
}

/// True for what is no text.
fn is_binary(head: &[u8]) -> bool {
    head.iter().take(SEARCHED_BYTES).any(|byte| *byte < b'\t')
}

/// The columns that its releases write.
fn is_rocprof_csv(head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line: String = String::from_utf8_lossy(line).to_lowercase().replace('"', "");
    let columns: Vec<&str> = line.trim().split(',').collect();
    let has = |name: &str| columns.contains(&name);
    (has("kind") && (has("agent_id") || has("correlation_id") || has("function")))
        || (has("domain") && has("function") && has("correlation_id"))
        || (has("kernelname") && has("gpu-id"))
        || (has("name") && has("calls") && has("totaldurationns"))
}

/// A field of a Protocol Buffers message: its number, and the bytes of one that has a length.
type Field<'a> = (u64, Option<&'a [u8]>);

/// The first field of `message`, and what is behind it. Bytes that are not there are left out of the field.
fn field(message: &[u8]) -> Option<(Field<'_>, &[u8], bool)> {
    let (tag, rest) = varint(message)?;
    let fixed = |bytes: usize| Some(((tag >> 3, None), rest.get(bytes..)?, true));
    match tag & 7 {
        _ if tag >> 3 == 0 => None,
        0 => varint(rest).map(|(_, rest)| ((tag >> 3, None), rest, true)),
        1 => fixed(8),
        2 => {
            let (len, rest) = varint(rest)?;
            let len = usize::try_from(len).ok()?;
            let (bytes, behind) = rest.split_at(len.min(rest.len()));
            Some(((tag >> 3, Some(bytes)), behind, bytes.len() == len))
        }
        5 => fixed(4),
        _ => None,
    }
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let end = bytes.iter().take(10).position(|byte| byte & 0x80 == 0)?;
    let value = bytes[..=end].iter().rev().fold(0_u64, |value, byte| value << 7 | u64::from(byte & 0x7f));
    Some((value, &bytes[end + 1..]))
}

/// A list of planes, the first of which has a name as XLA gives it.
fn is_xplane(head: &[u8]) -> bool {
    let Some(((1, Some(mut plane)), ..)) = field(head) else { return false };
    while let Some(((number, bytes), rest, _)) = field(plane) {
        match (number, bytes) {
            (1, None) => plane = rest,
            (2, Some(name)) => {
                return name.starts_with(b"/host:") || name.starts_with(b"/device:") || name == b"Task Environment";
            }
            _ => return false,
        }
    }
    false
}

/// Packets, the first of which is a whole message.
fn is_perfetto(head: &[u8]) -> bool {
    const LARGEST_FIELD: u64 = 10_000;
    let Some(((1, Some(mut packet)), rest, true)) = field(head) else { return false };
    let is_followed = rest.first().is_none_or(|byte| *byte == 0x0a);
    while let Some(((number, _), rest, is_whole)) = field(packet) {
        if number > LARGEST_FIELD || !is_whole {
            return false;
        }
        packet = rest;
    }
    packet.is_empty() && is_followed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, head: &[u8]) -> Option<&'static str> {
        foreign(Path::new(name), head).map(|foreign| foreign.found)
    }

    #[test]
    fn files_of_other_tools_are_known_by_their_content() {
        let utf16: Vec<u8> = "{\"traceEvents\"".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let perfetto = [&[0x0a, 4, 0x40, 7, 0x52, 0][..], &[0x0a, 2, 0x40, 9]].concat();
        let xplane = [&[0x0a, 20, 0x08, 1, 0x12, 9][..], b"/host:CPU"].concat();
        let cases: [(&[u8], &str); 14] = [
            (b"\n\0{\0\"\0", "UTF-16 text"),
            (b"\0\n\0[", "UTF-16 text"),
            (b"PAR1", "a Parquet file"),
            (b"SQLite format 3\0 .. CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL", "a database of Nsight Systems"),
            (b"SQLite format 3\0 .. CREATE TABLE rocpd_string_0", "a database of rocprof"),
            (b"SQLite format 3\0 .. CREATE TABLE t", "an SQLite database"),
            (&utf16, "UTF-16 text"),
            (b"\xff\xfe{\0", "UTF-16 text"),
            (&perfetto, "a Perfetto trace"),
            (&xplane, "an XPlane file of XLA (xplane.pb)"),
            (b"{\"rocprofiler-sdk-tool\": [", "JSON of rocprofv3"),
            (b"{\"schema\": \"1.1\", \"pid\": 1, \"nodes\": [", "an execution trace of PyTorch, which has no times"),
            (b"\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Kernel_Name\"\n", "a CSV file of rocprof"),
            (b"\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\"\r\n", "a CSV file of rocprof"),
        ];
        for (head, expected) in cases {
            assert_eq!(found("trace.json", head), Some(expected));
        }
        assert_eq!(found("a.nsys-rep", b"\x01\x00binary"), Some("a report of Nsight Systems"));
    }

    #[test]
    fn a_text_is_no_other_tools_for_its_name_or_its_first_line_break() {
        assert_eq!(found("a.nsys-rep", b"{\"traceEvents\": []}"), None);
        assert_eq!(found("a.pftrace", b"[{\"ph\": \"X\"}]"), None);
        for text in ["\n{\"traceEvents\": [{\"ph\": \"X\"}]}", "\n[\n", "\n{\"schemaVersion\": 1, \"nodes\": 2}"] {
            assert_eq!(found("t", text.as_bytes()), None, "{text}");
            let long = text.to_string() + &"{\"ph\": \"X\", \"name\": \"aten::mm\"},\n".repeat(40);
            assert_eq!(found("t", long.as_bytes()), None, "{long}");
        }
    }
}

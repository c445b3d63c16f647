//! The places of the fields, as a C compiler finds them in CUPTI's own headers.

use super::{call, event, graph, kernel, marker, memcpy, memcpy_between, memset, overhead, synchronization};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Include folders to look into, with colons between them, beside what the development environment has.
const VARIABLE: &str = "STEPSCOPE_CUPTI_HEADERS";

/// Structures without their version, the first version that is used, and the fields that are read of all of them.
type Known = (&'static str, u32, &'static [(&'static str, usize, usize)]);
const RECORDS: [Known; 10] = [
    ("Kernel", 8, kernel::ALL),
    ("Memcpy", 5, memcpy::ALL),
    ("MemcpyPtoP", 4, memcpy_between::ALL),
    ("Memset", 4, memset::ALL),
    ("GraphTrace", 0, graph::ALL),
    ("API", 0, call::ALL),
    ("Overhead", 0, overhead::ALL),
    ("Synchronization", 0, synchronization::ALL),
    ("CudaEvent", 0, event::ALL),
    ("Marker", 2, marker::ALL),
];

/// What CUPTI's headers include of a package that they do not come with.
const HOST_DEFINES: &str = "#define __device_builtin__\n#define __device_builtin_texture_type__\n\
    #define __device_builtin_surface_type__\n#define __cudart_builtin__\n#define CUDARTAPI\n#define __host__\n\
    #define __align__(n) __attribute__((aligned(n)))\n#define __builtin_align__(n) __align__(n)\n";

#[test]
fn fields_stand_where_the_headers_put_them() {
    let folders = header_folders();
    if folders.is_empty() {
        return eprintln!("skipped: no headers of CUPTI (nvidia-cuda-cupti) here; {VARIABLE} may name their folders");
    }
    let Some(runtime) = folders.iter().find(|folder| folder.join("builtin_types.h").exists()) else {
        return eprintln!("skipped: no headers of CUDA's runtime (nvidia-cuda-runtime) here");
    };
    for folder in &folders {
        match check(folder, runtime) {
            Ok(checked) => eprintln!("{}: {checked} fields", folder.display()),
            Err(why) => panic!("{}: {why}", folder.display()),
        }
    }
}

fn header_folders() -> BTreeSet<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let environment = std::env::var_os("STEPSCOPE_VENV").map_or(root.join(".venv"), PathBuf::from);
    let given = std::env::var_os(VARIABLE).unwrap_or_default();
    let mut folders: BTreeSet<PathBuf> = std::env::split_paths(&given).collect();
    let inside = |folder: PathBuf| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    for python in inside(environment.join("lib")) {
        folders.extend(inside(python.join("site-packages/nvidia")).into_iter().map(|package| package.join("include")));
    }
    folders.retain(|folder| folder.join("cupti_activity.h").exists());
    folders
}

/// Compares all versions of all structures that the headers know; gives how many fields that were.
fn check(headers: &Path, runtime: &Path) -> Result<usize, String> {
    let read = |name| std::fs::read_to_string(headers.join(name)).unwrap_or_default();
    let text = read("cupti_activity.h") + &read("cupti_activity_deprecated.h");
    let mut program = String::from("#include <stdio.h>\n#include <stddef.h>\n#include <cupti_activity.h>\n");
    if headers.join("cupti_activity_deprecated.h").exists() {
        program.push_str("#include <cupti_activity_deprecated.h>\n");
    }
    program.push_str("int main(void) {\n");
    for (name, first, fields) in RECORDS {
        let versions = (0..40).filter(|version| (*version >= first || first == 0) && *version != 1);
        let structures = versions.map(|version| (version, structure(name, version)));
        for (_, structure) in structures.filter(|(_, structure)| text.contains(&format!("}} {structure};"))) {
            for (field, ..) in fields {
                let member = member(field);
                if *field == "cudaEventSyncId" && !body(&text, &structure).contains("cudaEventSyncId;") {
                    continue;
                }
                let line = format!(
                    "printf(\"{name} {field} {structure} %zu %zu\\n\", offsetof({structure}, {member}), \
                     sizeof((({structure}*)0)->{member}));\n"
                );
                program.push_str(&line);
            }
        }
    }
    program.push_str("return 0; }\n");
    let printed = run(&program, headers, runtime)?;
    let mut wrong = String::new();
    for line in printed.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [record, field, structure, offset, size] = words[..] else { return Err(format!("printed: {line}")) };
        let fields = RECORDS.iter().find(|(name, ..)| *name == record).map_or(&[][..], |(.., fields)| fields);
        let known = fields.iter().find(|(name, ..)| *name == field);
        let (_, our_offset, our_size) = known.ok_or_else(|| format!("printed: {line}"))?;
        if format!("{our_offset} {our_size}") != format!("{offset} {size}") {
            let _ =
                writeln!(wrong, "{structure}.{field} is at {offset}, {size} bytes; here at {our_offset}, {our_size}");
        }
    }
    // Every record has its fields in at least one version.
    let needed: usize = RECORDS.iter().map(|(.., fields)| fields.len()).sum();
    match (wrong.as_str(), printed.lines().count()) {
        ("", checked) if checked + 2 >= needed => Ok(checked),
        ("", checked) => Err(format!("only {checked} fields of {needed} were found")),
        (wrong, _) => Err(wrong.into()),
    }
}

fn structure(name: &str, version: u32) -> String {
    let version = if version == 0 { String::new() } else { version.to_string() };
    format!("CUpti_Activity{name}{version}")
}

/// The text of a structure's definition.
fn body<'a>(text: &'a str, structure: &str) -> &'a str {
    let end = text.find(&format!("}} {structure};")).unwrap_or(0);
    let start = text[..end].rfind("typedef struct").unwrap_or(0);
    &text[start..end]
}

/// A thread stands in a union, and a keyword of ours is none of C's.
fn member(field: &str) -> &str {
    match field {
        "thread" => "objectId.pt.threadId",
        "r#type" => "type",
        _ => field,
    }
}

fn run(program: &str, headers: &Path, runtime: &Path) -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (source, binary) = (folder.path().join("fields.c"), folder.path().join("fields"));
    let written = std::fs::create_dir(folder.path().join("crt"))
        .and_then(|()| std::fs::write(folder.path().join("crt/host_defines.h"), HOST_DEFINES))
        .and_then(|()| std::fs::write(&source, program));
    written.map_err(|error| error.to_string())?;
    let mut compiler = Command::new("cc");
    compiler.args(["-w", "-I"]).arg(headers).arg("-I").arg(runtime).arg("-I").arg(folder.path());
    let output = compiler.arg("-o").arg(&binary).arg(&source).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let output = Command::new(&binary).output().map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

//! Builds the web pages, where they have changed and Node is there, and packs them into the program. Without Node what was
//! built last is taken; without that, a page that says so.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

/// What of `web/` the pages are built from.
const SOURCES: [&str; 6] = ["src", "public", "index.html", "package.json", "package-lock.json", "vite.config.ts"];
/// In `dist`: what it was built from.
const BUILT_FROM: &str = ".built-from";
/// Set to leave `web/dist` as it is.
const NO_BUILD: &str = "STEPSCOPE_NO_WEB_BUILD";

const NO_PAGES: &str = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
    <meta name=\"color-scheme\" content=\"light dark\">\n<title>stepscope</title>\n</head>\n<body>\n\
    <h1>This build has no pages</h1>\n<p>They are made with Node 20.19 or later: install it, and build again. The \
    interface below <code>api/</code> is there.</p>\n</body>\n</html>\n";

fn main() {
    println!("cargo::rerun-if-env-changed={NO_BUILD}");
    let web = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../web");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    let dist = web.join("dist");
    println!("cargo::rerun-if-changed={}", web.join("dist").join("index.html").display());
    for source in SOURCES.iter().filter(|source| web.join(source).exists()) {
        println!("cargo::rerun-if-changed={}", web.join(source).display());
    }
    let sources = fingerprint(&web);
    let built_from = fs::read_to_string(dist.join(BUILT_FROM)).ok();
    if web.join("package.json").exists() && built_from.as_deref() != Some(&sources) {
        match build(&web, &sources) {
            Ok(()) => {}
            Err(why) if dist.join("index.html").exists() => {
                println!("cargo::warning=the web pages are those built before their last change: {why}");
            }
            Err(why) => println!("cargo::warning=there are no web pages in this build: {why}"),
        }
    }
    let mut files = BTreeMap::new();
    collect(&dist, &dist, &mut files);
    if !files.contains_key("index.html") {
        files = BTreeMap::from([("index.html".to_string(), NO_PAGES.as_bytes().to_vec())]);
    }
    write(&out, &files);
}

/// Runs npm; what it wrote is told only when it fails.
fn build(web: &Path, sources: &str) -> Result<(), String> {
    if env::var_os(NO_BUILD).is_some() {
        return Err(format!("{NO_BUILD} is set"));
    }
    let node =
        read(Command::new("node").arg("--version")).ok_or("they need Node 20.19 or later, which is not there")?;
    let version: Vec<u32> =
        node.trim().trim_start_matches('v').split('.').map_while(|word| word.parse().ok()).collect();
    if version < vec![20, 19] {
        return Err(format!("they need Node 20.19 or later, and this is {}", node.trim()));
    }
    // Again only when what is to be installed has changed.
    let lock = fs::read(web.join("package-lock.json")).unwrap_or_default();
    let installed = web.join("node_modules/.installed-from");
    let wanted = hashed(&lock);
    if fs::read_to_string(&installed).ok().as_deref() != Some(&wanted) {
        // Not `npm ci`: it fails where a registry lacks packages of other systems, which are optional.
        npm(web, &["install", "--no-save", "--no-audit", "--no-fund"])?;
        fs::write(&installed, wanted).map_err(|error| error.to_string())?;
    }
    npm(web, &["run", "build"])?;
    fs::write(web.join("dist").join(BUILT_FROM), sources).map_err(|error| error.to_string())
}

fn npm(web: &Path, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("npm").args(arguments).current_dir(web).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("npm cannot be started: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let written = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let last: Vec<&str> = written.lines().rev().filter(|line| !line.trim().is_empty()).take(8).collect();
    let last: Vec<&str> = last.into_iter().rev().collect();
    Err(format!("`npm {}` failed: {}", arguments.join(" "), last.join(" | ")))
}

fn read(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Stands for the names and content of all sources.
fn fingerprint(web: &Path) -> String {
    let mut files = BTreeMap::new();
    for source in SOURCES {
        let path = web.join(source);
        if path.is_dir() {
            collect(&path, web, &mut files);
        } else if let Ok(bytes) = fs::read(&path) {
            files.insert(source.to_string(), bytes);
        }
    }
    hashed(&files)
}

/// The files below `folder`, by their path below `root`; hidden ones are none of them.
fn collect(folder: &Path, root: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        if path.is_dir() {
            collect(&path, root, files);
        } else if let (Ok(name), Ok(bytes)) = (path.strip_prefix(root), fs::read(&path)) {
            files.insert(name.to_string_lossy().replace('\\', "/"), bytes);
        }
    }
}

fn hashed(what: &impl Hash) -> String {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Writes the packed files, and the table of them.
fn write(out: &Path, files: &BTreeMap<String, Vec<u8>>) {
    let mut table = String::from("static ASSETS: &[Asset] = &[\n");
    for (number, (path, bytes)) in files.iter().enumerate() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        let packed = packed.write_all(bytes).and_then(|()| packed.finish()).expect("memory");
        let name = format!("asset-{number}.gz");
        fs::write(out.join(&name), packed).expect("OUT_DIR can be written to");
        let _ = writeln!(
            table,
            "    Asset {{ path: {path:?}, kind: {:?}, packed: include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}\")), \
             etag: \"\\\"{}\\\"\" }},",
            kind(path),
            hashed(bytes)
        );
    }
    table.push_str("];\n");
    fs::write(out.join("assets.rs"), table).expect("OUT_DIR can be written to");
}

/// The media type that a name stands for.
fn kind(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "webmanifest" => "application/manifest+json",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

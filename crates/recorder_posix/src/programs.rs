//! Programs that the process begins, and that this library is not loaded into: what they do with files is not seen.
//!
//! A child of `vfork` looks, too. It leaves what it found where its parent finds it.

use crate::descriptors::PATH;
use crate::files::{File, file};
use crate::paths::absolute;
use crate::real::IS_BEFORE_ALL;
use crate::start::{Inside, is_on, is_vforked};
use std::ffi::{CStr, c_char, c_int};
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use stepscope_recorder::set_own_metadata;

/// Metadata: a line for each program, which says why.
const KEY: &str = "io_programs_not_seen";
/// Programs that are named; those beyond are not.
const MOST: usize = 32;
/// Scripts whose interpreter is a script.
const DEEPEST: usize = 4;

/// Each a program's [`File`], and a [`Reason`] in the bits that are zero in its address; 0: none.
static FOUND: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];
const REASONS: usize = 0b111;
static IS_TO_SAY: AtomicBool = AtomicBool::new(false);

/// The arguments of a program, or its environment.
pub(crate) type Texts = *const *const c_char;

/// Why a program is not seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reason {
    Static = 1,
    OtherLibrary = 2,
    Narrow = 3,
    NotTold = 4,
}

impl Reason {
    fn text(bits: usize) -> &'static str {
        const STATIC: usize = Reason::Static as usize;
        const OTHER_LIBRARY: usize = Reason::OtherLibrary as usize;
        const NARROW: usize = Reason::Narrow as usize;
        match bits {
            STATIC => "is linked statically",
            OTHER_LIBRARY => "has another C library than glibc",
            NARROW => "is a 32-bit program",
            _ => "was begun without LD_PRELOAD",
        }
    }
}

/// The program at `path`, from the folder that `folder` is of, is about to begin, with `environment`; `None`: with that of
/// this process.
pub(crate) fn begins((folder, path): (c_int, *const c_char), environment: Option<Texts>) {
    // A process that was told while it ran tells nobody.
    if !is_on() || !IS_BEFORE_ALL.load(Ordering::Relaxed) {
        return;
    }
    let Some(_inside) = Inside::enter() else { return };
    let reason = crate::recorded::errno();
    look(folder, path, environment);
    if !is_vforked() {
        say();
    }
    crate::recorded::set_errno(reason);
}

/// As [`begins`], of a program that is searched for where it is named without a folder.
pub(crate) fn searched_begins(name: *const c_char, environment: Option<Texts>) {
    // SAFETY: the caller passes it to the C library: null or terminated.
    let Some(text) = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_bytes()) else { return };
    if text.contains(&b'/') {
        return begins((libc::AT_FDCWD, name), environment);
    }
    // SAFETY: the name is terminated; nobody else changes the environment of a program that begins another one.
    let folders = unsafe { libc::getenv(c"PATH".as_ptr()) };
    // SAFETY: as the C library has it.
    let folders = if folders.is_null() { b"/bin:/usr/bin" } else { unsafe { CStr::from_ptr(folders) }.to_bytes() };
    for folder in folders.split(|byte| *byte == b':') {
        let folder = if folder.is_empty() { b"." } else { folder };
        let mut path = [0; PATH];
        let len = folder.len() + 1 + text.len();
        if len >= PATH {
            continue;
        }
        path[..folder.len()].copy_from_slice(folder);
        path[folder.len()] = b'/';
        path[folder.len() + 1..len].copy_from_slice(text);
        let path: *const c_char = path.as_ptr().cast();
        // SAFETY: terminated, for the last byte stays zero. Past the C library, whose function this library stands for.
        if unsafe { libc::syscall(libc::SYS_faccessat, libc::AT_FDCWD, path, libc::X_OK) } == 0 {
            return begins((libc::AT_FDCWD, path), environment);
        }
    }
}

/// What was found since is written down.
pub(crate) fn say() {
    if !IS_TO_SAY.swap(false, Ordering::AcqRel) {
        return;
    }
    let mut text = String::new();
    for found in FOUND.iter().map(|found| found.load(Ordering::Acquire)).filter(|found| *found != 0) {
        // SAFETY: files are never freed.
        let program = unsafe { &*((found & !REASONS) as *const File) };
        let _ = writeln!(text, "{} {}", String::from_utf8_lossy(program.path()), Reason::text(found & REASONS));
    }
    set_own_metadata(KEY, text.trim_end());
}

/// A child of `vfork` has found something: its parent says it.
#[inline(always)]
pub(crate) fn is_to_say() -> bool {
    IS_TO_SAY.load(Ordering::Relaxed)
}

/// In a forked child: what there is was found by its parent.
pub(crate) fn forget() {
    FOUND.iter().for_each(|found| found.store(0, Ordering::Relaxed));
    IS_TO_SAY.store(false, Ordering::Relaxed);
}

fn look(folder: c_int, path: *const c_char, environment: Option<Texts>) {
    // SAFETY: the caller passes all to the C library: paths and lists are null or terminated.
    let told = environment.is_none_or(|environment| unsafe { is_told(environment) });
    let reason = if told { reason_of(folder, path) } else { Some(Reason::NotTold) };
    let Some(reason) = reason else { return };
    // SAFETY: as above.
    let Some(program) = (unsafe { absolute(folder, path, file) }) else { return };
    let new = std::ptr::from_ref(program) as usize | reason as usize;
    for slot in &FOUND {
        match slot.compare_exchange(0, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return IS_TO_SAY.store(true, Ordering::Release),
            Err(found) if found == new => return,
            Err(_) => {}
        }
    }
}

/// Whether an environment has a program load this library.
///
/// # Safety
/// Null, or a list that ends with null of terminated texts.
unsafe fn is_told(environment: Texts) -> bool {
    const PRELOAD: &[u8] = b"LD_PRELOAD=";
    const OURS: &[u8] = b"libstepscope_";
    let mut at = environment;
    // SAFETY: the caller's promise.
    while let Some(text) = unsafe { at.as_ref() }.filter(|text| !text.is_null()) {
        // SAFETY: as above.
        let text = unsafe { CStr::from_ptr(*text) }.to_bytes();
        if let Some(libraries) = text.strip_prefix(PRELOAD) {
            return libraries.windows(OURS.len()).any(|name| name == OURS);
        }
        // SAFETY: as above.
        at = unsafe { at.add(1) };
    }
    false
}

/// Why the program at a path is not seen; `None` where it is, or where nobody knows.
fn reason_of(mut folder: c_int, mut path: *const c_char) -> Option<Reason> {
    let mut interpreter: [u8; 256];
    for _ in 0..DEEPEST {
        let mut text = [0; 4096];
        let len = read_at((folder, path), 0, &mut text)?;
        let text = &text[..len];
        let Some(line) = text.strip_prefix(b"#!") else {
            // SAFETY: terminated, as it could be read.
            let name = unsafe { CStr::from_ptr(path) }.to_bytes();
            return of_binary(name, text, |at, to| read_at((folder, path), at, to));
        };
        let line = line.split(|byte| *byte == b'\n').next()?;
        let mut words = line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty());
        let word = words.next()?;
        interpreter = [0; 256];
        interpreter.get_mut(..word.len()).filter(|_| word.len() < 256)?.copy_from_slice(word);
        (folder, path) = (libc::AT_FDCWD, interpreter.as_ptr().cast());
    }
    None
}

/// Reads a part of a program that may be executed; `None` where that fails.
fn read_at((folder, path): (c_int, *const c_char), at: u64, to: &mut [u8]) -> Option<usize> {
    // SAFETY: plain system calls, past the C library, whose functions this library stands for; the path is terminated, and
    // the system writes no more than there is room for.
    unsafe {
        if libc::syscall(libc::SYS_faccessat, folder, path, libc::X_OK) != 0 {
            return None;
        }
        let descriptor = libc::syscall(libc::SYS_openat, folder, path, libc::O_RDONLY | libc::O_CLOEXEC);
        if descriptor < 0 {
            return None;
        }
        let len = libc::syscall(libc::SYS_pread64, descriptor, to.as_mut_ptr(), to.len(), at);
        libc::syscall(libc::SYS_close, descriptor);
        usize::try_from(len).ok()
    }
}

/// The same of the program `name`, which begins with `text`, and of which `read` reads more.
fn of_binary(name: &[u8], text: &[u8], read: impl FnOnce(u64, &mut [u8]) -> Option<usize>) -> Option<Reason> {
    const INTERPRETER: u64 = 3;
    if !text.starts_with(b"\x7fELF") {
        return None;
    }
    if text.get(4) == Some(&1) {
        return Some(Reason::Narrow);
    }
    let number = |at: usize, bytes: usize| -> Option<u64> {
        let found = text.get(at..at.checked_add(bytes)?)?;
        Some(found.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    };
    let (first, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    for at in 0..count {
        let header = usize::try_from(first.checked_add(at * size)?).ok()?;
        if number(header, 4)? == INTERPRETER {
            let mut loader = [0; PATH];
            let len = usize::try_from(number(header + 32, 8)?).ok()?.min(PATH);
            let len = read(number(header + 8, 8)?, &mut loader[..len])?;
            return (!is_loader(&loader[..len])).then_some(Reason::OtherLibrary);
        }
    }
    // The loader has none, and loads what it is told to.
    (!is_loader(name)).then_some(Reason::Static)
}

/// Whether this is the path of glibc's loader, as the systems name it.
fn is_loader(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    [b"ld-linux".as_slice(), b"ld-lsb", b"ld64.so", b"ld-2.", b"ld.so"].iter().any(|known| name.starts_with(known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt;

    /// A program that has one header: of its loader, where it has one.
    fn program(class: u8, loader: Option<&str>) -> Vec<u8> {
        let mut text = vec![0_u8; 120];
        text[..5].copy_from_slice(&[0x7f, b'E', b'L', b'F', class]);
        text[32] = 64;
        text[54] = 56;
        text[56] = 1;
        if let Some(loader) = loader {
            text[64] = 3;
            text[72] = 120;
            text[96] = loader.len() as u8 + 1;
            text.extend_from_slice(loader.as_bytes());
            text.push(0);
        }
        text
    }

    #[test]
    fn programs_that_are_not_seen_are_known_by_their_files() {
        let folder = std::env::temp_dir().join(format!("programs-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let musl = program(2, Some("/lib/ld-musl-x86_64.so.1"));
        let script = |of: &str| format!("#! {}/{of} -x\ntext\n", folder.display()).into_bytes();
        let cases: [(&str, Vec<u8>, Option<Reason>); 9] = [
            ("glibc", program(2, Some("/lib64/ld-linux-x86-64.so.2")), None),
            ("musl", musl.clone(), Some(Reason::OtherLibrary)),
            ("static", program(2, None), Some(Reason::Static)),
            ("narrow", program(1, None), Some(Reason::Narrow)),
            ("ld-linux-x86-64.so.2", program(2, None), None),
            ("script", script("musl"), Some(Reason::OtherLibrary)),
            ("script-of-script", script("script"), Some(Reason::OtherLibrary)),
            ("cut", musl[..100].to_vec(), None),
            ("text", b"text".to_vec(), None),
        ];
        let path_of = |name: &str| CString::new(folder.join(name).into_os_string().into_encoded_bytes()).unwrap();
        for (name, text, _) in &cases {
            let mut file = std::fs::OpenOptions::new();
            let mut file = file.write(true).create(true).mode(0o755).open(folder.join(name)).unwrap();
            file.write_all(text).unwrap();
        }
        for (name, _, expected) in &cases {
            assert_eq!(reason_of(libc::AT_FDCWD, path_of(name).as_ptr()), *expected, "{name}");
        }
        assert_eq!(reason_of(libc::AT_FDCWD, path_of("missing").as_ptr()), None);
        // The program that runs is of glibc.
        assert_eq!(reason_of(libc::AT_FDCWD, c"/proc/self/exe".as_ptr()), None);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn an_environment_says_whether_this_library_is_loaded() {
        let told = |texts: &[&CStr]| {
            let mut list: Vec<*const c_char> = texts.iter().map(|text| text.as_ptr()).collect();
            list.push(std::ptr::null());
            // SAFETY: texts and list are terminated.
            unsafe { is_told(list.as_ptr()) }
        };
        assert!(told(&[c"A=1", c"LD_PRELOAD=/a/x.so:/b/libstepscope_preload.so"]));
        assert!(!told(&[c"A=1", c"LD_PRELOAD=/a/x.so"]) && !told(&[]));
        // SAFETY: a null list is allowed.
        assert!(!unsafe { is_told(std::ptr::null()) });
    }
}

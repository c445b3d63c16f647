//! Files of MPI, where the program has loaded the library: each call with the bytes and the place that the library says.
//!
//! Handles are pointers or numbers, as each library has them: both fit into a word, of which a library reads as much as it
//! needs. Of functions with `_c` counts are wider.

#![allow(non_snake_case, reason = "the names are those of the library")]

use crate::files::File;
use crate::real::{bound_hooks, real};
use crate::recorded::{Call, Returned, named, on_path, own_errors, timed};
use crate::start::{Inside, is_on};
use libc::AT_FDCWD;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void};
use stepscope_recorder::ForkLock;
use stepscope_recorder::IoFunction::{
    self, MpiFileClose, MpiFileDelete, MpiFileIread, MpiFileIreadAll, MpiFileIreadAt, MpiFileIreadAtAll,
    MpiFileIreadShared, MpiFileIwrite, MpiFileIwriteAll, MpiFileIwriteAt, MpiFileIwriteAtAll, MpiFileIwriteShared,
    MpiFileOpen, MpiFilePreallocate, MpiFileRead, MpiFileReadAll, MpiFileReadAt, MpiFileReadAtAll, MpiFileReadOrdered,
    MpiFileReadShared, MpiFileSeek, MpiFileSetSize, MpiFileSetView, MpiFileSync, MpiFileWrite, MpiFileWriteAll,
    MpiFileWriteAt, MpiFileWriteAtAll, MpiFileWriteOrdered, MpiFileWriteShared,
};

/// Any handle.
pub(super) type Handle = usize;
/// A place in a file, in elements of its view.
pub(super) type Offset = i64;

own_errors!(Status(c_int), 16, |status| status != 0);

/// Files that are open, by their handles.
static OPEN: ForkLock<BTreeMap<Handle, &'static File>> = ForkLock::new(BTreeMap::new());

/// What a call asks for.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    /// The type of its elements.
    pub(super) of: Handle,
    pub(super) asked: Option<u64>,
    pub(super) offset: Option<u64>,
}

/// Of those that begin at address 0 or 1 there is none: the program wants none.
const NO_STATUS: usize = 1;
/// Longer than that of any library.
type OwnStatus = [u64; 32];

// What the library tells.

fn type_size(of: Handle, size: *mut c_int) -> Status {
    real!(MPI_Type_size(of: Handle, size: *mut c_int) -> Status)
}

fn count_of(status: *const c_void, of: Handle, count: *mut c_int) -> Status {
    real!(MPI_Get_count(status: *const c_void, of: Handle, count: *mut c_int) -> Status)
}

fn position(file: Handle, offset: *mut Offset) -> Status {
    real!(MPI_File_get_position(file: Handle, offset: *mut Offset) -> Status)
}

fn byte_offset(file: Handle, offset: Offset, bytes: *mut Offset) -> Status {
    real!(MPI_File_get_byte_offset(file: Handle, offset: Offset, bytes: *mut Offset) -> Status)
}

/// What a function without an error has written.
pub(super) fn told<T: Default>(ask: impl FnOnce(*mut T) -> Status) -> Option<T> {
    let mut value = T::default();
    (!ask(&raw mut value).is_failed()).then_some(value)
}

/// Where a call begins.
#[derive(Clone, Copy)]
pub(super) enum Place {
    /// At this element of the view.
    At(Offset),
    /// Where the file stands for this process.
    Own,
    /// Where it stands for all processes, which changes while one asks.
    Shared,
}

pub(super) fn place_of(file: Handle, place: Place) -> Option<u64> {
    let offset = match place {
        Place::At(offset) => offset,
        Place::Own => told(|offset| position(file, offset))?,
        Place::Shared => return None,
    };
    u64::try_from(told(|bytes| byte_offset(file, offset, bytes))?).ok()
}

/// The file of a handle, when it is watched.
pub(super) fn open_file(handle: Handle) -> Option<&'static File> {
    if !is_on() {
        return None;
    }
    let _inside = Inside::enter()?;
    OPEN.lock().get(&handle).copied()
}

/// The bytes of as many elements of a type.
pub(super) fn bytes_of(count: i64, of: Handle) -> Option<u64> {
    let size = told(|size| type_size(of, size)).and_then(|size| u64::try_from(size).ok()).unwrap_or(0);
    u64::try_from(count).ok().map(|count| count.saturating_mul(size))
}

fn on_file(function: IoFunction, handle: Handle, real: impl FnOnce() -> Status) -> Status {
    match open_file(handle) {
        Some(file) => timed(real, |_| Call::on(function, Some(file))),
        None => real(),
    }
}

/// A call that moves `count` elements of the type `of`; `real` is told where the library writes what became of it.
fn transfer(
    function: IoFunction,
    (handle, place): (Handle, Place),
    (count, of): (i64, Handle),
    status: *mut c_void,
    real: impl FnOnce(*mut c_void) -> Status,
) -> Status {
    let Some(file) = open_file(handle) else { return real(status) };
    let (asked, offset) = (bytes_of(count, of), place_of(handle, place));
    moved(function, file, Asked { of, asked, offset }, status, real)
}

/// A call after which the library says how much it has moved of what was asked for.
pub(super) fn moved(
    function: IoFunction,
    file: &'static File,
    Asked { of, asked, offset }: Asked,
    status: *mut c_void,
    real: impl FnOnce(*mut c_void) -> Status,
) -> Status {
    let mut own: OwnStatus = [0; 32];
    let status = if status as usize <= NO_STATUS { own.as_mut_ptr().cast() } else { status };
    timed(
        || real(status),
        |returned| {
            // Negative where what was moved is no whole number of elements.
            let moved = || told(|count| count_of(status, of, count)).and_then(|count| bytes_of(count.into(), of));
            let bytes = if returned.is_failed() { 0 } else { moved().or(asked).unwrap_or(0) };
            Call { bytes, asked: asked.filter(|asked| *asked != bytes), offset, ..Call::on(function, Some(file)) }
        },
    )
}

/// A call that asks for as many elements to be moved, while the program goes on; what was moved it does not say.
fn request_of(
    function: IoFunction,
    (handle, place): (Handle, Place),
    (count, of): (i64, Handle),
    real: impl FnOnce() -> Status,
) -> Status {
    let Some(file) = open_file(handle) else { return real() };
    let (asked, offset) = (bytes_of(count, of), place_of(handle, place));
    timed(real, |_| Call { asked, offset, ..Call::on(function, Some(file)) })
}

bound_hooks! {
    fn MPI_File_open(group: Handle, path: *const c_char, mode: c_int, hints: Handle, to: *mut Handle) -> Status |real| {
        let Some(file) = named(AT_FDCWD, path) else { return real() };
        timed(real, |returned| {
            if !returned.is_failed() && let Some(_inside) = Inside::enter() {
                // SAFETY: the library has just written the handle there.
                OPEN.lock().insert(unsafe { *to }, file);
            }
            Call::on(MpiFileOpen, Some(file))
        })
    };
    fn MPI_File_close(handle: *mut Handle) -> Status |real| {
        // SAFETY: the program passes it to the library.
        let before = unsafe { handle.as_ref() }.copied().unwrap_or(0);
        let Some(file) = open_file(before) else { return real() };
        timed(real, |_| {
            if let Some(_inside) = Inside::enter() {
                OPEN.lock().remove(&before);
            }
            Call::on(MpiFileClose, Some(file))
        })
    };
    fn MPI_File_delete(path: *const c_char, hints: Handle) -> Status |real| on_path(MpiFileDelete, (AT_FDCWD, path), real);
    fn MPI_File_sync(file: Handle) -> Status |real| on_file(MpiFileSync, file, real);
    fn MPI_File_set_size(file: Handle, size: Offset) -> Status |real| on_file(MpiFileSetSize, file, real);
    fn MPI_File_preallocate(file: Handle, size: Offset) -> Status |real| on_file(MpiFilePreallocate, file, real);
    fn MPI_File_seek(file: Handle, offset: Offset, from: c_int) -> Status |real| on_file(MpiFileSeek, file, real);
    fn MPI_File_set_view(file: Handle, at: Offset, element: Handle, of: Handle, format: *const c_char, hints: Handle)
        -> Status |real| on_file(MpiFileSetView, file, real);
    fn MPI_File_read(file: Handle, buffer: *mut c_void, count: c_int, of: Handle, status: *mut c_void) -> Status
        |_real| transfer(MpiFileRead, (file, Place::Own), (count.into(), of), status, |status| {
            real!(MPI_File_read(file: Handle, buffer: *mut c_void, count: c_int, of: Handle, status: *mut c_void) -> Status)
        });
    fn MPI_File_read_c(file: Handle, buffer: *mut c_void, count: i64, of: Handle, status: *mut c_void) -> Status
        |_real| transfer(MpiFileRead, (file, Place::Own), (count, of), status, |status| {
            real!(MPI_File_read_c(file: Handle, buffer: *mut c_void, count: i64, of: Handle, status: *mut c_void) -> Status)
        });
    fn MPI_File_read_all(file: Handle, buffer: *mut c_void, count: c_int, of: Handle, status: *mut c_void) -> Status
        |_real| transfer(MpiFileReadAll, (file, Place::Own), (count.into(), of), status, |status| {
            real!(MPI_File_read_all(file: Handle, buffer: *mut c_void, count: c_int, of: Handle, status: *mut c_void) -> Status)
        });
    fn MPI_File_read_all_c(file: Handle, buffer: *mut c_void, count: i64, of: Handle, status: *mut c_void) -> Status
        |_real| transfer(MpiFileReadAll, (file, Place::Own), (count, of), status, |status| {
            real!(MPI_File_read_all_c(file: Handle, buffer: *mut c_void, count: i64, of: Handle, status: *mut c_void) -> Status)
        });
    fn MPI_File_read_at(file: Handle, offset: Offset, buffer: *mut c_void, count: c_int, of: Handle, status: *mut c_void) -> Status
        |_real| transfer(MpiFileReadAt, (file, Place::At(offset)), (count.into(), of), status, |status| {
            real!(MPI_File_read_at(file: Handle, offset: Offset, buffer: *mut c_void, count: c_int, of: Handle, status: *mut c_void) -> Status)
        });
    fn MPI_File_read_at_c(file: Handle, offset: Offset, buffer: *mut c_void, count: i64, of: Handle, status: *mut c_void) -> Status
        |_real| transfer(MpiFileReadAt, (file, Place::At(offset)), (count, of), status, |status| {
            real!(MPI_File_read_at_c(file: Handle, offset: Offset, buffer: *mut c_void, count: i64, of: Handle, status: *mut c_void) -> Status)
        });
    fn MPI_File_read_at_all(file: Handle, offset: Offset, buffer: *mut c_void, count: c_int, of: Handle, status: *mut c_void) -> Status
        |_real| transfer(MpiFileReadAtAll, (file, Place::At(offset)), (count.into(), of), status, |status| {
            real!(MPI_File_read_at_all(file: Handle, offset: Offset, buffer: *mut c_void, count: c_int, of: Handle, status: *mut c_void) -> Status)
        });
    fn MPI_File_read_at_all_c(file: Handle, offset: Offset, buffer: *mut c_void, count: i64, of: Handle, status: *mut c_void) -> Status
        |_real| transfer(MpiFileReadAtAll, (file, Place::At(offset)), (count, of), status, |status| {
            real!(MPI_File_read_at_all_c(file: Handle, offset: Offset, buffer: *mut c_void, count: i64, of: Handle, status: *mut c_void) -> Status)
        });
    fn MPI_File_read_shared(file: Handle, buffer: *mut c_void, count: c_int, of: Handle, status: *mut c_void) -> Status
        |_real| transfer(MpiFileReadShared, (file, Place::Shared), (count.into(), of), status, |status| {
            real!(MPI_File_read_shared(file: Handle, buffer: *mut c_void, count: c_int, of: Handle, status: *mut c_void) -> Status)
        });
    fn MPI_File_read_shared_c(file: Handle, buffer: *mut c_void, count: i64, of: Handle, status: *mut c_void) -> Status
        |_real| transfer(MpiFileReadShared, (file, Place::Shared), (count, of), status, |status| {
            real!(MPI_File_read_shared_c(file: Handle, buffer: *mut c_void, count: i64, of: Handle, status: *mut c_void) -> Status)
        });
    fn MPI_File_read_ordered(file: Handle, buffer: *mut c_void, count: c_int, of: Handle, status: *mut c_void) -> Status
        |_real| transfer(MpiFileReadOrdered, (file, Place::Shared), (count.into(), of), status, |status| {
            real!(MPI_File_read_ordered(file: Handle, buffer: *mut c_void, count: c_int, of: Handle, status: *mut c_void) -> Status)
        });
    fn MPI_File_read_ordered_c(file: Handle, buffer: *mut c_void, count: i64, of: Handle, status: *mut c_void) -> Status
        |_real| transfer(MpiFileReadOrdered, (file, Place::Shared), (count, of), status, |status| {
            real!(MPI_File_read_ordered_c(file: Handle, buffer: *mut c_void, count: i64, of: Handle, status: *mut c_void) -> Status)
        });
    fn MPI_File_write(file: Handle, buffer: *mut c_void, count: c_int, of: Handle, status: *mut c_void) -> Status
        |_real| transfer(MpiFileWrite, (file, Place::Own), (count.into(), of), status, |status| {
            real!(MPI_File_write(file: Handle, buffer: *mut c_void, count: c_int, of: Handle, status: *mut c_void) -> Status)
        });
    fn MPI_File_write_c(file: Handle, buffer: *mut c_void, count: i64, of: Handle, status: *mut c_void) -> Status
        |_real| transfer(MpiFileWrite, (file, Place::Own), (count, of), status, |status| {
            real!(MPI_File_write_c(file: Handle, buffer: *mut c_void, count: i64, of: Handle, status: *mut c_void) -> Status)
        });
    fn MPI_File_write_all(file: Handle, buffer: *mut c_void, count: c_int, of: Handle, status: *mut c_void) -> Status
        |_real| transfer(MpiFileWriteAll, (file, Place::Own), (count.into(), of), status, |status| {
            real!(MPI_File_write_all(file: Handle, buffer: *mut c_void, count: c_int, of: Handle, status: *mut c_void) -> Status)
        });
    fn MPI_File_write_all_c(file: Handle, buffer: *mut c_void, count: i64, of: Handle, status: *mut c_void) -> Status
        |_real| transfer(MpiFileWriteAll, (file, Place::Own), (count, of), status, |status| {
            real!(MPI_File_write_all_c(file: Handle, buffer: *mut c_void, count: i64, of: Handle, status: *mut c_void) -> Status)
        });
    fn MPI_File_write_at(file: Handle, offset: Offset, buffer: *mut c_void, count: c_int, of: Handle, status: *mut c_void) -> Status
        |_real| transfer(MpiFileWriteAt, (file, Place::At(offset)), (count.into(), of), status, |status| {
            real!(MPI_File_write_at(file: Handle, offset: Offset, buffer: *mut c_void, count: c_int, of: Handle, status: *mut c_void) -> Status)
        });
    fn MPI_File_write_at_c(file: Handle, offset: Offset, buffer: *mut c_void, count: i64, of: Handle, status: *mut c_void) -> Status
        |_real| transfer(MpiFileWriteAt, (file, Place::At(offset)), (count, of), status, |status| {
            real!(MPI_File_write_at_c(file: Handle, offset: Offset, buffer: *mut c_void, count: i64, of: Handle, status: *mut c_void) -> Status)
        });
    fn MPI_File_write_at_all(file: Handle, offset: Offset, buffer: *mut c_void, count: c_int, of: Handle, status: *mut c_void) -> Status
        |_real| transfer(MpiFileWriteAtAll, (file, Place::At(offset)), (count.into(), of), status, |status| {
            real!(MPI_File_write_at_all(file: Handle, offset: Offset, buffer: *mut c_void, count: c_int, of: Handle, status: *mut c_void) -> Status)
        });
    fn MPI_File_write_at_all_c(file: Handle, offset: Offset, buffer: *mut c_void, count: i64, of: Handle, status: *mut c_void) -> Status
        |_real| transfer(MpiFileWriteAtAll, (file, Place::At(offset)), (count, of), status, |status| {
            real!(MPI_File_write_at_all_c(file: Handle, offset: Offset, buffer: *mut c_void, count: i64, of: Handle, status: *mut c_void) -> Status)
        });
    fn MPI_File_write_shared(file: Handle, buffer: *mut c_void, count: c_int, of: Handle, status: *mut c_void) -> Status
        |_real| transfer(MpiFileWriteShared, (file, Place::Shared), (count.into(), of), status, |status| {
            real!(MPI_File_write_shared(file: Handle, buffer: *mut c_void, count: c_int, of: Handle, status: *mut c_void) -> Status)
        });
    fn MPI_File_write_shared_c(file: Handle, buffer: *mut c_void, count: i64, of: Handle, status: *mut c_void) -> Status
        |_real| transfer(MpiFileWriteShared, (file, Place::Shared), (count, of), status, |status| {
            real!(MPI_File_write_shared_c(file: Handle, buffer: *mut c_void, count: i64, of: Handle, status: *mut c_void) -> Status)
        });
    fn MPI_File_write_ordered(file: Handle, buffer: *mut c_void, count: c_int, of: Handle, status: *mut c_void) -> Status
        |_real| transfer(MpiFileWriteOrdered, (file, Place::Shared), (count.into(), of), status, |status| {
            real!(MPI_File_write_ordered(file: Handle, buffer: *mut c_void, count: c_int, of: Handle, status: *mut c_void) -> Status)
        });
    fn MPI_File_write_ordered_c(file: Handle, buffer: *mut c_void, count: i64, of: Handle, status: *mut c_void) -> Status
        |_real| transfer(MpiFileWriteOrdered, (file, Place::Shared), (count, of), status, |status| {
            real!(MPI_File_write_ordered_c(file: Handle, buffer: *mut c_void, count: i64, of: Handle, status: *mut c_void) -> Status)
        });
    fn MPI_File_iread(file: Handle, buffer: *mut c_void, count: c_int, of: Handle, request: *mut Handle) -> Status
        |real| request_of(MpiFileIread, (file, Place::Own), (count.into(), of), real);
    fn MPI_File_iread_c(file: Handle, buffer: *mut c_void, count: i64, of: Handle, request: *mut Handle) -> Status
        |real| request_of(MpiFileIread, (file, Place::Own), (count, of), real);
    fn MPI_File_iread_all(file: Handle, buffer: *mut c_void, count: c_int, of: Handle, request: *mut Handle) -> Status
        |real| request_of(MpiFileIreadAll, (file, Place::Own), (count.into(), of), real);
    fn MPI_File_iread_all_c(file: Handle, buffer: *mut c_void, count: i64, of: Handle, request: *mut Handle) -> Status
        |real| request_of(MpiFileIreadAll, (file, Place::Own), (count, of), real);
    fn MPI_File_iread_at(file: Handle, offset: Offset, buffer: *mut c_void, count: c_int, of: Handle, request: *mut Handle) -> Status
        |real| request_of(MpiFileIreadAt, (file, Place::At(offset)), (count.into(), of), real);
    fn MPI_File_iread_at_c(file: Handle, offset: Offset, buffer: *mut c_void, count: i64, of: Handle, request: *mut Handle) -> Status
        |real| request_of(MpiFileIreadAt, (file, Place::At(offset)), (count, of), real);
    fn MPI_File_iread_at_all(file: Handle, offset: Offset, buffer: *mut c_void, count: c_int, of: Handle, request: *mut Handle) -> Status
        |real| request_of(MpiFileIreadAtAll, (file, Place::At(offset)), (count.into(), of), real);
    fn MPI_File_iread_at_all_c(file: Handle, offset: Offset, buffer: *mut c_void, count: i64, of: Handle, request: *mut Handle) -> Status
        |real| request_of(MpiFileIreadAtAll, (file, Place::At(offset)), (count, of), real);
    fn MPI_File_iread_shared(file: Handle, buffer: *mut c_void, count: c_int, of: Handle, request: *mut Handle) -> Status
        |real| request_of(MpiFileIreadShared, (file, Place::Shared), (count.into(), of), real);
    fn MPI_File_iread_shared_c(file: Handle, buffer: *mut c_void, count: i64, of: Handle, request: *mut Handle) -> Status
        |real| request_of(MpiFileIreadShared, (file, Place::Shared), (count, of), real);
    fn MPI_File_iwrite(file: Handle, buffer: *mut c_void, count: c_int, of: Handle, request: *mut Handle) -> Status
        |real| request_of(MpiFileIwrite, (file, Place::Own), (count.into(), of), real);
    fn MPI_File_iwrite_c(file: Handle, buffer: *mut c_void, count: i64, of: Handle, request: *mut Handle) -> Status
        |real| request_of(MpiFileIwrite, (file, Place::Own), (count, of), real);
    fn MPI_File_iwrite_all(file: Handle, buffer: *mut c_void, count: c_int, of: Handle, request: *mut Handle) -> Status
        |real| request_of(MpiFileIwriteAll, (file, Place::Own), (count.into(), of), real);
    fn MPI_File_iwrite_all_c(file: Handle, buffer: *mut c_void, count: i64, of: Handle, request: *mut Handle) -> Status
        |real| request_of(MpiFileIwriteAll, (file, Place::Own), (count, of), real);
    fn MPI_File_iwrite_at(file: Handle, offset: Offset, buffer: *mut c_void, count: c_int, of: Handle, request: *mut Handle) -> Status
        |real| request_of(MpiFileIwriteAt, (file, Place::At(offset)), (count.into(), of), real);
    fn MPI_File_iwrite_at_c(file: Handle, offset: Offset, buffer: *mut c_void, count: i64, of: Handle, request: *mut Handle) -> Status
        |real| request_of(MpiFileIwriteAt, (file, Place::At(offset)), (count, of), real);
    fn MPI_File_iwrite_at_all(file: Handle, offset: Offset, buffer: *mut c_void, count: c_int, of: Handle, request: *mut Handle) -> Status
        |real| request_of(MpiFileIwriteAtAll, (file, Place::At(offset)), (count.into(), of), real);
    fn MPI_File_iwrite_at_all_c(file: Handle, offset: Offset, buffer: *mut c_void, count: i64, of: Handle, request: *mut Handle) -> Status
        |real| request_of(MpiFileIwriteAtAll, (file, Place::At(offset)), (count, of), real);
    fn MPI_File_iwrite_shared(file: Handle, buffer: *mut c_void, count: c_int, of: Handle, request: *mut Handle) -> Status
        |real| request_of(MpiFileIwriteShared, (file, Place::Shared), (count.into(), of), real);
    fn MPI_File_iwrite_shared_c(file: Handle, buffer: *mut c_void, count: i64, of: Handle, request: *mut Handle) -> Status
        |real| request_of(MpiFileIwriteShared, (file, Place::Shared), (count, of), real);
}

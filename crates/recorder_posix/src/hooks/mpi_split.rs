//! Collectives of MPI in two parts: the first one says what is asked for, the second one what was moved.

#![allow(non_snake_case, reason = "the names are those of the library")]

use super::mpi::{Asked, Handle, Offset, Place, Status, bytes_of, moved, open_file, place_of, told};
use crate::real::{bound_hooks, real};
use crate::recorded::{Call, Returned, timed};
use crate::start::Inside;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use stepscope_recorder::ForkLock;
use stepscope_recorder::IoFunction::{
    self, MpiFileReadAllBegin, MpiFileReadAllEnd, MpiFileReadAtAllBegin, MpiFileReadAtAllEnd, MpiFileReadOrderedBegin,
    MpiFileReadOrderedEnd, MpiFileWriteAllBegin, MpiFileWriteAllEnd, MpiFileWriteAtAllBegin, MpiFileWriteAtAllEnd,
    MpiFileWriteOrderedBegin, MpiFileWriteOrderedEnd,
};

/// What those that have begun ask for, by the handle of their file, which has one at a time. The type is a copy: the program
/// may give up its own before the end.
static BEGUN: ForkLock<BTreeMap<Handle, Asked>> = ForkLock::new(BTreeMap::new());

fn copy_of_type(of: Handle, copy: *mut Handle) -> Status {
    real!(MPI_Type_dup(of: Handle, copy: *mut Handle) -> Status)
}

fn free_type(of: *mut Handle) -> Status {
    real!(MPI_Type_free(of: *mut Handle) -> Status)
}

/// The first part.
fn begin(
    function: IoFunction,
    (handle, place): (Handle, Place),
    (count, of): (i64, Handle),
    real: impl FnOnce() -> Status,
) -> Status {
    let Some(file) = open_file(handle) else { return real() };
    let (asked, offset) = (bytes_of(count, of), place_of(handle, place));
    timed(real, |returned| {
        if !returned.is_failed()
            && let Some(of) = told(|copy| copy_of_type(of, copy))
            && let Some(_inside) = Inside::enter()
        {
            BEGUN.lock().insert(handle, Asked { of, asked, offset });
        }
        Call { asked, offset, ..Call::on(function, Some(file)) }
    })
}

/// Its second part.
fn end(function: IoFunction, handle: Handle, status: *mut c_void, real: impl FnOnce(*mut c_void) -> Status) -> Status {
    let Some(file) = open_file(handle) else { return real(status) };
    let begun = Inside::enter().and_then(|_inside| BEGUN.lock().remove(&handle));
    // It began before anything was recorded.
    let Some(mut begun) = begun else {
        return timed(|| real(status), |_| Call::on(function, Some(file)));
    };
    let returned = moved(function, file, begun, status, real);
    free_type(&raw mut begun.of);
    returned
}

bound_hooks! {
    fn MPI_File_read_all_begin(file: Handle, buffer: *mut c_void, count: c_int, of: Handle) -> Status
        |real| begin(MpiFileReadAllBegin, (file, Place::Own), (count.into(), of), real);
    fn MPI_File_read_all_begin_c(file: Handle, buffer: *mut c_void, count: i64, of: Handle) -> Status
        |real| begin(MpiFileReadAllBegin, (file, Place::Own), (count, of), real);
    fn MPI_File_read_all_end(file: Handle, buffer: *mut c_void, status: *mut c_void) -> Status
        |_real| end(MpiFileReadAllEnd, file, status, |status| {
            real!(MPI_File_read_all_end(file: Handle, buffer: *mut c_void, status: *mut c_void) -> Status)
        });
    fn MPI_File_read_at_all_begin(file: Handle, offset: Offset, buffer: *mut c_void, count: c_int, of: Handle) -> Status
        |real| begin(MpiFileReadAtAllBegin, (file, Place::At(offset)), (count.into(), of), real);
    fn MPI_File_read_at_all_begin_c(file: Handle, offset: Offset, buffer: *mut c_void, count: i64, of: Handle) -> Status
        |real| begin(MpiFileReadAtAllBegin, (file, Place::At(offset)), (count, of), real);
    fn MPI_File_read_at_all_end(file: Handle, buffer: *mut c_void, status: *mut c_void) -> Status
        |_real| end(MpiFileReadAtAllEnd, file, status, |status| {
            real!(MPI_File_read_at_all_end(file: Handle, buffer: *mut c_void, status: *mut c_void) -> Status)
        });
    fn MPI_File_read_ordered_begin(file: Handle, buffer: *mut c_void, count: c_int, of: Handle) -> Status
        |real| begin(MpiFileReadOrderedBegin, (file, Place::Shared), (count.into(), of), real);
    fn MPI_File_read_ordered_begin_c(file: Handle, buffer: *mut c_void, count: i64, of: Handle) -> Status
        |real| begin(MpiFileReadOrderedBegin, (file, Place::Shared), (count, of), real);
    fn MPI_File_read_ordered_end(file: Handle, buffer: *mut c_void, status: *mut c_void) -> Status
        |_real| end(MpiFileReadOrderedEnd, file, status, |status| {
            real!(MPI_File_read_ordered_end(file: Handle, buffer: *mut c_void, status: *mut c_void) -> Status)
        });
    fn MPI_File_write_all_begin(file: Handle, buffer: *mut c_void, count: c_int, of: Handle) -> Status
        |real| begin(MpiFileWriteAllBegin, (file, Place::Own), (count.into(), of), real);
    fn MPI_File_write_all_begin_c(file: Handle, buffer: *mut c_void, count: i64, of: Handle) -> Status
        |real| begin(MpiFileWriteAllBegin, (file, Place::Own), (count, of), real);
    fn MPI_File_write_all_end(file: Handle, buffer: *mut c_void, status: *mut c_void) -> Status
        |_real| end(MpiFileWriteAllEnd, file, status, |status| {
            real!(MPI_File_write_all_end(file: Handle, buffer: *mut c_void, status: *mut c_void) -> Status)
        });
    fn MPI_File_write_at_all_begin(file: Handle, offset: Offset, buffer: *mut c_void, count: c_int, of: Handle) -> Status
        |real| begin(MpiFileWriteAtAllBegin, (file, Place::At(offset)), (count.into(), of), real);
    fn MPI_File_write_at_all_begin_c(file: Handle, offset: Offset, buffer: *mut c_void, count: i64, of: Handle) -> Status
        |real| begin(MpiFileWriteAtAllBegin, (file, Place::At(offset)), (count, of), real);
    fn MPI_File_write_at_all_end(file: Handle, buffer: *mut c_void, status: *mut c_void) -> Status
        |_real| end(MpiFileWriteAtAllEnd, file, status, |status| {
            real!(MPI_File_write_at_all_end(file: Handle, buffer: *mut c_void, status: *mut c_void) -> Status)
        });
    fn MPI_File_write_ordered_begin(file: Handle, buffer: *mut c_void, count: c_int, of: Handle) -> Status
        |real| begin(MpiFileWriteOrderedBegin, (file, Place::Shared), (count.into(), of), real);
    fn MPI_File_write_ordered_begin_c(file: Handle, buffer: *mut c_void, count: i64, of: Handle) -> Status
        |real| begin(MpiFileWriteOrderedBegin, (file, Place::Shared), (count, of), real);
    fn MPI_File_write_ordered_end(file: Handle, buffer: *mut c_void, status: *mut c_void) -> Status
        |_real| end(MpiFileWriteOrderedEnd, file, status, |status| {
            real!(MPI_File_write_ordered_end(file: Handle, buffer: *mut c_void, status: *mut c_void) -> Status)
        });
}

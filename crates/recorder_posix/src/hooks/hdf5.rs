//! Data sets and attributes of HDF5 files, where the program has loaded the library.
//!
//! What a call is about is asked before it is made: the library forgets why a call failed when it is asked something else.
//! Bytes are those of the program's memory, before compression and conversion: those of the file are moved by calls of the
//! C library below.

#![allow(non_snake_case, reason = "the names are those of the library")]

use crate::descriptors::PATH;
use crate::files::{File, file};
use crate::paths::{absolute, is_watched};
use crate::real::{bound_hooks, real};
use crate::recorded::{Call, Returned, errno, on_path, own_errors, set_errno, timed};
use crate::start::{Inside, is_on};
use libc::AT_FDCWD;
use std::ffi::{c_char, c_int, c_uint, c_void};
use stepscope_recorder::IoFunction::{self, H5Dcreate, H5Dopen, H5DreadChunk, H5DwriteChunk};

own_errors!(Status(c_int), -1, |status| status < 0);
own_errors!(Id(i64), -1, |id| id < 0);

/// Selects all of a data set.
const ALL: Id = Id(0);

// What the library tells.

fn is_valid(id: Id) -> bool {
    fn is_valid(id: Id) -> c_int {
        real!(H5Iis_valid(id: Id) -> c_int)
    }
    is_valid(id) > 0
}

fn file_name(object: Id, to: *mut c_char, room: usize) -> isize {
    real!(H5Fget_name(object: Id, to: *mut c_char, room: usize) -> isize)
}

fn space_of_set(set: Id) -> Id {
    real!(H5Dget_space(set: Id) -> Id)
}

fn space_of_attribute(attribute: Id) -> Id {
    real!(H5Aget_space(attribute: Id) -> Id)
}

fn close_space(space: Id) -> c_int {
    real!(H5Sclose(space: Id) -> c_int)
}

fn selected(space: Id) -> isize {
    real!(H5Sget_select_npoints(space: Id) -> isize)
}

fn size_of_type(of: Id) -> usize {
    real!(H5Tget_size(of: Id) -> usize)
}

fn stored_bytes(set: Id, chunk: *const u64, bytes: *mut u64) -> c_int {
    real!(H5Dget_chunk_storage_size(set: Id, chunk: *const u64, bytes: *mut u64) -> c_int)
}

/// The file that an object lies in, when it is watched.
fn file_of(object: Id) -> Option<&'static File> {
    let mut name = [0_u8; PATH];
    let len = file_name(object, name.as_mut_ptr().cast(), name.len());
    usize::try_from(len).ok().filter(|len| (1..name.len()).contains(len))?;
    // SAFETY: the name is terminated: there was room for it.
    unsafe { absolute(AT_FDCWD, name.as_ptr().cast(), |path| if is_watched(path) { file(path) } else { None }) }
}

/// The elements of a space that was made for this question.
fn elements_of(space: Id) -> Option<u64> {
    if space.is_failed() {
        return None;
    }
    let elements = u64::try_from(selected(space)).ok();
    close_space(space);
    elements
}

/// How many elements a call on a data set moves: as many as are selected of the program's memory.
fn elements(set: Id, memory: Id, place: Id) -> Option<u64> {
    match [memory, place].into_iter().find(|space| *space != ALL) {
        Some(space) => is_valid(space).then(|| selected(space)).and_then(|count| u64::try_from(count).ok()),
        None => elements_of(space_of_set(set)),
    }
}

fn bytes(elements: Option<u64>, memory_type: Id) -> u64 {
    let size = elements.filter(|_| is_valid(memory_type)).map(|_| size_of_type(memory_type) as u64);
    elements.zip(size).map_or(0, |(elements, size)| elements.saturating_mul(size))
}

/// A call on an object, of which `bytes` says how many the call moves when it does not fail.
fn on_object(function: IoFunction, object: Id, bytes: impl FnOnce() -> u64, real: impl FnOnce() -> Status) -> Status {
    let Some((file, bytes)) = about(object, bytes) else { return real() };
    timed(real, |returned| Call {
        bytes: if returned.is_failed() { 0 } else { bytes },
        ..Call::on(function, Some(file))
    })
}

/// Opens or makes an object in the file of another one.
fn open_object(function: IoFunction, place: Id, real: impl FnOnce() -> Id) -> Id {
    let Some((file, _)) = about(place, || 0) else { return real() };
    timed(real, |_| Call::on(function, Some(file)))
}

/// The file of an object, when it is watched, and how many bytes a call moves.
fn about(object: Id, bytes: impl FnOnce() -> u64) -> Option<(&'static File, u64)> {
    if !is_on() {
        return None;
    }
    let _inside = Inside::enter()?;
    let reason = errno();
    // Of what is none the library may print a complaint.
    let file = if is_valid(object) { file_of(object) } else { None };
    let about = file.map(|file| (file, bytes()));
    set_errno(reason);
    about
}

bound_hooks! {
    fn H5Fopen(path: *const c_char, flags: c_uint, access: Id) -> Id |real| on_path(IoFunction::H5Fopen, (AT_FDCWD, path), real);
    fn H5Fcreate(path: *const c_char, flags: c_uint, creation: Id, access: Id) -> Id
        |real| on_path(IoFunction::H5Fcreate, (AT_FDCWD, path), real);
    fn H5Fclose(file: Id) -> Status |real| on_object(IoFunction::H5Fclose, file, || 0, real);
    fn H5Fflush(object: Id, scope: c_int) -> Status |real| on_object(IoFunction::H5Fflush, object, || 0, real);
    fn H5Dopen2(place: Id, name: *const c_char, access: Id) -> Id |real| open_object(H5Dopen, place, real);
    fn H5Dcreate2(place: Id, name: *const c_char, of: Id, space: Id, links: Id, creation: Id, access: Id) -> Id
        |real| open_object(H5Dcreate, place, real);
    fn H5Dclose(set: Id) -> Status |real| on_object(IoFunction::H5Dclose, set, || 0, real);
    fn H5Dread(set: Id, memory_type: Id, memory: Id, place: Id, transfer: Id, to: *mut c_void) -> Status
        |real| on_object(IoFunction::H5Dread, set, || bytes(elements(set, memory, place), memory_type), real);
    fn H5Dwrite(set: Id, memory_type: Id, memory: Id, place: Id, transfer: Id, from: *const c_void) -> Status
        |real| on_object(IoFunction::H5Dwrite, set, || bytes(elements(set, memory, place), memory_type), real);
    // Of these there are some with one argument less.
    fn H5Dread_chunk(set: Id, transfer: Id, chunk: *const u64, filters: *mut u32, to: *mut c_void, room: usize) -> Status
        |real| on_object(H5DreadChunk, set, || stored(set, chunk), real);
    fn H5Dread_chunk1(set: Id, transfer: Id, chunk: *const u64, filters: *mut u32, to: *mut c_void) -> Status
        |real| on_object(H5DreadChunk, set, || stored(set, chunk), real);
    fn H5Dread_chunk2(set: Id, transfer: Id, chunk: *const u64, filters: *mut u32, to: *mut c_void, room: usize) -> Status
        |real| on_object(H5DreadChunk, set, || stored(set, chunk), real);
    fn H5Dwrite_chunk(set: Id, transfer: Id, filters: u32, chunk: *const u64, len: usize, from: *const c_void) -> Status
        |real| on_object(H5DwriteChunk, set, || len as u64, real);
    fn H5Aread(attribute: Id, memory_type: Id, to: *mut c_void) -> Status
        |real| on_object(IoFunction::H5Aread, attribute, || bytes(elements_of(space_of_attribute(attribute)), memory_type), real);
    fn H5Awrite(attribute: Id, memory_type: Id, from: *const c_void) -> Status
        |real| on_object(IoFunction::H5Awrite, attribute, || bytes(elements_of(space_of_attribute(attribute)), memory_type), real);
}

/// The bytes of a chunk as the file has it.
fn stored(set: Id, chunk: *const u64) -> u64 {
    let mut bytes = 0;
    if chunk.is_null() || stored_bytes(set, chunk, &raw mut bytes) < 0 { 0 } else { bytes }
}

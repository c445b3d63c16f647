//! Text is formatted into a stream or a descriptor: functions that take any number of arguments.
//!
//! Rust cannot define those. What the compiler of C puts at their beginning is here by hand: the arguments that came in
//! registers are written down, and a list of them and of those on the stack is passed on to the function that takes a
//! list.

use super::streams;
use crate::imports::Hook;
use crate::real::{hooks, real};
use crate::recorded::transfer;
use libc::FILE;
use std::arch::naked_asm;
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use stepscope_recorder::IoFunction::Dprintf;

unsafe extern "C" fn formatted(stream: *mut FILE, format: *const c_char, arguments: *mut c_void) -> c_int {
    let real = || real!(vfprintf(stream: *mut FILE, format: *const c_char, arguments: *mut c_void) -> c_int);
    streams::formatted(stream, real)
}

unsafe extern "C" fn formatted_checked(
    stream: *mut FILE,
    flag: c_int,
    format: *const c_char,
    arguments: *mut c_void,
) -> c_int {
    let real = || real!(__vfprintf_chk(stream: *mut FILE, flag: c_int, format: *const c_char, arguments: *mut c_void) -> c_int);
    streams::formatted(stream, real)
}

/// Text is formatted into a descriptor; all of it is asked for.
fn into_descriptor(descriptor: c_int, real: impl FnOnce() -> c_int) -> c_int {
    let written = Cell::new(0);
    let real = || {
        written.set(real());
        written.get() as isize
    };
    transfer(Dprintf, descriptor, || usize::try_from(written.get()).unwrap_or(0), None, real) as c_int
}

unsafe extern "C" fn formatted_into_descriptor(
    descriptor: c_int,
    format: *const c_char,
    arguments: *mut c_void,
) -> c_int {
    let real = || real!(vdprintf(descriptor: c_int, format: *const c_char, arguments: *mut c_void) -> c_int);
    into_descriptor(descriptor, real)
}

unsafe extern "C" fn formatted_into_descriptor_checked(
    descriptor: c_int,
    flag: c_int,
    format: *const c_char,
    arguments: *mut c_void,
) -> c_int {
    let real = || real!(__vdprintf_chk(descriptor: c_int, flag: c_int, format: *const c_char, arguments: *mut c_void) -> c_int);
    into_descriptor(descriptor, real)
}

hooks! {
    fn vdprintf(descriptor: c_int, format: *const c_char, arguments: *mut c_void) -> c_int
        |real| into_descriptor(descriptor, real);
    fn __vdprintf_chk(descriptor: c_int, flag: c_int, format: *const c_char, arguments: *mut c_void) -> c_int
        |real| into_descriptor(descriptor, real);
    fn vfprintf(stream: *mut FILE, format: *const c_char, arguments: *mut c_void) -> c_int
        |real| streams::formatted(stream, real);
    fn __vfprintf_chk(stream: *mut FILE, flag: c_int, format: *const c_char, arguments: *mut c_void) -> c_int
        |real| streams::formatted(stream, real);
}

/// Defines a function with arguments behind those that are named, `$named` bytes of registers. It calls `$takes_list`
/// with a list of them in the register `$list`.
macro_rules! variadic {
    ($name:ident, $named:literal, $list:literal, $takes_list:ident) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            // The list, 24 bytes: how far into the registers the next integer lies, and the next floating-point number;
            // where arguments are on the stack; where the registers are, 32 bytes from here.
            naked_asm!(
                ".cfi_startproc",
                "push rbp",
                ".cfi_def_cfa_offset 16",
                ".cfi_offset rbp, -16",
                "mov rbp, rsp",
                ".cfi_def_cfa_register rbp",
                "sub rsp, 208",
                "mov [rsp + 32], rdi",
                "mov [rsp + 40], rsi",
                "mov [rsp + 48], rdx",
                "mov [rsp + 56], rcx",
                "mov [rsp + 64], r8",
                "mov [rsp + 72], r9",
                // How many of the others are used.
                "test al, al",
                "je 2f",
                "movaps [rsp + 80], xmm0",
                "movaps [rsp + 96], xmm1",
                "movaps [rsp + 112], xmm2",
                "movaps [rsp + 128], xmm3",
                "movaps [rsp + 144], xmm4",
                "movaps [rsp + 160], xmm5",
                "movaps [rsp + 176], xmm6",
                "movaps [rsp + 192], xmm7",
                "2:",
                concat!("mov dword ptr [rsp], ", $named),
                "mov dword ptr [rsp + 4], 48",
                "lea rax, [rbp + 16]",
                "mov [rsp + 8], rax",
                "lea rax, [rsp + 32]",
                "mov [rsp + 16], rax",
                concat!("mov ", $list, ", rsp"),
                "call {takes_list}",
                "leave",
                ".cfi_def_cfa rsp, 8",
                "ret",
                ".cfi_endproc",
                takes_list = sym $takes_list,
            )
        }
    };
}

variadic!(fprintf, 16, "rdx", formatted);
variadic!(__fprintf_chk, 24, "rcx", formatted_checked);
variadic!(dprintf, 16, "rdx", formatted_into_descriptor);
variadic!(__dprintf_chk, 24, "rcx", formatted_into_descriptor_checked);

/// Has the system find functions by their names, and lists them.
macro_rules! exported {
    ($($name:ident)*) => {
        /// By their names.
        #[cfg(not(test))]
        mod exported_variadic {
            use std::arch::naked_asm;

            $(#[unsafe(no_mangle)]
            #[unsafe(naked)]
            unsafe extern "C" fn $name() {
                naked_asm!("jmp {function}", function = sym super::$name)
            })*
        }

        /// All of them.
        pub(super) static VARIADIC: &[Hook] = &[$(Hook::new(
            match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            },
            $name as *const c_void,
        ),)*];
    };
}

exported!(fprintf __fprintf_chk dprintf __dprintf_chk);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_all_kinds_arrive() {
        type Function = unsafe extern "C" fn(*mut FILE, *const c_char, ...) -> c_int;
        // SAFETY: it is written as a function of this type.
        let function = unsafe { std::mem::transmute::<unsafe extern "C" fn(), Function>(fprintf) };
        let mut text = [0_u8; 256];
        // SAFETY: the buffer outlives the stream, and is terminated when that is closed.
        unsafe {
            let stream = libc::fmemopen(text.as_mut_ptr().cast(), text.len(), c"w".as_ptr());
            let format = c"%d %s %.2f %ld %d %d %d %.1f %.1f %.1f %.1f %.1f %.1f %.1f %.1f %d";
            let written = function(
                stream,
                format.as_ptr(),
                1,
                c"two".as_ptr(),
                3.25,
                4_i64 << 40,
                5,
                6,
                7,
                8.5,
                9.5,
                10.5,
                11.5,
                12.5,
                13.5,
                14.5,
                15.5,
                16,
            );
            libc::fclose(stream);
            let text = CStr::from_ptr(text.as_ptr().cast()).to_str().unwrap();
            let expected = "1 two 3.25 4398046511104 5 6 7 8.5 9.5 10.5 11.5 12.5 13.5 14.5 15.5 16";
            assert_eq!((text, written as usize), (expected, expected.len()));
        }
    }
}

//! Memory for long lists: the system clears each page before a process sees it, and large pages in a quarter of the
//! time.

/// Shorter lists are not worth the call.
const LEAST_BYTES: usize = 4 << 20;

/// Asks for large pages behind the room that a list has and has not used yet.
pub fn prefer_large_pages<T>(list: &mut Vec<T>) {
    let room = list.spare_capacity_mut();
    if size_of_val(room) >= LEAST_BYTES {
        advise(room.as_mut_ptr().cast(), size_of_val(room));
    }
}

/// Asks for large pages where they fit. It is a wish: where it is not granted nothing is lost.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn advise(room: *mut u8, len: usize) {
    const PAGE_BYTES: usize = 2 << 20;
    let skipped = room.align_offset(PAGE_BYTES);
    let len = len.saturating_sub(skipped) / PAGE_BYTES * PAGE_BYTES;
    if len > 0 {
        // SAFETY: the range lies within memory of this process, and the call changes nothing that is in it.
        unsafe { libc::madvise(room.wrapping_add(skipped).cast(), len, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn advise(_: *mut u8, _: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_any_length_can_be_filled() {
        for len in [0, 1, LEAST_BYTES - 1, LEAST_BYTES, 3 * LEAST_BYTES + 7] {
            let mut list: Vec<u8> = Vec::with_capacity(len);
            prefer_large_pages(&mut list);
            list.resize(len, 7);
            assert!(list.iter().all(|byte| *byte == 7));
        }
    }
}

//! What a range says of the collective that it is.

use super::with_buffer;
use crate::clock::ticks;
use crate::names::Name;
use crate::session::count_dropped;
use stepscope_capture::layout::Tag;

/// Says of the range that the calling thread began last that it is a collective; `description` as
/// [`stepscope_capture::collectives`] writes it. Equal descriptions are stored once.
pub fn describe_collective(description: &str, sequence_number: Option<i64>) {
    let number_and_one = sequence_number.map_or(0, |number| number.wrapping_add(1).max(0) as u64);
    let name = Name::text(description);
    with_buffer(|buffer| {
        // SAFETY: the text lives during this call.
        let id = unsafe { buffer.name_id(name) };
        let epoch = buffer.epoch;
        match id {
            Some(id) if !buffer.reserve(super::LONGEST_FIXED) || buffer.epoch != epoch => {
                // The id belongs to the capture before, like the range.
                let _ = id;
                count_dropped();
            }
            Some(id) => buffer.write(ticks(), Tag::Collective, &[u64::from(id), number_and_one], &[]),
            None => {
                let text = super::truncated(description.as_bytes());
                buffer.append(ticks(), Tag::CollectiveText, &[text.len() as u64, number_and_one], text);
            }
        }
    });
}

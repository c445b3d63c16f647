//! A file of events that TensorBoard reads: numbers as scalars, and a text.
//!
//! Records as TensorFlow writes them: a length, its checksum, an `Event` of `event.proto`, its checksum.

use crate::protobuf::Message;

/// Numbers of `event.proto` and `summary.proto`.
mod field {
    pub(super) const WALL_TIME: u32 = 1;
    pub(super) const FILE_VERSION: u32 = 3;
    pub(super) const SUMMARY: u32 = 5;
    pub(super) const SUMMARY_VALUE: u32 = 1;
    pub(super) const TAG: u32 = 1;
    pub(super) const SIMPLE_VALUE: u32 = 2;
    pub(super) const TENSOR: u32 = 8;
    pub(super) const METADATA: u32 = 9;
    pub(super) const PLUGIN_DATA: u32 = 1;
    pub(super) const PLUGIN_NAME: u32 = 1;
    pub(super) const DTYPE: u32 = 1;
    pub(super) const SHAPE: u32 = 2;
    pub(super) const DIM: u32 = 2;
    pub(super) const SIZE: u32 = 1;
    pub(super) const STRING_VAL: u32 = 8;
}
const DT_STRING: u64 = 7;

/// The content of such a file, at step 0 and a Unix time: each number as a scalar below `group`, and a text in Markdown.
pub fn tensorboard_events(group: &str, numbers: &[(String, f64)], markdown: &str, unix_s: f64) -> Vec<u8> {
    let mut version = event(unix_s);
    version.text(field::FILE_VERSION, "brain.Event:2");
    let mut file = record(&version);
    let values = numbers.iter().map(|(name, value)| {
        let mut scalar = Message::default();
        scalar.text(field::TAG, &format!("{group}/{name}"));
        scalar.float(field::SIMPLE_VALUE, *value as f32);
        scalar
    });
    for value in values.chain([text(&format!("{group}/report"), markdown)]) {
        let (mut summary, mut event) = (Message::default(), event(unix_s));
        summary.message(field::SUMMARY_VALUE, &value);
        event.message(field::SUMMARY, &summary);
        file.extend(record(&event));
    }
    file
}

fn event(unix_s: f64) -> Message {
    let mut event = Message::default();
    event.double(field::WALL_TIME, unix_s);
    event
}

fn text(tag: &str, markdown: &str) -> Message {
    let [mut plugin, mut metadata, mut size, mut shape, mut tensor, mut value] =
        std::array::from_fn(|_| Message::default());
    plugin.text(field::PLUGIN_NAME, "text");
    metadata.message(field::PLUGIN_DATA, &plugin);
    size.number(field::SIZE, 1);
    shape.message(field::DIM, &size);
    tensor.number(field::DTYPE, DT_STRING);
    tensor.message(field::SHAPE, &shape);
    tensor.text(field::STRING_VAL, markdown);
    value.text(field::TAG, tag);
    value.message(field::TENSOR, &tensor);
    value.message(field::METADATA, &metadata);
    value
}

fn record(event: &Message) -> Vec<u8> {
    let masked = |bytes: &[u8]| crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes();
    let len = (event.len() as u64).to_le_bytes();
    [&len[..], &masked(&len), event.bytes(), &masked(event.bytes())].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_framed_as_tensorflow_does() {
        // The first record that PyTorch's SummaryWriter writes at the time 0.
        let mut version = event(0.0);
        version.text(field::FILE_VERSION, "brain.Event:2");
        let bytes = record(&version);
        assert_eq!(bytes[..8], 24_u64.to_le_bytes());
        assert_eq!(bytes.len(), 8 + 4 + 24 + 4);
        assert_eq!(bytes[8..12], [0xa3, 0x7f, 0x4b, 0x22]);
    }
}

//! The wire form of protobuf, writing only: https://protobuf.dev/programming-guides/encoding/

const VARINT: u32 = 0;
const FIXED_64: u32 = 1;
const LENGTH: u32 = 2;
const FIXED_32: u32 = 5;

/// A message under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }

    /// A `uint64`, `bool` or enumeration.
    pub(crate) fn number(&mut self, field: u32, value: u64) {
        self.tag(field, VARINT);
        self.varint(value);
    }

    /// An `int64` or `int32`: negative ones take ten bytes.
    pub(crate) fn int(&mut self, field: u32, value: i64) {
        self.number(field, value as u64);
    }

    /// A `fixed64`.
    pub(crate) fn fixed(&mut self, field: u32, value: u64) {
        self.tag(field, FIXED_64);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// A `double`.
    pub(crate) fn double(&mut self, field: u32, value: f64) {
        self.fixed(field, value.to_bits());
    }

    /// A `float`.
    pub(crate) fn float(&mut self, field: u32, value: f32) {
        self.tag(field, FIXED_32);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// A `string`.
    pub(crate) fn text(&mut self, field: u32, value: &str) {
        self.data(field, value.as_bytes());
    }

    /// A message inside this one.
    pub(crate) fn message(&mut self, field: u32, message: &Message) {
        self.data(field, &message.bytes);
    }

    fn data(&mut self, field: u32, data: &[u8]) {
        self.tag(field, LENGTH);
        self.varint(data.len() as u64);
        self.bytes.extend_from_slice(data);
    }

    fn tag(&mut self, field: u32, wire_type: u32) {
        self.varint(u64::from(field << 3 | wire_type));
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_encoding_guide() {
        let mut message = Message::default();
        message.number(1, 150);
        message.text(2, "testing");
        assert_eq!(message.bytes(), b"\x08\x96\x01\x12\x07testing");
        let mut outer = Message::default();
        let mut inner = Message::default();
        inner.number(1, 150);
        outer.message(3, &inner);
        assert_eq!(outer.bytes(), b"\x1a\x03\x08\x96\x01");
        outer.clear();
        outer.int(1, -2);
        assert_eq!(outer.bytes(), b"\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01");
        outer.clear();
        outer.fixed(47, 1);
        assert_eq!(outer.bytes(), b"\xf9\x02\x01\0\0\0\0\0\0\0");
    }
}

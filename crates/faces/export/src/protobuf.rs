//! Messages in protobuf's wire format (<https://protobuf.dev/programming-guides/encoding/>): as much as is written here.

/// A message that grows. Fields that hold the default (0, nothing) are left to the caller to leave out.
#[derive(Debug, Default)]
pub(crate) struct Message {
    bytes: Vec<u8>,
}

/// Wire types.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH: u32 = 2;

impl Message {
    /// What was written.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Empties it, keeping its memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn tag(&mut self, field: u32, wire: u32) {
        self.varint(u64::from(field << 3 | wire));
    }

    /// A `uint64`, `uint32`, `bool` or `enum`.
    pub fn uint(&mut self, field: u32, value: u64) {
        self.tag(field, VARINT);
        self.varint(value);
    }

    /// An `int64` or `int32`: negative numbers take ten bytes.
    pub fn int(&mut self, field: u32, value: i64) {
        self.uint(field, value as u64);
    }

    /// A `double`.
    pub fn double(&mut self, field: u32, value: f64) {
        self.tag(field, FIXED64);
        self.bytes.extend(value.to_le_bytes());
    }

    /// A `string`.
    pub fn text(&mut self, field: u32, text: &str) {
        self.tag(field, LENGTH);
        self.varint(text.len() as u64);
        self.bytes.extend(text.as_bytes());
    }

    /// A message inside of this one.
    pub fn message(&mut self, field: u32, write: impl FnOnce(&mut Message)) {
        self.tag(field, LENGTH);
        let start = self.bytes.len();
        write(self);
        self.close(start);
    }

    /// A message that was written already.
    pub fn nested(&mut self, field: u32, message: &Message) {
        self.tag(field, LENGTH);
        self.varint(message.bytes.len() as u64);
        self.bytes.extend(&message.bytes);
    }

    /// Numbers as one packed field.
    pub fn packed(&mut self, field: u32, values: impl IntoIterator<Item = u64>) {
        self.message(field, |packed| values.into_iter().for_each(|value| packed.varint(value)));
    }

    /// Puts the length in front of what was written since `start`.
    fn close(&mut self, start: usize) {
        let end = self.bytes.len();
        self.varint((end - start) as u64);
        // The length was written behind what it measures.
        if let Some(written) = self.bytes.get_mut(start..) {
            written.rotate_left(end - start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Message;

    /// The examples of the specification.
    #[test]
    fn the_wire_format_is_that_of_the_specification() {
        let mut message = Message::default();
        message.uint(1, 150);
        assert_eq!(message.bytes(), [0x08, 0x96, 0x01]);
        message.clear();
        message.text(2, "testing");
        assert_eq!(message.bytes(), [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67]);
        message.clear();
        message.message(3, |inner| inner.uint(1, 150));
        assert_eq!(message.bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        message.clear();
        message.packed(6, [3, 270, 86942]);
        assert_eq!(message.bytes(), [0x32, 0x06, 0x03, 0x8e, 0x02, 0x9e, 0xa7, 0x05]);
        message.clear();
        message.int(1, -2);
        assert_eq!(message.bytes(), [0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
        message.clear();
        message.message(1, |inner| inner.text(1, &"x".repeat(200)));
        assert_eq!(message.bytes().get(..6), Some([0x0a, 0xcb, 0x01, 0x0a, 0xc8, 0x01].as_slice()));
        assert_eq!(message.bytes().len(), 206);
    }
}

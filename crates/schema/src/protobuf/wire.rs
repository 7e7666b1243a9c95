//! The wire format of protobuf: tags, variable-length numbers and lengths.

use super::ProtobufError;

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;
const FIXED32: u32 = 5;

/// Appends to a message.
#[derive(Debug, Default)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    pub fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn tag(&mut self, field: u32, wire_type: u32) {
        self.varint(u64::from(field << 3 | wire_type));
    }

    /// Negative numbers take ten bytes, as protobuf has it.
    pub fn integer(&mut self, field: u32, number: i64) {
        self.tag(field, VARINT);
        self.varint(number as u64);
    }

    pub fn double(&mut self, field: u32, number: f64) {
        self.tag(field, FIXED64);
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.tag(field, BYTES);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// A message in a field: what `fill` writes, with its length in front.
    pub fn message<E>(&mut self, field: u32, fill: impl FnOnce(&mut Writer) -> Result<(), E>) -> Result<(), E> {
        self.tag(field, BYTES);
        let start = self.0.len();
        fill(self)?;
        let mut length = Writer::default();
        length.varint((self.0.len() - start) as u64);
        self.0.splice(start..start, length.0);
        Ok(())
    }
}

/// One field of a message.
#[derive(Clone, Copy, Debug)]
pub enum Found<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    Bytes(&'a [u8]),
    /// Nothing here uses it.
    Fixed32,
}

/// Reads a message field by field.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// The next field's number and content; none at the end.
    pub fn next_field(&mut self) -> Result<Option<(u32, Found<'a>)>, ProtobufError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let field = u32::try_from(tag >> 3).map_err(|_| ProtobufError::new("a field number is too large"))?;
        let found = match (tag & 7) as u32 {
            VARINT => Found::Varint(self.varint()?),
            FIXED64 => Found::Fixed64(self.take(8)?.try_into().expect("eight bytes were taken")),
            BYTES => {
                let length =
                    usize::try_from(self.varint()?).map_err(|_| ProtobufError::new("a length is too large"))?;
                Found::Bytes(self.take(length)?)
            }
            FIXED32 => {
                self.take(4)?;
                Found::Fixed32
            }
            other => return Err(ProtobufError::new(format!("there is no wire type {other}"))),
        };
        Ok(Some((field, found)))
    }

    pub fn varint(&mut self) -> Result<u64, ProtobufError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or_else(|| ProtobufError::new("a number is cut off"))?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(ProtobufError::new("a number has more than ten bytes"))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], ProtobufError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(|| ProtobufError::new("a field is cut off"))?;
        self.0 = rest;
        Ok(taken)
    }
}

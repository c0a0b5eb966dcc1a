//! Encoding of numbers as bytes.

use super::error::ModelsError;

/// Appends numbers, least byte first.
#[derive(Debug, Default)]
pub struct Writer(pub Vec<u8>);

/// Takes numbers from the front.
#[derive(Debug)]
pub struct Reader<'a>(pub &'a [u8]);

impl Writer {
    pub fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub fn u16(&mut self, value: u16) {
        self.0.extend(value.to_le_bytes());
    }

    pub fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    pub fn f64(&mut self, value: f64) {
        self.0.extend(value.to_le_bytes());
    }

    pub fn f32s(&mut self, values: &[f32]) {
        values.iter().for_each(|value| self.0.extend(value.to_le_bytes()));
    }
}

impl<'a> Reader<'a> {
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], ModelsError> {
        let (front, rest) = self.0.split_at_checked(count).ok_or(ModelsError::Short)?;
        self.0 = rest;
        Ok(front)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ModelsError> {
        let (front, rest) = self.0.split_first_chunk::<N>().ok_or(ModelsError::Short)?;
        self.0 = rest;
        Ok(*front)
    }

    pub fn u8(&mut self) -> Result<u8, ModelsError> {
        self.array().map(u8::from_le_bytes)
    }

    pub fn u16(&mut self) -> Result<u16, ModelsError> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, ModelsError> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn f64(&mut self) -> Result<f64, ModelsError> {
        self.array().map(f64::from_le_bytes)
    }

    pub fn f32s(&mut self, count: usize) -> Result<Vec<f32>, ModelsError> {
        let bytes = self.bytes(count.checked_mul(4).ok_or(ModelsError::Short)?)?;
        let chunks = bytes.as_chunks::<4>().0;
        Ok(chunks.iter().map(|&chunk| f32::from_le_bytes(chunk)).collect())
    }
}

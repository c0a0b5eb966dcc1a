//! Tensors to be written.

use std::io;

use steptime_tensor::DType;

use super::{CheckpointError, Number};

/// The bytes of a tensor, read in parts: memory of the host, of a GPU, or another checkpoint.
pub trait Source: Sync {
    /// Fills `bytes` with the tensor's little-endian bytes from position `start`; both are multiples of an element.
    ///
    /// # Errors
    ///
    /// The reason why the bytes cannot be read.
    fn read(&self, start: u64, bytes: &mut [u8]) -> io::Result<()>;
}

/// A tensor to be written: name, type, shape (rows first), bytes.
pub struct Entry<'a> {
    name: String,
    dtype: DType,
    shape: Vec<u64>,
    source: Box<dyn Source + 'a>,
}

impl<'a> Entry<'a> {
    /// A tensor whose bytes are read in parts while it is written.
    pub fn new(name: impl Into<String>, dtype: DType, shape: &[u64], source: impl Source + 'a) -> Self {
        Entry { name: name.into(), dtype, shape: shape.to_vec(), source: Box::new(source) }
    }

    /// A contiguous tensor in memory, which is not copied.
    ///
    /// # Errors
    ///
    /// The shape has another number of elements.
    pub fn from_slice<T: Number>(
        name: impl Into<String>,
        shape: &[u64],
        numbers: &'a [T],
    ) -> Result<Self, CheckpointError> {
        let (name, elements) = (name.into(), numbers.len() as u64);
        if shape.iter().try_fold(1u64, |product, &size| product.checked_mul(size)) != Some(elements) {
            return Err(CheckpointError::Shape { name, shape: shape.to_vec(), elements });
        }
        Ok(Entry::new(name, T::DTYPE, shape, Slice(numbers)))
    }

    /// Name, unique in a checkpoint.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Element type.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Sizes of the dimensions, rows first.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The bytes.
    #[must_use]
    pub fn source(&self) -> &dyn Source {
        &*self.source
    }
}

struct Slice<'a, T>(&'a [T]);

impl<T: Number> Source for Slice<'_, T> {
    fn read(&self, start: u64, bytes: &mut [u8]) -> io::Result<()> {
        let first = start as usize / size_of::<T>();
        let numbers = self.0.get(first..first + bytes.len() / size_of::<T>());
        T::write(numbers.ok_or(io::ErrorKind::UnexpectedEof)?, bytes);
        Ok(())
    }
}

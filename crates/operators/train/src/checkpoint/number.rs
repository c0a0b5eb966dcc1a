//! Numbers as the little-endian bytes of a shard.

use half::{bf16, f16};
use steptime_tensor::Element;

/// A number that a checkpoint stores: `f32`, `bf16`, `i64`, `f16`, `i32` or `u8`.
pub trait Number: Element {
    /// Writes numbers as little-endian bytes, exactly as many.
    fn write(numbers: &[Self], bytes: &mut [u8]);
    /// Reads numbers from little-endian bytes, exactly as many.
    fn read(bytes: &[u8], numbers: &mut [Self]);
}

macro_rules! number {
    ($($type:ty),*) => {$(
        impl Number for $type {
            fn write(numbers: &[Self], bytes: &mut [u8]) {
                for (number, bytes) in numbers.iter().zip(bytes.chunks_exact_mut(size_of::<$type>())) {
                    bytes.copy_from_slice(&number.to_le_bytes());
                }
            }

            fn read(bytes: &[u8], numbers: &mut [Self]) {
                let (parts, _) = bytes.as_chunks::<{ size_of::<$type>() }>();
                for (number, &bytes) in numbers.iter_mut().zip(parts) {
                    *number = <$type>::from_le_bytes(bytes);
                }
            }
        }
    )*};
}

number!(f32, f16, bf16, i32, i64, u8);

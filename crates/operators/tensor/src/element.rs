//! Element types of tensors.

use std::fmt;

use half::{bf16, f16};

/// Element type of a tensor, as a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DType {
    /// IEEE 754 single precision.
    F32,
    /// IEEE 754 half precision.
    F16,
    /// The upper half of a single.
    Bf16,
    /// Signed, 32 bits.
    I32,
    /// Signed, 64 bits.
    I64,
    /// Unsigned, 8 bits.
    U8,
}

impl DType {
    /// Bytes of one element.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            DType::F32 | DType::I32 => 4,
            DType::F16 | DType::Bf16 => 2,
            DType::I64 => 8,
            DType::U8 => 1,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DType::F32 => "f32",
            DType::F16 => "f16",
            DType::Bf16 => "bf16",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::U8 => "u8",
        })
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A number that tensors can hold: `f32`, `f16`, `bf16`, `i32`, `i64` or `u8`. [`Default`] is zero.
pub trait Element: sealed::Sealed + Copy + Default + PartialEq + fmt::Debug + Send + Sync + 'static {
    /// The type as a value.
    const DTYPE: DType;
}

macro_rules! element {
    ($($type:ty => $dtype:ident),*) => {$(
        impl sealed::Sealed for $type {}
        impl Element for $type {
            const DTYPE: DType = DType::$dtype;
        }
    )*};
}

element!(f32 => F32, f16 => F16, bf16 => Bf16, i32 => I32, i64 => I64, u8 => U8);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_as_large_as_it_says() {
        fn check<T: Element>(name: &str) {
            assert_eq!(T::DTYPE.bytes(), size_of::<T>());
            assert_eq!(T::DTYPE.to_string(), name);
        }
        check::<f32>("f32");
        check::<f16>("f16");
        check::<bf16>("bf16");
        check::<i32>("i32");
        check::<i64>("i64");
        check::<u8>("u8");
    }
}

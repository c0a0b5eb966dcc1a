//! Element types of the tensors between operators: see `float.cuh`.

use bytemuck::Pod;
use half::bf16;

/// Common beginning of the device code of all kernels over [`Float`]s.
pub(crate) const FLOATS: &str = include_str!("float.cuh");

/// A float in memory: `f32`, or `bf16`, whose 16 bits are widened for arithmetic and rounded to nearest, ties to even,
/// when they are stored.
pub trait Float: Pod + private::Kind {}

impl<T: Pod + private::Kind> Float for T {}

/// Number of neighbouring elements that a lane loads and stores in vectors of at most 16 bytes: the vector of the narrowest of
/// these types, or a smaller one that divides the number of columns.
pub(crate) fn vector(columns: usize, sizes: &[usize], aligned: bool) -> usize {
    let widest = 16 / sizes.iter().copied().min().unwrap_or(16);
    let fits = |vector: &usize| columns.is_multiple_of(*vector);
    [8, 4].into_iter().filter(|&vector| aligned && vector <= widest).find(fits).unwrap_or(1)
}

mod private {
    use super::bf16;

    pub trait Kind {
        /// The type in device code.
        const DEVICE_NAME: &'static str;
        /// The type's number in NCCL.
        const NCCL: std::ffi::c_int;
    }

    impl Kind for f32 {
        const DEVICE_NAME: &'static str = "float";
        const NCCL: std::ffi::c_int = 7;
    }

    impl Kind for bf16 {
        const DEVICE_NAME: &'static str = "Bf16";
        const NCCL: std::ffi::c_int = 9;
    }
}

#[cfg(test)]
mod tests {
    use super::vector;

    #[test]
    fn vectors_divide_columns() {
        assert_eq!([1, 4, 8, 12, 1024].map(|columns| vector(columns, &[4], true)), [1, 4, 4, 4, 4]);
        assert_eq!([1, 4, 8, 12, 1024].map(|columns| vector(columns, &[4, 2], true)), [1, 4, 8, 4, 8]);
        assert_eq!(vector(1024, &[2], false), 1);
    }
}

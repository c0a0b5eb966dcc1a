//! Element types of matrices.

use bytemuck::Pod;
use half::bf16;

/// Number types that are multiplied: sums are in 32-bit floats.
pub trait Number: Pod + private::Kind {}

impl<T: Pod + private::Kind> Number for T {}

pub(super) mod private {
    use cudarc::driver::sys::CUtensorMapDataType as Data;

    use super::bf16;

    pub trait Kind {
        /// The type's number in the kernels.
        const TYPE: u32;
        /// The type's name for the copy engine.
        const DATA: Data;
    }

    impl Kind for f32 {
        const TYPE: u32 = 0;
        const DATA: Data = Data::CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    }

    impl Kind for bf16 {
        const TYPE: u32 = 1;
        const DATA: Data = Data::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    }
}

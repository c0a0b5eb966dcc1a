//! What matrices are made of.

use bytemuck::Pod;
use half::bf16;

/// Numbers that are multiplied: sums are in 32-bit floats.
pub trait Number: Pod + private::Kind {}

impl<T: Pod + private::Kind> Number for T {}

pub(super) mod private {
    use cudarc::driver::sys::CUtensorMapDataType as Data;

    use super::bf16;

    pub trait Kind {
        /// As the kernels name it.
        const TYPE: u32;
        /// As the copy engine does.
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

//! Rows as vectors of floats, for each instruction set. Element types are numbers here, so that they can be constants
//! of kernels.

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(super) mod avx512;
#[cfg(target_arch = "aarch64")]
pub(super) mod neon;

pub(super) const F32: u8 = 0;
pub(super) const F16: u8 = 1;
pub(super) const BF16: u8 = 2;
pub(super) const INT8: u8 = 3;
pub(super) const INT4: u8 = 4;

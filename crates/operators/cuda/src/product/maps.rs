//! Descriptions of matrix tiles for the copy engine.

use std::ffi::c_void;

use cudarc::driver::sys;
use sys::CUtensorMapFloatOOBfill as Beyond;
use sys::CUtensorMapInterleave as Interleave;
use sys::CUtensorMapL2promotion as Promotion;
use sys::CUtensorMapSwizzle as Swizzle;

use super::{Number, ROW};
use crate::{Error, Slice};

/// The driver's tensor map, with its alignment.
#[repr(C, align(64))]
struct Map([u64; 16]);

/// Describes a matrix of `rows` x `columns` in tiles of `tall` rows of `ROW` bytes, whose 16-byte parts are swizzled as
/// `wgmma` reads them. Elements beyond the matrix are zeros.
pub(super) fn map<T: Number>(
    matrix: Slice<'_, T>,
    [rows, columns]: [usize; 2],
    tall: usize,
) -> Result<[u64; 16], Error> {
    let bytes = size_of::<T>();
    let mut map = Map([0; 16]);
    let sizes = [columns as u64, rows as u64];
    let strides = [(columns * bytes) as u64];
    let tile = [(ROW / bytes) as u32, tall as u32];
    let next = [1_u32; 2];
    let address = std::ptr::with_exposed_provenance_mut::<c_void>(matrix.address() as usize);
    // SAFETY: the map has the size and alignment of the driver's type; the arrays have an entry for each of two axes,
    // and a stride for each but the first. The driver uses the matrix's address only.
    unsafe {
        sys::cuTensorMapEncodeTiled(
            (&raw mut map).cast(),
            T::DATA,
            2,
            address,
            sizes.as_ptr(),
            strides.as_ptr(),
            tile.as_ptr(),
            next.as_ptr(),
            Interleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            Swizzle::CU_TENSOR_MAP_SWIZZLE_128B,
            Promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            Beyond::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    }
    .result()
    .map_err(Error::driver(format!("describing a matrix of {rows} x {columns}")))?;
    Ok(map.0)
}

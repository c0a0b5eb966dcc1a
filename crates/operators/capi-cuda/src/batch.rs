//! A batch of lookups: its sizes and addresses.

use std::ffi::c_int;

use steptime_cuda::embedding::{Ints, Lookups, Sizes};
use steptime_ops::embedding::Pooling;

use crate::addresses::given;
use crate::error::Failure;

/// Addresses of lookups: `lookups` indices, an offset for every bag and one more, each of `bits` bits, and a weight for
/// each lookup or none.
#[repr(C)]
pub struct GpuLookups {
    /// Number of lookups, N.
    pub lookups: usize,
    /// Address of N indices.
    pub indices: u64,
    /// Address of T x B + 1 offsets.
    pub offsets: u64,
    /// Address of N floats, or 0 for none.
    pub weights: u64,
}

/// Sizes that an op is compiled for.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct GpuSizes {
    /// Number of bags, B.
    pub bags: usize,
    /// Expected number of lookups of all tables, N; a backward pass accepts no more.
    pub lookups: usize,
    /// Number of floats from row to row of the output, or of its gradient.
    pub stride: usize,
    /// Bits of indices and offsets, 32 or 64.
    pub bits: c_int,
    /// Whether lookups have weights: 0 or 1.
    pub weighted: c_int,
    /// Pooling of a bag's rows, in PyTorch's numbering: 0 for the sum, 1 for the mean, 2 for the maximum.
    pub mode: c_int,
}

impl GpuSizes {
    /// Converts to the sizes of the operators.
    pub(crate) fn sizes(&self) -> Result<Sizes, Failure> {
        if self.bits != 32 && self.bits != 64 {
            return Err(no_width(self.bits));
        }
        let width = self.bits as usize / 8;
        Ok(Sizes {
            bags: self.bags,
            lookups: self.lookups,
            index_width: width,
            offset_width: width,
            weighted: self.weighted != 0,
            stride: self.stride,
        })
    }

    /// Pooling of the bags.
    pub(crate) fn pooling(&self) -> Result<Pooling, Failure> {
        match self.mode {
            0 => Ok(Pooling::Sum),
            1 => Ok(Pooling::Mean),
            2 => Ok(Pooling::Max),
            other => {
                Err(format!("there is no pooling {other}: choose 0 (sum), 1 (mean) or 2 (maximum)").into())
            }
        }
    }

    /// The lookups of a call.
    ///
    /// # Safety
    ///
    /// The addresses are those of as many elements as stated, which do not change while kernels read them.
    pub(crate) unsafe fn lookups<'a>(&self, tables: usize, of: &GpuLookups) -> Result<Lookups<'a>, Failure> {
        let offsets = steptime_ops::embedding::Lookups::offset_count(tables, self.bags)?;
        // SAFETY: as the caller promises.
        let (indices, offsets) =
            unsafe { (ints(of.indices, of.lookups, self.bits)?, ints(of.offsets, offsets, self.bits)?) };
        let batch = Lookups::new(self.bags, indices, offsets)?;
        if of.weights == 0 {
            return Ok(batch);
        }
        // SAFETY: as above.
        Ok(batch.with_weights(unsafe { given(of.weights, of.lookups) }?)?)
    }

    /// Number of floats that an output of `columns` columns, or its gradient, spans.
    pub(crate) fn floats(&self, columns: usize) -> usize {
        self.bags.checked_sub(1).map_or(0, |rows| rows.saturating_mul(self.stride).saturating_add(columns))
    }
}

/// Integers of 32 or 64 bits.
///
/// # Safety
///
/// As that of [`given`].
unsafe fn ints<'a>(address: u64, count: usize, bits: c_int) -> Result<Ints<'a>, Failure> {
    // SAFETY: as the caller promises.
    unsafe {
        match bits {
            32 => Ok(Ints::I32(given(address, count)?)),
            64 => Ok(Ints::I64(given(address, count)?)),
            other => Err(no_width(other)),
        }
    }
}

fn no_width(bits: c_int) -> Failure {
    format!("there are no indices of {bits} bits: choose 32 or 64").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_cannot_be_is_refused() {
        let sizes = GpuSizes { bags: 3, lookups: 8, stride: 10, bits: 32, weighted: 0, mode: 2 };
        assert_eq!((sizes.floats(8), sizes.sizes().unwrap().index_width), (28, 4));
        assert!(GpuSizes { bits: 16, ..sizes }.sizes().is_err());
        assert_eq!(sizes.pooling().unwrap(), Pooling::Max);
        assert!(GpuSizes { mode: 3, ..sizes }.pooling().unwrap_err().to_string().contains("choose 0"));
        let of = GpuLookups { lookups: 8, indices: 0, offsets: 256, weights: 0 };
        // SAFETY: nothing is launched.
        let error = unsafe { sizes.lookups(2, &of) }.unwrap_err().to_string();
        assert!(error.contains("null address"), "{error}");
        let of = GpuLookups { lookups: 8, indices: 258, offsets: 256, weights: 0 };
        // SAFETY: nothing is launched.
        let error = unsafe { sizes.lookups(2, &of) }.unwrap_err().to_string();
        assert!(error.contains("not a multiple of 4"), "{error}");
        let of = GpuLookups { lookups: usize::MAX, indices: 256, offsets: 256, weights: 0 };
        // SAFETY: nothing is launched.
        let error = unsafe { sizes.lookups(2, &of) }.unwrap_err().to_string();
        assert!(error.contains("more than memory"), "{error}");
        let of = GpuLookups { lookups: 8, indices: 256, offsets: 256, weights: 0 };
        // SAFETY: nothing is launched.
        let error = unsafe { GpuSizes { bags: 1 << 63, ..sizes }.lookups(2, &of) }.unwrap_err().to_string();
        assert!(error.contains("2 tables x 9223372036854775808 bags"), "{error}");
    }
}

//! What an optimizer keeps for each row, in memory of the caller's.

use steptime_cuda::{Buffer, Device};

use crate::addresses::taken;
use crate::error::Failure;
use crate::pointers::slice;

/// The state of each table: `floats[t]` floats at the address `data[t]`, of all its rows together.
#[repr(C)]
pub struct GpuStates {
    /// The addresses on the GPU; this array and the other are the host's.
    pub data: *const u64,
    /// How many floats there are.
    pub floats: *const usize,
}

impl GpuStates {
    /// The states, which the caller keeps.
    ///
    /// # Safety
    ///
    /// The arrays have `count` elements; the states live, and are used by nobody else while kernels use them, as long as
    /// the result does.
    pub(crate) unsafe fn buffers(&self, device: &Device, count: usize) -> Result<Vec<Buffer<f32>>, Failure> {
        // SAFETY: as many elements, by the caller's promise.
        let (data, floats) =
            unsafe { (slice("data", self.data, count)?, slice("floats", self.floats, count)?) };
        let buffer = |(&address, &floats): (&u64, &usize)| {
            // SAFETY: as many floats, which live long enough, by the caller's promise.
            unsafe {
                taken::<f32>(address, floats)?;
                Ok(Buffer::from_raw(device, address, floats))
            }
        };
        data.iter().zip(floats).map(buffer).collect()
    }
}

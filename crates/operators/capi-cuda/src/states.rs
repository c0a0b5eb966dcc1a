//! State of an optimizer for each row, in memory of the caller's.

use steptime_cuda::{Buffer, Device};

use crate::addresses::taken;
use crate::error::Failure;
use crate::pointers::slice;

/// The state of each table: `floats[t]` floats at the address `data[t]`, of all its rows together.
#[repr(C)]
pub struct GpuStates {
    /// Addresses on the GPU; this array and the other are in host memory.
    pub data: *const u64,
    /// Number of floats of each table's state.
    pub floats: *const usize,
}

impl GpuStates {
    /// Buffers of the states, whose memory the caller keeps.
    ///
    /// # Safety
    ///
    /// The arrays have `count` elements. The states live as long as the result, and no other code uses them while
    /// kernels do.
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

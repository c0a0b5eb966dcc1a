//! The library, loaded at first use, and the element types it multiplies.

use std::sync::Arc;

use bytemuck::Pod;
use cudarc::cublaslt::result;
use cudarc::cublaslt::sys::{self, cudaDataType_t as Data};
use half::{bf16, f16};

use crate::{Device, Error};

/// cuBLASLt for one device. Clones share one handle.
#[derive(Debug, Clone)]
pub struct Blas(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    device: Device,
    handle: sys::cublasLtHandle_t,
}

// SAFETY: cuBLASLt's handles may be used from every thread.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Blas {
    /// Loads the library.
    ///
    /// # Errors
    ///
    /// The library is missing, or cannot start.
    pub fn open(device: &Device) -> Result<Blas, Error> {
        check_library()?;
        device.bind()?;
        let handle = result::create_handle().map_err(Error::blas("starting cuBLASLt"))?;
        Ok(Blas(Arc::new(Handle { device: device.clone(), handle })))
    }

    pub(super) fn device(&self) -> &Device {
        &self.0.device
    }

    pub(super) fn handle(&self) -> sys::cublasLtHandle_t {
        self.0.handle
    }
}

/// Fails where the library is missing; later calls would panic.
fn check_library() -> Result<(), Error> {
    // SAFETY: only tries to load the library.
    if unsafe { sys::is_culib_present() } { Ok(()) } else { Err(Error::NoBlas) }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: made once.
            let _ = unsafe { result::destroy_handle(self.handle) };
        }
    }
}

/// Element types of matrices that are multiplied: sums are in 32-bit floats.
pub trait Factor: Pod + private::Kind {}

impl<T: Pod + private::Kind> Factor for T {}

mod private {
    use super::{Data, bf16, f16};

    pub trait Kind {
        const KIND: Data;
        const NAME: &'static str;
    }

    impl Kind for f32 {
        const KIND: Data = Data::CUDA_R_32F;
        const NAME: &'static str = "f32";
    }

    impl Kind for bf16 {
        const KIND: Data = Data::CUDA_R_16BF;
        const NAME: &'static str = "bf16";
    }

    impl Kind for f16 {
        const KIND: Data = Data::CUDA_R_16F;
        const NAME: &'static str = "f16";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_absence_of_cublaslt_is_named() {
        match check_library() {
            Ok(()) => {}
            Err(error) => assert!(error.to_string().contains("libcublasLt"), "{error}"),
        }
    }
}

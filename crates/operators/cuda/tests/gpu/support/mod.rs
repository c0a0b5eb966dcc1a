//! The GPU of the tests.

pub mod number;
pub mod random;

use steptime_cuda::{Device, Error};

/// The first GPU. `None` without one, which is counted as a skipped test: a GPU that exists but does not work is a
/// failure.
pub fn device() -> Option<Device> {
    match Device::open(0) {
        Ok(device) => Some(device),
        Err(Error::NoDriver { .. } | Error::NoDevice { .. }) => {
            steptime_skips::skip("no GPU");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

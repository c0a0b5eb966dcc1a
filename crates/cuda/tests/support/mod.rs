//! The GPU that tests run on.

use steptime_cuda::{Device, Error};

/// The first GPU. None where there is none, which is printed: a GPU that is there and does not work is a failure.
pub fn device() -> Option<Device> {
    match Device::open(0) {
        Ok(device) => Some(device),
        Err(error @ (Error::NoDriver { .. } | Error::NoDevice { .. })) => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

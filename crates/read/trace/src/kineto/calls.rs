//! Calls into the runtime and the driver.

use super::ThreadId;
use crate::columns::columns;
use crate::strings::NameId;
use crate::units::Nanos;

/// Which library was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    /// The runtime: `cudaLaunchKernel`, `hipLaunchKernel`.
    Runtime,
    /// The driver: `cuLaunchKernel`.
    Driver,
}

columns! {
    /// Calls into the runtime and the driver, on the host.
    pub struct Calls of Call {
        /// Which library.
        api: Api,
        /// The function.
        name: NameId,
        /// The calling thread.
        thread: ThreadId,
        /// When it began.
        start: Nanos,
        /// How long it took.
        dur: Nanos,
        /// Ties it to the device activities it started; 0 is none.
        correlation: u64,
        /// The `External id` of the calling op; 0 is none. Older traces put the correlation here.
        external_id: u64,
    }
}

impl Calls {
    /// When row `index` ended.
    ///
    /// # Panics
    /// When `index` is not below the number of rows.
    #[must_use]
    pub fn end(&self, index: usize) -> Nanos {
        self.start[index] + self.dur[index]
    }
}

//! Calls into the runtime and the driver.

use super::ThreadId;
use crate::columns::columns;
use crate::strings::NameId;
use crate::units::Nanos;

/// Library of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallLibrary {
    /// Runtime: `cudaLaunchKernel`, `hipLaunchKernel`.
    Runtime,
    /// Driver: `cuLaunchKernel`.
    Driver,
}

impl CallLibrary {
    /// Returns the library of a function: `cudaLaunchKernel`, `cuLaunchKernel`, `hipLaunchKernel`; `None` for any other.
    pub(crate) fn from_function(name: &str) -> Option<CallLibrary> {
        let prefixed = |prefix: &str| {
            name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
        };
        match () {
            () if prefixed("cuda") || prefixed("hip") => Some(CallLibrary::Runtime),
            () => prefixed("cu").then_some(CallLibrary::Driver),
        }
    }
}

columns! {
    /// Calls of the runtime and the driver, on the host.
    pub struct Calls of Call {
        /// Library of the call.
        api: CallLibrary,
        /// Name of the function.
        name: NameId,
        /// Calling thread.
        thread: ThreadId,
        /// Start time.
        start: Nanos,
        /// Duration.
        dur: Nanos,
        /// Correlation with the device activities that it launched; 0 if there is none.
        correlation: u64,
        /// `External id` of the calling op; 0 if there is none. Older traces put the correlation here.
        external_id: u64,
    }
}

impl Calls {
    /// Returns the end time of row `index`.
    ///
    /// # Panics
    /// If `index` is not below the number of rows.
    #[must_use]
    pub fn end(&self, index: usize) -> Nanos {
        self.start[index] + self.dur[index]
    }
}

//! Memory of a recorded tensor, which shows whether two operands are the same memory.

use std::hash::{Hash, Hasher};
use std::num::NonZeroU64;

/// Memory of a tensor's storage, in its recording.
///
/// Any two places compare equal: the memory of a tensor does not make it a different tensor.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place {
    address: Option<NonZeroU64>,
    storage: Option<u32>,
}

/// Flag in the key of a storage without an address. No address has this bit.
const NUMBERED: u64 = 1 << 63;

impl Place {
    /// Unknown place, or that of a tensor that was never recorded.
    pub const UNKNOWN: Place = Place { address: None, storage: None };

    /// Returns the place at an address; 0 means none.
    #[must_use]
    pub const fn address(address: u64) -> Place {
        Place { address: NonZeroU64::new(address), storage: None }
    }

    /// Returns the place of a storage with its number in the recording, and its address; 0 means none.
    #[must_use]
    pub const fn storage(number: u32, address: u64) -> Place {
        let address = if address == 0 { NUMBERED | number as u64 } else { address };
        Place { address: NonZeroU64::new(address), storage: Some(number) }
    }

    /// Returns the key of the memory; `None` if unknown. Storages with disjoint lifetimes may share it.
    #[must_use]
    pub const fn key(self) -> Option<NonZeroU64> {
        self.address
    }

    /// Returns the unique number of the storage in its recording; `None` if unknown.
    #[must_use]
    pub const fn number(self) -> Option<u32> {
        self.storage
    }
}

impl PartialEq for Place {
    fn eq(&self, _: &Place) -> bool {
        true
    }
}

impl Eq for Place {}

impl Hash for Place {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

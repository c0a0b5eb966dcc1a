//! Where a tensor lay in memory when it was recorded: what tells whether two operands are the same memory.

use std::hash::{Hash, Hasher};
use std::num::NonZeroU64;

/// The memory of a tensor's storage, in the recording it was read from.
///
/// Any two places are equal: where a tensor lies does not make it another tensor.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place {
    address: Option<NonZeroU64>,
    storage: Option<u32>,
}

/// Set in the key of a storage without an address. No address has this bit.
const NUMBERED: u64 = 1 << 63;

impl Place {
    /// Not known, or of a tensor that was never recorded.
    pub const UNKNOWN: Place = Place { address: None, storage: None };

    /// An address; 0 is none.
    #[must_use]
    pub const fn address(address: u64) -> Place {
        Place { address: NonZeroU64::new(address), storage: None }
    }

    /// A storage by its number in the recording, and its address; 0 is none.
    #[must_use]
    pub const fn storage(number: u32, address: u64) -> Place {
        let address = if address == 0 { NUMBERED | number as u64 } else { address };
        Place { address: NonZeroU64::new(address), storage: Some(number) }
    }

    /// Key of the memory; `None` where it is not known. Storages that live one after the other may share it.
    #[must_use]
    pub const fn key(self) -> Option<NonZeroU64> {
        self.address
    }

    /// The number of the storage in its recording, which no other has; `None` where it is not known.
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

//! Device memory as in PyTorch's caching allocator: a freed block's address is used by the next allocation that fits.
//!
//! Sizes are rounded up to 512 bytes. Blocks up to 1 MiB come from segments of 2 MiB, larger ones from segments of 20 MiB, and blocks of 10 MiB or
//! more from their own segments. The smallest sufficient free block is used, and split.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

const GRAIN: u64 = 512;
const SMALL: u64 = 1 << 20;
const SMALL_SEGMENT: u64 = 2 << 20;
const LARGE_SEGMENT: u64 = 20 << 20;
const OWN_SEGMENT: u64 = 10 << 20;
/// First address of host memory, beyond all device memory.
const HOST: u64 = 1 << 56;

/// The memory of one process.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pools: Rc<RefCell<Pools>>,
    host: u64,
}

/// The memory of a storage. It is freed when no tensor uses it.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) address: u64,
    bytes: u64,
    /// Pools to which it is returned; none for host memory.
    pools: Option<Rc<RefCell<Pools>>>,
}

#[derive(Debug, Default)]
struct Pools {
    /// Pools of small and of large blocks.
    pools: [Pool; 2],
    /// Bytes of all segments so far.
    reserved: u64,
}

/// Free blocks, by size and by address.
#[derive(Debug, Default)]
struct Pool {
    by_size: BTreeSet<(u64, u64)>,
    by_address: BTreeMap<u64, u64>,
}

impl Memory {
    /// Allocates a block on the device.
    pub(crate) fn device(&self, bytes: u64) -> Rc<Block> {
        let bytes = bytes.max(1).div_ceil(GRAIN) * GRAIN;
        let address = self.pools.borrow_mut().take(bytes);
        Rc::new(Block { address, bytes, pools: Some(Rc::clone(&self.pools)) })
    }

    /// Allocates a block in host memory.
    pub(crate) fn host(&mut self, bytes: u64) -> Rc<Block> {
        self.host += bytes.max(1).div_ceil(GRAIN) * GRAIN;
        Rc::new(Block { address: HOST + self.host, bytes, pools: None })
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Some(pools) = &self.pools {
            pools.borrow_mut().pools[usize::from(self.bytes > SMALL)].give(self.address, self.bytes);
        }
    }
}

impl Pools {
    fn take(&mut self, bytes: u64) -> u64 {
        let large = bytes > SMALL;
        // A remainder of at most this size stays with its block.
        let least = if large { SMALL } else { GRAIN - 1 };
        let (size, address) = match self.pools[usize::from(large)].fit(bytes) {
            Some(found) => found,
            None => self.segment(bytes),
        };
        if size - bytes > least {
            self.pools[usize::from(large)].give(address + bytes, size - bytes);
        }
        address
    }

    fn segment(&mut self, bytes: u64) -> (u64, u64) {
        let size = if bytes <= SMALL {
            SMALL_SEGMENT
        } else if bytes < OWN_SEGMENT {
            LARGE_SEGMENT
        } else {
            bytes.div_ceil(SMALL_SEGMENT) * SMALL_SEGMENT
        };
        // Segments do not touch, so that blocks of two segments are never merged.
        let address = self.reserved + GRAIN;
        self.reserved += size + GRAIN;
        (size, address)
    }
}

impl Pool {
    /// Takes out the smallest block of at least `bytes`.
    fn fit(&mut self, bytes: u64) -> Option<(u64, u64)> {
        let found = *self.by_size.range((bytes, 0)..).next()?;
        self.remove(found.1, found.0);
        Some(found)
    }

    fn give(&mut self, address: u64, bytes: u64) {
        let (mut address, mut bytes) = (address, bytes);
        if let Some(&after) = self.by_address.get(&(address + bytes)) {
            self.remove(address + bytes, after);
            bytes += after;
        }
        if let Some((&before, &size)) = self.by_address.range(..address).next_back()
            && before + size == address
        {
            self.remove(before, size);
            (address, bytes) = (before, bytes + size);
        }
        self.by_size.insert((bytes, address));
        self.by_address.insert(address, bytes);
    }

    fn remove(&mut self, address: u64, bytes: u64) {
        self.by_size.remove(&(bytes, address));
        self.by_address.remove(&address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_block_is_taken_again() {
        let memory = Memory::default();
        let (first, second) = (memory.device(1000), memory.device(1000));
        let (one, two) = (first.address, second.address);
        assert_eq!(two - one, 1024);
        drop(first);
        assert_eq!(memory.device(600).address, one);
        drop(second);
        assert_eq!(memory.device(2048).address, one);
    }

    #[test]
    fn a_large_block_has_a_segment_of_its_own() {
        let memory = Memory::default();
        let (first, second) = (memory.device(100 << 20), memory.device(3 << 20));
        assert!(second.address >= first.address + (100 << 20));
    }
}

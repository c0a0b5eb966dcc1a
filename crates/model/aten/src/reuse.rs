//! Distance to the last access of each kernel's operands, which determines whether they are still in the L2 cache.

use std::collections::HashMap;
use std::num::NonZeroU64;

use smallvec::{SmallVec, smallvec};

use crate::kernel::KernelCall;
use crate::memory_key::Place;

/// Reuse distance of each operand of a call: bytes that kernels accessed since the start of the kernel that last accessed the operand,
/// with that kernel's own bytes; `None` if no kernel accessed the operand.
pub type Reuse = SmallVec<[Option<u64>; 4]>;

/// Number of accesses to one address that are remembered.
const REMEMBERED: usize = 8;

/// Returns the reuse distance of each operand. `launches` has the device ops of a step in the order in which
/// they run, with the places of their operands. The previous step is assumed to be the same, so its accesses count, such as those to the
/// parameters.
///
/// An operand is identified by the memory of its storage, so an output in a reused block counts as last accessed when that block was last
/// accessed, as whatever tensor.
/// If ops accessed only parts of an operand, add up its accesses from the newest back: its last access is the one at which the sum
/// reaches half of its bytes.
#[must_use]
pub fn reuse_distances(launches: &[(&[Place], &KernelCall)]) -> Vec<Reuse> {
    let mut touched = AccessLog::default();
    touched.walk(launches);
    touched.walk(launches)
}

#[derive(Clone, Copy)]
struct Access {
    /// Bytes that all kernels accessed before this access.
    clock: u64,
    bytes: u64,
}

#[derive(Default)]
struct AccessLog {
    clock: u64,
    places: HashMap<NonZeroU64, SmallVec<[Access; REMEMBERED]>>,
}

impl AccessLog {
    fn walk(&mut self, launches: &[(&[Place], &KernelCall)]) -> Vec<Reuse> {
        launches
            .iter()
            .map(|&(places, call)| {
                let places: SmallVec<[Option<NonZeroU64>; 4]> =
                    places.iter().map(|place| place.key()).collect();
                let found = places.iter().zip(&call.operands);
                let found = found.map(|(place, operand)| self.distance((*place)?, operand.bytes)).collect();
                for (place, operand) in places.iter().zip(&call.operands) {
                    if let Some(place) = place {
                        self.touch(*place, operand.bytes);
                    }
                }
                self.clock = self.clock.saturating_add(call.footprint());
                found
            })
            .collect()
    }

    fn distance(&self, place: NonZeroU64, bytes: u64) -> Option<u64> {
        let mut covered = 0u64;
        for touch in self.places.get(&place)?.iter().rev() {
            covered = covered.saturating_add(touch.bytes);
            if covered.saturating_mul(2) >= bytes {
                return Some(self.clock - touch.clock);
            }
        }
        None
    }

    fn touch(&mut self, place: NonZeroU64, bytes: u64) {
        let touches = self.places.entry(place).or_insert_with(|| smallvec![]);
        // Earlier accesses to as many or fewer bytes no longer matter.
        touches.retain(|touch| touch.bytes > bytes);
        if touches.len() == REMEMBERED {
            touches.remove(0);
        }
        touches.push(Access { clock: self.clock, bytes });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Dtype;
    use crate::kernel::{Kernel, Operand, Role, Slot};

    fn call(operands: &[(u64, u64)]) -> (Vec<Place>, KernelCall) {
        let places = operands.iter().map(|&(address, _)| Place::address(address)).collect();
        let operands = operands
            .iter()
            .map(|&(_, bytes)| Operand { slot: Slot::Scratch, role: Role::Read, bytes })
            .collect();
        (places, KernelCall { kernel: Kernel::Unknown, dtype: Dtype::F32, operands, flops: 0, launches: 1 })
    }

    fn run(touched: &mut AccessLog, step: &[(Vec<Place>, KernelCall)]) -> Vec<Vec<Option<u64>>> {
        let step: Vec<_> = step.iter().map(|(places, call)| (places.as_slice(), call)).collect();
        touched.walk(&step).into_iter().map(|found| found.to_vec()).collect()
    }

    #[test]
    fn distances_count_all_bytes_since_the_last_touch_began() {
        let mut touched = AccessLog::default();
        let step = [call(&[(1, 100), (2, 50)]), call(&[(3, 30)]), call(&[(1, 100), (2, 50)])];
        assert_eq!(run(&mut touched, &step), [vec![None, None], vec![None], vec![Some(180), Some(180)]]);
        // The step before counts.
        assert_eq!(run(&mut touched, &step)[0], [Some(150), Some(150)]);
    }

    #[test]
    fn a_part_is_not_the_whole() {
        let mut touched = AccessLog::default();
        let step = [call(&[(1, 100)]), call(&[(1, 10)]), call(&[(1, 100)]), call(&[(1, 10)])];
        assert_eq!(run(&mut touched, &step), [vec![None], vec![Some(100)], vec![Some(110)], vec![Some(100)]]);
    }
}

//! How far back each kernel's operands were touched last: what decides whether they are still in the L2 cache.

use std::collections::HashMap;

use smallvec::{SmallVec, smallvec};
use steptime_graph::execution::{Arg, ExecutionGraph, NodeId, StorageId, TensorId};

use crate::kernel::{KernelCall, Slot};

/// For each operand of a call: the bytes that kernels touched from the beginning of the op that touched it last
/// to the beginning of this one; `None` where it was never touched.
pub type Reuse = SmallVec<[Option<u64>; 4]>;

/// How many touches of one address to remember.
const REMEMBERED: usize = 8;

/// Walks the device ops of a step in the order in which they run, `launches`, and finds the distance to the last
/// use of every operand. The step before is taken to have been the same: parameters were touched there.
///
/// Operands are known by the address of their storage, so an output finds the block that the allocator used
/// before. Where an earlier op touched only a part, what lies further back counts as soon as half of the bytes
/// are found.
#[must_use]
pub fn reuse_distances(graph: &ExecutionGraph, launches: &[(NodeId, &KernelCall)]) -> Vec<Reuse> {
    let mut touched = Touched::default();
    touched.walk(graph, launches);
    touched.walk(graph, launches)
}

/// The same address, or the same storage where it has none.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    Address(u64),
    Storage(StorageId),
}

#[derive(Clone, Copy)]
struct Touch {
    /// Bytes touched by everything before.
    clock: u64,
    bytes: u64,
}

#[derive(Default)]
struct Touched {
    clock: u64,
    places: HashMap<Place, SmallVec<[Touch; REMEMBERED]>>,
}

impl Touched {
    fn walk(&mut self, graph: &ExecutionGraph, launches: &[(NodeId, &KernelCall)]) -> Vec<Reuse> {
        launches
            .iter()
            .map(|&(node, call)| {
                let places: SmallVec<[Option<Place>; 4]> =
                    call.operands.iter().map(|operand| place(graph, node, operand.slot)).collect();
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

    fn distance(&self, place: Place, bytes: u64) -> Option<u64> {
        let mut covered = 0u64;
        for touch in self.places.get(&place)?.iter().rev() {
            covered = covered.saturating_add(touch.bytes);
            if covered.saturating_mul(2) >= bytes {
                return Some(self.clock - touch.clock);
            }
        }
        None
    }

    fn touch(&mut self, place: Place, bytes: u64) {
        let touches = self.places.entry(place).or_insert_with(|| smallvec![]);
        // A touch of as much or more hides the ones before.
        touches.retain(|touch| touch.bytes > bytes);
        if touches.len() == REMEMBERED {
            touches.remove(0);
        }
        touches.push(Touch { clock: self.clock, bytes });
    }
}

fn place(graph: &ExecutionGraph, node: NodeId, slot: Slot) -> Option<Place> {
    let (range, arg, at) = match slot {
        Slot::Input(arg, at) => (graph.inputs(node), arg, at),
        Slot::Output(arg, at) => (graph.outputs(node), arg, at),
        Slot::Scratch => return None,
    };
    let tensor = tensor(graph, *graph.args.get(range).get(usize::from(arg))?, usize::from(at))?;
    let storage = graph.tensors.get(tensor).storage;
    Some(match graph.tensors.storage(storage).address {
        0 => Place::Storage(storage),
        address => Place::Address(address),
    })
}

fn tensor(graph: &ExecutionGraph, arg: Arg, at: usize) -> Option<TensorId> {
    match arg {
        Arg::Tensor(tensor) => Some(tensor),
        Arg::TensorList(range) => graph.args.tensor_list(range).get(at).copied(),
        Arg::List(range) => {
            let tensors = graph.args.get(range).iter().filter_map(|item| match item {
                Arg::Tensor(tensor) => Some(*tensor),
                _ => None,
            });
            tensors.into_iter().nth(at)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Dtype;
    use crate::kernel::{Kernel, Operand, Role};

    fn call(operands: &[(u64, u64)]) -> (Vec<Place>, KernelCall) {
        let places = operands.iter().map(|&(address, _)| Place::Address(address)).collect();
        let operands = operands
            .iter()
            .map(|&(_, bytes)| Operand { slot: Slot::Scratch, role: Role::Read, bytes })
            .collect();
        (places, KernelCall { kernel: Kernel::Unknown, dtype: Dtype::F32, operands, flops: 0, launches: 1 })
    }

    fn run(touched: &mut Touched, step: &[(Vec<Place>, KernelCall)]) -> Vec<Vec<Option<u64>>> {
        step.iter()
            .map(|(places, call)| {
                let each = || places.iter().zip(&call.operands);
                let found = each().map(|(&place, operand)| touched.distance(place, operand.bytes)).collect();
                each().for_each(|(&place, operand)| touched.touch(place, operand.bytes));
                touched.clock += call.footprint();
                found
            })
            .collect()
    }

    #[test]
    fn distances_count_all_bytes_since_the_last_touch_began() {
        let mut touched = Touched::default();
        let step = [call(&[(1, 100), (2, 50)]), call(&[(3, 30)]), call(&[(1, 100), (2, 50)])];
        assert_eq!(run(&mut touched, &step), [vec![None, None], vec![None], vec![Some(180), Some(180)]]);
        // The step before counts.
        assert_eq!(run(&mut touched, &step)[0], [Some(150), Some(150)]);
    }

    #[test]
    fn a_part_is_not_the_whole() {
        let mut touched = Touched::default();
        let step = [call(&[(1, 100)]), call(&[(1, 10)]), call(&[(1, 100)]), call(&[(1, 10)])];
        assert_eq!(run(&mut touched, &step), [vec![None], vec![Some(100)], vec![Some(110)], vec![Some(100)]]);
    }
}

//! Order of exchanges: vectors and their gradients are sent as soon as they are complete, before sums of gradients, so that other work runs beside them.
//!
//! The order depends on the step alone, and not on places in memory, so that all ranks have the same one.

use steptime_step::TensorId;

use crate::binder::Use;
use crate::bytes::Bytes;
use crate::places::MemoryId;
use crate::program::Instruction;
use crate::slices::Access;

/// The op that sends vectors to other ranks.
const SENDS: &str = "c10d::alltoall_base_";
/// All exchanges.
const EXCHANGES: [&str; 2] = [SENDS, "c10d::allreduce_"];

/// Puts each op that sends vectors directly behind those that it waits for, and the forward pass up to the `loss`, and work that waits for it behind
/// other work. All other instructions keep their order.
pub(crate) fn early_exchanges(instructions: Vec<Instruction>, loss: Option<TensorId>) -> Vec<Instruction> {
    let sends: Vec<bool> = instructions.iter().map(|one| one.name == SENDS).collect();
    if !sends.contains(&true) {
        return instructions;
    }
    let is_loss = |one: &Use| Some(one.tensor) == loss && one.access != Access::Read;
    let forward = instructions.iter().position(|own| own.uses.iter().any(is_loss));
    let bytes: Vec<Vec<Bytes>> = instructions.iter().map(Bytes::of_memories).collect();
    let order = ordered(&sends, forward, |one, other| conflict(&bytes[one], &bytes[other]));
    let mut rest: Vec<Option<Instruction>> = instructions.into_iter().map(Some).collect();
    order.into_iter().filter_map(|at| rest[at].take()).collect()
}

/// For each exchange with other ranks: its memory, and the first instruction that waits for it.
pub(crate) fn spans(instructions: &[Instruction]) -> Vec<(Vec<MemoryId>, usize)> {
    let bytes: Vec<Vec<Bytes>> = instructions.iter().map(Bytes::of_memories).collect();
    let is_exchange = |at: &usize| EXCHANGES.contains(&&*instructions[*at].name);
    let all = (0..instructions.len()).filter(is_exchange).map(|at| {
        let end = (at + 1..instructions.len()).find(|&next| conflict(&bytes[at], &bytes[next]));
        (
            instructions[at].slots.iter().map(|(memory, _)| *memory).collect(),
            end.unwrap_or(instructions.len()),
        )
    });
    all.collect()
}

/// Whether two instructions use the same bytes, one of them writing.
fn conflict(one: &[Bytes], other: &[Bytes]) -> bool {
    one.iter().any(|own| other.iter().any(|bytes| own.conflicts(bytes)))
}

/// The order of instructions of which some send; `forward` is the last one of the forward pass, and `conflict` has those that keep their order.
fn ordered(sends: &[bool], forward: Option<usize>, conflict: impl Fn(usize, usize) -> bool) -> Vec<usize> {
    let mut placed = vec![false; sends.len()];
    let mut order = Vec::with_capacity(sends.len());
    let mut open: Vec<usize> = Vec::new();
    for send in (0..sends.len()).filter(|&at| sends[at]) {
        let mut needed = vec![false; send + 1];
        needed[send] = true;
        for before in (0..send).rev() {
            needed[before] = forward.is_some_and(|last| before <= last && last < send)
                || (before + 1..=send).any(|after| needed[after] && conflict(before, after));
        }
        let list: Vec<usize> = (0..send).filter(|&at| needed[at] && !placed[at]).collect();
        // Instructions that wait for an earlier send, directly or not, come last: the others run beside it.
        let mut late: Vec<usize> = Vec::new();
        for at in list {
            let waits = open.iter().chain(&late).any(|&before| conflict(before, at));
            if waits {
                late.push(at);
            } else {
                order.push(at);
            }
            placed[at] = true;
        }
        order.extend(late.into_iter().chain([send]));
        placed[send] = true;
        open.push(send);
    }
    order.extend((0..sends.len()).filter(|&at| !placed[at]));
    order
}

#[cfg(test)]
mod tests {
    use super::ordered;

    #[test]
    fn a_send_comes_before_work_that_it_does_not_need() {
        // 3 sends the result of 0; 1 and 2 are independent of both, 4 reads what came.
        let pairs = [[0, 3], [1, 2], [3, 4]];
        let conflict = |one: usize, other: usize| pairs.contains(&[one.min(other), one.max(other)]);
        assert_eq!(ordered(&[false, false, false, true, false], None, conflict), [0, 3, 1, 2, 4]);
        assert_eq!(ordered(&[false, false, false, true, false], Some(1), conflict), [0, 1, 3, 2, 4]);
        // 1 makes the operand of 0's reader, too.
        let pairs = [[0, 3], [1, 3], [2, 4]];
        let conflict = |one: usize, other: usize| pairs.contains(&[one.min(other), one.max(other)]);
        assert_eq!(ordered(&[false, false, false, true, false], None, conflict), [0, 1, 3, 2, 4]);
        assert_eq!(ordered(&[false; 3], None, |_, _| true), [0, 1, 2]);
    }

    #[test]
    fn work_that_waits_for_a_send_comes_behind_other_work() {
        // 1 sends the result of 0; 2 takes what came, 3 is independent, 4 takes the results of both, 5 sends that of 4.
        let pairs = [[0, 1], [1, 2], [2, 4], [3, 4], [4, 5]];
        let conflict = |one: usize, other: usize| pairs.contains(&[one.min(other), one.max(other)]);
        let sends = [false, true, false, false, false, true];
        assert_eq!(ordered(&sends, None, conflict), [0, 1, 3, 2, 4, 5]);
    }
}

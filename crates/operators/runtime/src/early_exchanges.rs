//! Order of exchanges: vectors and their gradients are sent as soon as they are complete, before sums of gradients, so that other work runs beside them.
//!
//! The order depends on the step alone, and not on places in memory, so that all ranks have the same one.

use steptime_step::TensorId;
use steptime_step::exchange_order::early;

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
    let order = early(&sends, forward, |one, other| conflict(&bytes[one], &bytes[other]));
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

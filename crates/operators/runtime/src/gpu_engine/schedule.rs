//! Exchanges beside other work.

use steptime_step::exchange_order;
pub(super) use steptime_step::exchange_order::Action;

use crate::bytes::Bytes;
use crate::program::Instruction;

/// The actions of a step, in the order of launches.
pub(super) fn actions(instructions: &[Instruction]) -> Vec<Action> {
    let bytes: Vec<Vec<Bytes>> = instructions.iter().map(|one| Bytes::of_slots(one).concat()).collect();
    let exchanges: Vec<bool> = instructions.iter().map(|one| one.kernel.is_exchange()).collect();
    exchange_order::actions(&exchanges, |one, other| {
        bytes[one].iter().any(|own| bytes[other].iter().any(|bytes| own.conflicts(bytes)))
    })
}

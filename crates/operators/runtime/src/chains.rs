//! Chains of functions of elements, each as one kernel of a GPU.
//!
//! PyTorch runs additions, products and casts one by one, and each reads and writes whole tensors. Here instructions that compute functions of
//! elements are joined where one takes results of the other, or both take a tensor: tensors between them that no other instruction reads are
//! never stored. The joined kernel has the bits of its parts. An instruction moves only past others that do not use what it writes, nor write
//! what it uses.

mod chain;

use rustc_hash::FxHashMap;

use self::chain::{Group, Member};
use crate::bytes::Bytes;
use crate::kernel::Kernel;
use crate::places::MemoryId;
use crate::program::Instruction;

/// Joins functions of elements. `temporary` marks the memory that instructions alone use.
pub(crate) fn joined(instructions: Vec<Instruction>, temporary: &[bool]) -> Result<Vec<Instruction>, String> {
    let memories = Memories::new(&instructions, temporary);
    units(instructions, &memories).into_iter().map(|unit| unit.instruction(&memories)).collect()
}

/// Instructions in their new order, those of one kernel together.
fn units(instructions: Vec<Instruction>, memories: &Memories<'_>) -> Vec<Unit> {
    let units = instructions.into_iter().enumerate().map(|(number, instruction)| {
        let member = match &instruction.kernel {
            Kernel::Gpu(work) => work.function().map(|function| Member::new(number, &instruction, function)),
            _ => None,
        };
        let group = member.filter(|member| member.results().all(|memory| memories.temporary[memory.0]));
        let bytes = Bytes::of_memories(&instruction);
        Unit { numbers: vec![number], instructions: vec![instruction], bytes, group: group.map(Group::new) }
    });
    let mut units = units.collect();
    // First results with their readers: a reader that shares an operand with an earlier function would go there without them.
    for sharing in [Sharing::Results, Sharing::Operands] {
        units = joined_by(sharing, units, memories);
    }
    units
}

/// What joined functions have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sharing {
    /// One reads or overwrites results of the other.
    Results,
    /// Both read a tensor, or as above.
    Operands,
}

fn joined_by(sharing: Sharing, units: Vec<Unit>, memories: &Memories<'_>) -> Vec<Unit> {
    let mut joined = Vec::with_capacity(units.len());
    for unit in units {
        joined.push(unit);
        place_last(&mut joined, sharing, memories);
    }
    joined
}

/// Users of each piece of memory.
struct Memories<'m> {
    /// Numbers of the instructions that use it.
    users: FxHashMap<MemoryId, Vec<usize>>,
    temporary: &'m [bool],
}

impl<'m> Memories<'m> {
    fn new(instructions: &[Instruction], temporary: &'m [bool]) -> Memories<'m> {
        let mut users: FxHashMap<MemoryId, Vec<usize>> = FxHashMap::default();
        for (number, instruction) in instructions.iter().enumerate() {
            for &(memory, _) in &instruction.slots {
                users.entry(memory).or_default().push(number);
            }
        }
        Memories { users, temporary }
    }

    /// Whether an instruction outside of a group reads what the group's member `writer` stores in memory.
    fn is_read_outside(&self, memory: MemoryId, group: &Group, writer: usize) -> bool {
        let users = self.users.get(&memory).map_or(&[][..], Vec::as_slice);
        !self.temporary[memory.0] || users.iter().any(|&user| user > writer && !group.has(user))
    }
}

/// Instructions that become one.
struct Unit {
    /// Their numbers in the step.
    numbers: Vec<usize>,
    instructions: Vec<Instruction>,
    bytes: Vec<Bytes>,
    /// The functions of elements, where they are nothing else.
    group: Option<Group>,
}

impl Unit {
    fn instruction(mut self, memories: &Memories<'_>) -> Result<Instruction, String> {
        match self.group {
            Some(group) if self.instructions.len() > 1 => group.instruction(self.instructions, memories),
            _ => self.instructions.pop().ok_or_else(|| "no instruction is left".to_owned()),
        }
    }

    fn conflicts(&self, other: &Unit) -> bool {
        self.bytes.iter().any(|one| other.bytes.iter().any(|other| one.conflicts(other)))
    }
}

/// Joins the last unit with earlier ones as long as it can, the nearest first.
fn place_last(units: &mut Vec<Unit>, sharing: Sharing, memories: &Memories<'_>) {
    let mut at = units.len() - 1;
    while let Some((earlier, place)) =
        (0..at).rev().find_map(|earlier| Some((earlier, place(units, [earlier, at], sharing, memories)?)))
    {
        let later = units.remove(at);
        let mut unit = units.remove(earlier);
        unit.numbers.extend(later.numbers);
        unit.instructions.extend(later.instructions);
        unit.bytes.extend(later.bytes);
        if let (Some(group), Some(other)) = (&mut unit.group, later.group) {
            group.extend(other);
        }
        at = place;
        units.insert(at, unit);
    }
}

/// The place of two units as one: that of the earlier one, or that of the later one. `None` where they cannot be joined.
fn place(
    units: &[Unit],
    [earlier, later]: [usize; 2],
    sharing: Sharing,
    memories: &Memories<'_>,
) -> Option<usize> {
    let (one, other) = (units[earlier].group.as_ref()?, units[later].group.as_ref()?);
    if !one.joins(other, sharing, memories) {
        return None;
    }
    let between = &units[earlier + 1..later];
    if between.iter().all(|unit| !unit.conflicts(&units[later])) {
        return Some(earlier);
    }
    // The earlier one has left its place.
    between.iter().all(|unit| !unit.conflicts(&units[earlier])).then(|| later - 1)
}

#[cfg(test)]
mod tests;

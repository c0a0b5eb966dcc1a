//! Functions and annotations around the ops of a step: the optimizer's step, the functions of the backward pass.

use steptime_runtime::Instruction;
use steptime_step::{OpId, StepIr};

/// A function or an annotation around consecutive instructions.
#[derive(Debug, PartialEq)]
pub struct Scope {
    pub name: String,
    /// Whether it is a label around a piece of code.
    pub annotation: bool,
    /// The first instruction in it.
    pub first: usize,
    /// The last instruction in it.
    pub last: usize,
}

/// All scopes in the order of their begin, the outermost first.
pub fn scopes(step: &StepIr, instructions: &[Instruction]) -> Vec<Scope> {
    let around = |instruction: &Instruction| {
        let mut all: Vec<OpId> = step.around(instruction.op).skip(1).collect();
        all.reverse();
        all
    };
    let mut found = Vec::new();
    // Scopes that are open at the last instruction, with their place in the list.
    let mut open: Vec<(OpId, usize)> = Vec::new();
    for (at, instruction) in instructions.iter().enumerate() {
        let now = around(instruction);
        let same = open.iter().zip(&now).take_while(|(one, other)| one.0 == **other).count();
        open.truncate(same);
        for &op in &now[same..] {
            let row = &step.ops[op];
            open.push((op, found.len()));
            found.push(Scope { name: row.name.clone(), annotation: row.annotation, first: at, last: at });
        }
        open.iter().for_each(|&(_, scope)| found[scope].last = at);
    }
    found
}

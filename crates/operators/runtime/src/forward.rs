//! The forward pass alone, for evaluations.

use crate::error::Error;
use crate::session::{Engine, Session};
use crate::slices::Access;

/// Result of a forward pass.
#[derive(Debug, Clone, PartialEq)]
pub struct Outputs {
    /// Name of the op of the loss, such as `aten::binary_cross_entropy_with_logits`.
    pub loss_op: String,
    /// Its first operand: the logits or the outputs of the model, row by row.
    pub values: Vec<f32>,
    /// Loss of the batch.
    pub loss: f32,
}

impl Session {
    /// Runs the forward pass with the inputs that were fed last, of the first round, up to the loss. Parameters, optimizer states and the number of steps remain.
    ///
    /// # Errors
    /// Where an op fails, or the step has no loss.
    pub fn forward(&mut self) -> Result<Outputs, Error> {
        let no_loss = || Error::Order { why: "it has no loss".to_owned() };
        let &(memory, _) = self.program.losses.first().ok_or_else(no_loss)?;
        let [first, _] = self.program.plan.piece(memory).life.ok_or_else(no_loss)?;
        let Session { engine, program, numbers, steps, .. } = self;
        match engine {
            Engine::Cpu(..) => (0..=first).try_for_each(|at| self.instruction(at))?,
            Engine::Gpu(gpu) => gpu.forward(program, numbers, *steps, first)?,
        }
        let instruction = &self.program.instructions[first];
        let operand = instruction.uses.iter().find(|one| one.access == Access::Read).ok_or_else(no_loss)?;
        let place = &instruction.at[operand.arg.slot];
        let start = place.start + 4 * operand.arg.layout.offset();
        let mut values = vec![0.0_f32; operand.arg.len()];
        let bytes = bytemuck::cast_slice_mut(&mut values);
        match &mut self.engine {
            Engine::Cpu(_, regions) => {
                bytes.copy_from_slice(&regions[place.region as usize].bytes()[start..][..bytes.len()]);
            }
            Engine::Gpu(gpu) => gpu.read(place.region, start, bytes)?,
        }
        let loss_op = self.program.instructions[first].name.clone();
        Ok(Outputs { loss_op, values, loss: self.loss(1)? })
    }
}

//! Runs a program over its operands, block by block.

use steptime_tensor::{Layout, View, ViewMut};

use super::ElementwiseError;
use super::block::{Arg, apply};
use super::operand::{BLOCK, Frame, Place};
use super::program::{Program, Source, Target};
use crate::Cpu;
use crate::shared::Shared;

/// Number of blocks of one part of the work.
const PART: usize = 32;

/// An input of a program.
#[derive(Debug, Clone)]
pub enum Input<'a> {
    /// Any view that broadcasts to the outputs' shape.
    View(View<'a, f32>),
    /// The previous content of this output.
    InPlace(usize),
}

impl Program {
    /// Computes all outputs, which have one shape, from inputs that broadcast to it.
    ///
    /// # Errors
    ///
    /// Too few or too many inputs or outputs, or shapes that do not match.
    pub fn run(
        &self,
        cpu: &Cpu,
        inputs: &[Input<'_>],
        outputs: &mut [ViewMut<'_, f32>],
    ) -> Result<(), ElementwiseError> {
        let layouts = self.layouts(inputs, outputs)?;
        if outputs[0].is_empty() {
            return Ok(());
        }
        let frame = Frame::new(&layouts);
        let outputs: Vec<_> = outputs.iter_mut().map(|output| Shared::new(output.elements_mut())).collect();
        let blocks = frame.blocks();
        cpu.run(blocks.div_ceil(PART), |part| {
            let mut scratch = Scratch::new(self);
            for block in part * PART..blocks.min((part + 1) * PART) {
                self.block(cpu, &frame, block, inputs, &outputs, &mut scratch);
            }
        });
        Ok(())
    }

    /// The operands' layouts in the outputs' shape: inputs, then outputs.
    fn layouts(
        &self,
        inputs: &[Input<'_>],
        outputs: &[ViewMut<'_, f32>],
    ) -> Result<Vec<Layout>, ElementwiseError> {
        if inputs.len() != self.inputs {
            return Err(ElementwiseError::Inputs { needed: self.inputs, given: inputs.len() });
        }
        if outputs.len() != self.outputs {
            return Err(ElementwiseError::Outputs { needed: self.outputs, given: outputs.len() });
        }
        let first = outputs[0].shape();
        if let Some(index) = outputs.iter().position(|output| output.shape() != first) {
            let (shape, first) = (outputs[index].shape().to_vec(), first.to_vec());
            return Err(ElementwiseError::OutputShape { index, shape, first });
        }
        let mut layouts = Vec::with_capacity(inputs.len() + outputs.len());
        for (index, input) in inputs.iter().enumerate() {
            layouts.push(match *input {
                Input::View(ref view) => view
                    .layout()
                    .broadcast(first)
                    .map_err(|source| ElementwiseError::Input { index, source })?,
                Input::InPlace(output) => outputs
                    .get(output)
                    .ok_or(ElementwiseError::InPlace { index, output, outputs: outputs.len() })?
                    .layout()
                    .clone(),
            });
        }
        layouts.extend(outputs.iter().map(|output| output.layout().clone()));
        Ok(layouts)
    }

    fn block(
        &self,
        cpu: &Cpu,
        frame: &Frame,
        block: usize,
        inputs: &[Input<'_>],
        outputs: &[Shared<'_, f32>],
        scratch: &mut Scratch,
    ) {
        let len = frame.place(block, 0).len();
        let args: Vec<Arg<'_>> = inputs
            .iter()
            .zip(&mut scratch.inputs)
            .enumerate()
            .map(|(index, (input, copy))| copy.fetch(input, frame.place(block, index), outputs))
            .collect();
        for step in &self.steps {
            let output = match step.target {
                Target::Output(output) => Some((output, frame.place(block, self.inputs + output))),
                Target::Register(_) => None,
            };
            let register = match step.target {
                Target::Register(register) => register,
                Target::Output(_) => self.registers,
            };
            let mut own = std::mem::take(&mut scratch.registers[register]);
            let arg = |source: Source| match source {
                Source::Input(index) => args[index],
                Source::Constant(value) => Arg::All(value),
                Source::Register(register) => Arg::Each(&scratch.registers[register][..len]),
            };
            let operands = step.operands.map(arg);
            match output {
                Some((output, place)) if place.is_run() => {
                    // SAFETY: mutable views do not overlap, and each block is done by one part; inputs that are this
                    // output in place were copied.
                    let target = unsafe { outputs[output].range(place.start, len) };
                    apply(cpu.arch(), step.op, target, operands);
                }
                Some((output, place)) => {
                    apply(cpu.arch(), step.op, &mut own[..len], operands);
                    scatter(&outputs[output], place, &own[..len]);
                }
                None => apply(cpu.arch(), step.op, &mut own[..len], operands),
            }
            scratch.registers[register] = own;
        }
    }
}

/// Writes a block whose elements are not neighbours.
fn scatter(output: &Shared<'_, f32>, place: Place, from: &[f32]) {
    for (row, from) in from.chunks_exact(place.columns).enumerate() {
        for (column, &value) in from.iter().enumerate() {
            let at = place.start + row * place.row_stride + column * place.column_stride;
            // SAFETY: mutable views do not overlap, and each block is done by one part.
            unsafe { output.range(at, 1)[0] = value };
        }
    }
}

/// Buffers for the results of a part of the work.
struct Scratch {
    inputs: Vec<InputBlock>,
    /// Registers of the program, and one more for outputs that are not contiguous.
    registers: Vec<Vec<f32>>,
}

impl Scratch {
    fn new(program: &Program) -> Scratch {
        Scratch {
            inputs: (0..program.inputs).map(|_| InputBlock { values: Vec::new(), place: None }).collect(),
            registers: vec![vec![0.0; BLOCK]; program.registers + 1],
        }
    }
}

/// A block of an input, copied where its elements are not contiguous; with its source, since a bias is the same for
/// each block of rows.
struct InputBlock {
    values: Vec<f32>,
    place: Option<Place>,
}

impl InputBlock {
    fn fetch<'a>(&'a mut self, input: &'a Input<'_>, place: Place, outputs: &[Shared<'_, f32>]) -> Arg<'a> {
        match input {
            Input::View(view) if place.is_single() => Arg::All(view.elements()[place.start]),
            Input::View(view) if place.is_run() => {
                Arg::Each(&view.elements()[place.start..place.start + place.len()])
            }
            Input::View(view) => {
                if self.place != Some(place) {
                    self.values.resize(place.len(), 0.0);
                    place.gather(view.elements(), &mut self.values);
                    self.place = Some(place);
                }
                Arg::Each(&self.values)
            }
            Input::InPlace(output) => {
                self.values.clear();
                if place.is_run() {
                    // SAFETY: as below.
                    self.values
                        .extend_from_slice(unsafe { outputs[*output].range(place.start, place.len()) });
                    return Arg::Each(&self.values);
                }
                for row in 0..place.rows {
                    for column in 0..place.columns {
                        let at = place.start + row * place.row_stride + column * place.column_stride;
                        // SAFETY: mutable views do not overlap, and each block is done by one part.
                        self.values.push(unsafe { outputs[*output].range(at, 1)[0] });
                    }
                }
                Arg::Each(&self.values)
            }
        }
    }
}

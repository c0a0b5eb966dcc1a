//! Chains of elementwise operations on a GPU: a program of `steptime_ops::elementwise` as one kernel.
//!
//! The kernel is generated for the program and the operands' layouts: shapes and strides are constants in it,
//! dimensions that are contiguous in all operands are joined, and a thread processes four neighbouring elements where
//! all operands allow it. Each input is read once, and each output is written once; intermediate values stay in
//! registers. Additions, products, quotients and roots are bit-identical to the CPU's; `exp`, `tanh` and similar
//! functions come from CUDA's library.

mod source;

use steptime_ops::elementwise::{ElementwiseError, Program};
use steptime_tensor::Layout;

use self::source::source;
use crate::frame::Frame;
use crate::geometry::Geometry;
use crate::{Args, Device, Error, Grid, Kernel, Slice, SliceMut, Stream};

/// Threads of a block.
const THREADS: u32 = 256;

/// An input of a program.
#[derive(Debug, Clone, Copy)]
pub enum Input<'a> {
    /// Elements at the positions of the layout.
    Slice(Slice<'a, f32>),
    /// The previous content of this output; the layouts must be equal.
    InPlace(usize),
}

/// A program compiled for operands of these layouts.
#[derive(Debug)]
pub struct Elementwise {
    kernel: Kernel,
    frame: Frame,
    /// Number of elements that each operand must have.
    needed: Vec<usize>,
    inputs: usize,
    empty: bool,
}

impl Elementwise {
    /// Compiles a program for outputs of one shape and inputs that broadcast to it.
    ///
    /// # Errors
    ///
    /// Too few or too many layouts, or of shapes that do not match; outputs whose elements may overlap; no compiler.
    pub fn new(
        device: &Device,
        program: &Program,
        inputs: &[Layout],
        outputs: &[Layout],
    ) -> Result<Elementwise, Error> {
        let layouts = layouts(program, inputs, outputs)?;
        let empty = layouts[0].is_empty();
        // Nothing is launched for an empty shape, whatever its frame.
        let frame = if empty {
            Frame::new(&vec![Layout::contiguous(&[]).map_err(no_layout)?; layouts.len()])
        } else {
            Frame::new(&layouts)
        };
        if frame.threads() / THREADS as usize > i32::MAX as usize {
            return Err(Error::Unsupported {
                what: format!("an elementwise program over {:?}", layouts[0].shape()),
                remedy: "cut it into parts of fewer than 2^39 elements",
            });
        }
        let kernel = device.load(&source(program, &frame))?.kernel("elementwise")?;
        let needed = layouts.iter().map(|layout| layout.last().map_or(0, |last| last + 1)).collect();
        Ok(Elementwise { kernel, frame, needed, inputs: inputs.len(), empty })
    }

    /// Runs the program.
    ///
    /// # Errors
    ///
    /// Too few or too many operands, or operands that are too short or not aligned to 16 bytes.
    pub fn run(
        &self,
        stream: &Stream,
        inputs: &[Input<'_>],
        outputs: &mut [SliceMut<'_, f32>],
    ) -> Result<(), Error> {
        let needed = self.needed.len() - self.inputs;
        if inputs.len() != self.inputs {
            return Err(ElementwiseError::Inputs { needed: self.inputs, given: inputs.len() }.into());
        }
        if outputs.len() != needed {
            return Err(ElementwiseError::Outputs { needed, given: outputs.len() }.into());
        }
        let mut operands = Vec::with_capacity(self.needed.len());
        for (index, input) in inputs.iter().enumerate() {
            operands.push(match *input {
                Input::Slice(slice) => (slice.address(), slice.len()),
                Input::InPlace(output) => {
                    let (frame, other) = (&self.frame, self.inputs + output);
                    let same = output < needed
                        && frame.strides[index] == frame.strides[other]
                        && frame.offsets[index] == frame.offsets[other];
                    if !same {
                        return Err(ElementwiseError::InPlace { index, output, outputs: needed }.into());
                    }
                    (outputs[output].address(), outputs[output].len())
                }
            });
        }
        operands.extend(outputs.iter().map(|output| (output.address(), output.len())));
        for (&(address, found), &needed) in operands.iter().zip(&self.needed) {
            if found < needed {
                return Err(Error::Size { what: "an operand of an elementwise program", found, needed });
            }
            if self.frame.vector == 4 && !address.is_multiple_of(16) {
                return Err(Error::Unsupported {
                    what: "an operand of an elementwise program at an address that is not a multiple of 16"
                        .into(),
                    remedy: "say where it begins in its layout's offset, and give all of its buffer",
                });
            }
        }
        if self.empty {
            return Ok(());
        }
        let addresses: Vec<u64> = operands.iter().map(|&(address, _)| address).collect();
        let read = inputs.iter().filter_map(|input| match input {
            Input::Slice(slice) => Some(*slice),
            Input::InPlace(_) => None,
        });
        let args = read.fold(Args::new().array(&addresses), Args::reads);
        let args = outputs.iter().fold(args, |args, output| args.writes(output.as_ref()));
        // SAFETY: the argument is that of the kernel, which stays within the layouts; operands have the layouts'
        // lengths. All are named.
        unsafe { self.kernel.launch(stream, self.grid(), args) }
    }

    fn grid(&self) -> Grid {
        Grid::line(self.frame.threads().div_ceil(THREADS as usize) as u32, THREADS)
    }

    /// Launch geometry of the kernel.
    ///
    /// # Errors
    ///
    /// The driver does not report the number of registers.
    pub fn geometry(&self) -> Result<Geometry, Error> {
        Ok(Geometry {
            kernel: "elementwise",
            grid: self.grid(),
            axes: "x elements, the last dimension fastest",
            registers: Some(self.kernel.registers()?),
            lanes: format!("{} neighbouring elements a lane", self.frame.vector),
            busy: 1.0,
            bounds: "shapes by the host",
            divergence: "none but in the last block",
        })
    }
}

/// The operands' layouts in the outputs' shape: inputs, then outputs.
fn layouts(program: &Program, inputs: &[Layout], outputs: &[Layout]) -> Result<Vec<Layout>, Error> {
    let wrong = |error: ElementwiseError| Err(Error::from(error));
    if inputs.len() != program.inputs() {
        return wrong(ElementwiseError::Inputs { needed: program.inputs(), given: inputs.len() });
    }
    if outputs.len() != program.outputs() {
        return wrong(ElementwiseError::Outputs { needed: program.outputs(), given: outputs.len() });
    }
    let first = outputs[0].shape();
    if let Some(index) = outputs.iter().position(|output| output.shape() != first) {
        let (shape, first) = (outputs[index].shape().to_vec(), first.to_vec());
        return wrong(ElementwiseError::OutputShape { index, shape, first });
    }
    if let Some(output) = outputs.iter().find(|output| output.may_overlap()) {
        return Err(Error::Unsupported {
            what: format!("an output of shape {first:?} with strides {:?}", output.strides()),
            remedy: "give each element of an output a place of its own",
        });
    }
    let broadcast = |(index, input): (usize, &Layout)| {
        input.broadcast(first).map_err(|source| Error::from(ElementwiseError::Input { index, source }))
    };
    let mut layouts = inputs.iter().enumerate().map(broadcast).collect::<Result<Vec<_>, _>>()?;
    layouts.extend_from_slice(outputs);
    Ok(layouts)
}

fn no_layout(source: steptime_tensor::TensorError) -> Error {
    ElementwiseError::Input { index: 0, source }.into()
}

#[cfg(test)]
mod tests {
    use steptime_ops::elementwise::Expr;

    use super::*;

    fn layout(shape: &[usize]) -> Layout {
        Layout::contiguous(shape).unwrap()
    }

    #[test]
    fn operands_that_do_not_fit_are_refused() {
        let program = Program::new(&[Expr::input(0) + Expr::input(1)]).unwrap();
        let of = |inputs: &[Layout], outputs: &[Layout]| layouts(&program, inputs, outputs).map(|_| ());
        assert!(of(&[layout(&[2, 3]), layout(&[3])], &[layout(&[2, 3])]).is_ok());
        assert!(of(&[layout(&[2, 3])], &[layout(&[2, 3])]).is_err());
        assert!(of(&[layout(&[2, 3]), layout(&[2])], &[layout(&[2, 3])]).is_err());
        let error = of(&[layout(&[3]), layout(&[3])], &[Layout::new(&[3], &[0], 0).unwrap()]).unwrap_err();
        assert!(error.to_string().contains("place of its own"), "{error}");
    }
}

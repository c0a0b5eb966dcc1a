//! Chains of functions of typed operands on a GPU, each chain as one kernel: elementwise programs of `steptime_ops`, comparisons, choices by truth
//! values, filling, counting, conversions.
//!
//! The kernel is generated for the chain and the operands' layouts: shapes and strides are constants in it, dimensions that are contiguous in all
//! operands are joined, and a thread processes four neighbouring elements where all operands allow it. Each input is read once, and each output is
//! written once; intermediate values stay in registers.

mod chain;
mod function;
mod program;
mod source;

use steptime_ops::elementwise::ElementwiseError;
use steptime_tensor::{Layout, TensorError};

pub use self::chain::Chain;
pub use self::function::{Function, Type};
use self::source::source;
use crate::frame::Frame;
use crate::geometry::Geometry;
use crate::{Args, Device, Error, Grid, Kernel, Slice, SliceMut, Stream};

/// Threads of a block.
const THREADS: u32 = 256;

/// Largest number of operands of a kernel.
pub const MOST_OPERANDS: usize = 64;

/// An input of a chain: the bytes of a whole buffer, whose elements begin at the offset of their layout.
#[derive(Debug, Clone, Copy)]
pub enum Input<'a> {
    /// Elements at the positions of the layout.
    Slice(Slice<'a, u8>),
    /// The previous content of this output; types and layouts must be equal.
    InPlace(usize),
}

/// An operand: the bytes and the alignment that its buffer must have, and its elements.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Operand {
    bytes: usize,
    align: u64,
    r#type: Type,
    layout: Layout,
}

/// A chain compiled for operands of these layouts.
#[derive(Debug)]
pub struct Pointwise {
    /// `None` where there are no elements.
    work: Option<(Kernel, Grid, usize)>,
    inputs: Vec<Operand>,
    outputs: Vec<Operand>,
}

impl Pointwise {
    /// Compiles a chain for outputs of one shape and inputs that broadcast to it.
    ///
    /// # Errors
    ///
    /// Too few or too many layouts, or more than [`MOST_OPERANDS`]; shapes that do not match; outputs whose elements may overlap; no compiler.
    pub fn new(
        device: &Device,
        chain: &Chain,
        inputs: &[Layout],
        outputs: &[Layout],
    ) -> Result<Pointwise, Error> {
        let layouts = layouts(chain, inputs, outputs)?;
        let shape = layouts[inputs.len()].shape();
        let frame = (!layouts[inputs.len()].is_empty()).then(|| Frame::new(&layouts));
        let work = frame.as_ref().map(|frame| {
            let blocks = frame.threads().div_ceil(THREADS as usize);
            if blocks > i32::MAX as usize {
                return Err(Error::Unsupported {
                    what: format!("a function over {shape:?}"),
                    remedy: "cut it into parts of fewer than 2^39 elements",
                });
            }
            let kernel = device.load(&source(chain, frame))?.kernel("pointwise")?;
            Ok((kernel, Grid::line(blocks as u32, THREADS), frame.vector))
        });
        let mut operands = operands(&chain.operands(), &layouts, frame.as_ref());
        let outputs = operands.split_off(inputs.len());
        Ok(Pointwise { work: work.transpose()?, inputs: operands, outputs })
    }

    /// Runs the chain.
    ///
    /// # Errors
    ///
    /// Too few or too many operands, or operands that are too short or not aligned: to 16 bytes, or to four elements where these are fewer bytes.
    pub fn run(
        &self,
        stream: &Stream,
        inputs: &[Input<'_>],
        outputs: &mut [SliceMut<'_, u8>],
    ) -> Result<(), Error> {
        let counts = [(inputs.len(), self.inputs.len()), (outputs.len(), self.outputs.len())];
        for ((found, needed), what) in
            counts.into_iter().zip(["the inputs of a function", "the outputs of a function"])
        {
            if found != needed {
                return Err(Error::Size { what, found, needed });
            }
        }
        let mut addresses = Vec::with_capacity(inputs.len() + outputs.len());
        for (index, (input, own)) in inputs.iter().zip(&self.inputs).enumerate() {
            addresses.push(match *input {
                Input::Slice(slice) => own.address(slice)?,
                Input::InPlace(output) => match outputs.get(output).zip(self.outputs.get(output)) {
                    Some((slice, same)) if same == own => own.address(slice.as_ref())?,
                    _ => return Err(in_place(index, output, outputs.len())),
                },
            });
        }
        for (output, own) in outputs.iter().zip(&self.outputs) {
            addresses.push(own.address(output.as_ref())?);
        }
        let Some((kernel, grid, _)) = &self.work else { return Ok(()) };
        let read = inputs.iter().filter_map(|input| match input {
            Input::Slice(slice) => Some(*slice),
            Input::InPlace(_) => None,
        });
        let args = read.fold(Args::new().array(&addresses), Args::reads);
        let args = outputs.iter().fold(args, |args, output| args.writes(output.as_ref()));
        // SAFETY: the argument is that of the kernel, which stays within the layouts; operands have the layouts'
        // lengths and alignments. All are named.
        unsafe { kernel.launch(stream, *grid, args) }
    }

    /// Launch geometry of the kernel; `None` where there are no elements.
    ///
    /// # Errors
    ///
    /// The driver does not report the number of registers.
    pub fn geometry(&self) -> Result<Option<Geometry>, Error> {
        let Some((kernel, grid, vector)) = &self.work else { return Ok(None) };
        Ok(Some(Geometry {
            kernel: "pointwise",
            grid: *grid,
            axes: "x elements, the last dimension fastest",
            registers: Some(kernel.registers()?),
            lanes: format!("{vector} neighbouring elements a lane"),
            busy: 1.0,
            bounds: "shapes by the host",
            divergence: "none but in the last block",
        }))
    }
}

fn in_place(index: usize, output: usize, outputs: usize) -> Error {
    ElementwiseError::InPlace { index, output, outputs }.into()
}

impl Operand {
    /// The address of a buffer that the kernel can use.
    fn address(&self, slice: Slice<'_, u8>) -> Result<u64, Error> {
        let (found, needed) = (slice.len(), self.bytes);
        if found < needed {
            return Err(Error::Size { what: "the bytes of a function's operand", found, needed });
        }
        if !slice.address().is_multiple_of(self.align) {
            return Err(Error::Unsupported {
                what: format!(
                    "an operand of a function at an address that is not a multiple of {}",
                    self.align
                ),
                remedy: "say where it begins in its layout's offset, and give all of its buffer",
            });
        }
        Ok(slice.address())
    }
}

/// The operands' layouts in the outputs' shape: inputs, then outputs.
fn layouts(chain: &Chain, inputs: &[Layout], outputs: &[Layout]) -> Result<Vec<Layout>, Error> {
    let counts = [(inputs.len(), chain.inputs), (outputs.len(), chain.outputs.len().max(1))];
    for ((found, needed), what) in
        counts.into_iter().zip(["the inputs of a function", "the outputs of a function"])
    {
        if found != needed {
            return Err(Error::Size { what, found, needed });
        }
    }
    if inputs.len() + outputs.len() > MOST_OPERANDS {
        return Err(Error::Unsupported {
            what: format!("a function of {} operands", inputs.len() + outputs.len()),
            remedy: "cut it into several",
        });
    }
    let first = outputs[0].shape();
    if let Some(index) = outputs.iter().position(|output| output.shape() != first) {
        let (shape, first) = (outputs[index].shape().to_vec(), first.to_vec());
        return Err(ElementwiseError::OutputShape { index, shape, first }.into());
    }
    if let Some(output) = outputs.iter().find(|output| output.may_overlap()) {
        return Err(Error::Unsupported {
            what: format!("an output of shape {first:?} with strides {:?}", output.strides()),
            remedy: "give each element of an output a place of its own",
        });
    }
    let broadcast = |(index, input): (usize, &Layout)| {
        let wrong = |source: TensorError| Error::from(ElementwiseError::Input { index, source });
        input.broadcast(first).map_err(wrong)
    };
    let mut layouts = inputs.iter().enumerate().map(broadcast).collect::<Result<Vec<_>, _>>()?;
    layouts.extend_from_slice(outputs);
    Ok(layouts)
}

/// The operands of a kernel over this frame.
fn operands(types: &[Type], layouts: &[Layout], frame: Option<&Frame>) -> Vec<Operand> {
    let operand = |(index, (&r#type, layout)): (usize, (&Type, &Layout))| {
        let size = r#type.size();
        let is_quad = frame.is_some_and(|frame| frame.is_quad(index));
        let align = if is_quad { (4 * size).min(16) } else { size } as u64;
        let bytes = layout.last().map_or(0, |last| last.saturating_add(1).saturating_mul(size));
        Operand { bytes, align, r#type, layout: layout.clone() }
    };
    types.iter().zip(layouts).enumerate().map(operand).collect()
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;

    fn layout(shape: &[usize]) -> Layout {
        Layout::contiguous(shape).unwrap()
    }

    fn choice() -> Chain {
        Chain::from_function(Function::Where, &[Type::Bool, Type::F32, Type::Bf16], &[Type::F32]).unwrap()
    }

    #[test]
    fn needs_are_in_bytes() {
        let chain = choice();
        let layouts = layouts(&chain, &[layout(&[6, 8]), layout(&[8]), layout(&[6, 1])], &[layout(&[6, 8])]);
        let layouts = layouts.unwrap();
        let found = |frame: Option<&Frame>| {
            let operands = operands(&chain.operands(), &layouts, frame);
            operands.iter().map(|own| (own.bytes, own.align)).collect::<Vec<_>>()
        };
        assert_eq!(found(Some(&Frame::new(&layouts))), [(48, 4), (32, 16), (12, 2), (192, 16)]);
        assert_eq!(found(None), [(48, 1), (32, 4), (12, 2), (192, 4)]);
    }

    #[test]
    fn operands_that_do_not_fit_are_refused() {
        let chain = choice();
        let error = |inputs: &[Layout], outputs: &[Layout]| {
            layouts(&chain, inputs, outputs).map(|_| ()).unwrap_err().to_string()
        };
        let (to, row) = (layout(&[2, 3]), layout(&[3]));
        assert!(error(&[to.clone(), row.clone(), layout(&[2])], from_ref(&to)).contains("input 2"));
        assert!(error(&[to.clone(), row.clone()], from_ref(&to)).contains("3 are needed"));
        assert!(error(&[to.clone(), row.clone(), row.clone()], &[]).contains("1 are needed"));
        let overlapping = Layout::new(&[3], &[0], 0).unwrap();
        assert!(error(&[row.clone(), row.clone(), row], &[overlapping]).contains("place of its own"));
    }
}

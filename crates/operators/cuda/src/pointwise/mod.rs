//! Functions of typed operands on a GPU: comparisons, choices by truth values, filling, counting, conversions.
//!
//! The kernel is generated for the function and the operands' layouts, as those of [`crate::elementwise`] are: shapes
//! and strides are constants, dimensions that are contiguous in all operands are joined, and a thread processes four
//! neighbouring elements where all operands allow it. Results have the bits of the same Rust expressions.

mod function;
mod source;

use steptime_ops::elementwise::ElementwiseError;
use steptime_tensor::Layout;

pub use self::function::{Function, Operand, Type};
use self::source::source;
use crate::frame::Frame;
use crate::{Args, Device, Error, Grid, Kernel, Slice, SliceMut, Stream};

/// Threads of a block.
const THREADS: u32 = 256;

/// Bytes and alignment that an operand's buffer must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Need {
    bytes: usize,
    align: u64,
}

/// A function compiled for operands of these layouts and types.
#[derive(Debug)]
pub struct Pointwise {
    /// `None` where there are no elements.
    work: Option<(Kernel, Grid)>,
    /// Needs of the inputs, then that of the output.
    needs: Vec<Need>,
}

impl Pointwise {
    /// Compiles a function for an output and inputs that broadcast to it.
    ///
    /// # Errors
    ///
    /// Operands whose number or types are not those of the function; shapes that do not match; an output whose elements
    /// may overlap; no compiler.
    pub fn new(
        device: &Device,
        function: Function,
        inputs: &[Operand],
        output: &Operand,
    ) -> Result<Pointwise, Error> {
        let types: Vec<Type> = inputs.iter().map(|input| input.r#type).collect();
        function.check(&types, output.r#type)?;
        let layouts = layouts(inputs, output)?;
        let frame = (!output.layout.is_empty()).then(|| Frame::new(&layouts));
        let needs = needs(inputs.iter().chain([output]), &layouts, frame.as_ref());
        let work = frame.map(|frame| {
            let blocks = frame.threads().div_ceil(THREADS as usize);
            if blocks > i32::MAX as usize {
                return Err(Error::Unsupported {
                    what: format!("a function over {:?}", output.layout.shape()),
                    remedy: "cut it into parts of fewer than 2^39 elements",
                });
            }
            let kernel =
                device.load(&source(function, &types, output.r#type, &frame))?.kernel("pointwise")?;
            Ok((kernel, Grid::line(blocks as u32, THREADS)))
        });
        Ok(Pointwise { work: work.transpose()?, needs })
    }

    /// Runs the function. Operands are the bytes of whole buffers: their elements begin at the offsets of their layouts.
    ///
    /// # Errors
    ///
    /// Too few or too many inputs, or operands that are too short or not aligned: to 16 bytes, or to four elements where
    /// these are fewer bytes.
    pub fn run(
        &self,
        stream: &Stream,
        inputs: &[Slice<'_, u8>],
        output: &mut SliceMut<'_, u8>,
    ) -> Result<(), Error> {
        let needed = self.needs.len() - 1;
        if inputs.len() != needed {
            return Err(Error::Size { what: "the inputs of a function", found: inputs.len(), needed });
        }
        for (operand, need) in inputs.iter().copied().chain([output.as_ref()]).zip(&self.needs) {
            let (found, needed) = (operand.len(), need.bytes);
            if found < needed {
                return Err(Error::Size { what: "the bytes of a function's operand", found, needed });
            }
            if !operand.address().is_multiple_of(need.align) {
                return Err(Error::Unsupported {
                    what: format!(
                        "an operand of a function at an address that is not a multiple of {}",
                        need.align
                    ),
                    remedy: "say where it begins in its layout's offset, and give all of its buffer",
                });
            }
        }
        let Some((kernel, grid)) = &self.work else {
            return Ok(());
        };
        let addresses: Vec<u64> =
            inputs.iter().map(|input| input.address()).chain([output.address()]).collect();
        let args = inputs.iter().copied().fold(Args::new().array(&addresses), Args::reads);
        let args = args.writes(output.as_ref());
        // SAFETY: the argument is that of the kernel, which stays within the layouts; operands have the layouts'
        // lengths and alignments. All are named.
        unsafe { kernel.launch(stream, *grid, args) }
    }
}

/// The operands' layouts in the output's shape: inputs, then the output.
fn layouts(inputs: &[Operand], output: &Operand) -> Result<Vec<Layout>, Error> {
    let to = &output.layout;
    if to.may_overlap() {
        return Err(Error::Unsupported {
            what: format!("an output of shape {:?} with strides {:?}", to.shape(), to.strides()),
            remedy: "give each element of an output a place of its own",
        });
    }
    let broadcast = |(index, input): (usize, &Operand)| {
        let layout = input.layout.broadcast(to.shape());
        layout.map_err(|source| Error::from(ElementwiseError::Input { index, source }))
    };
    let mut layouts = inputs.iter().enumerate().map(broadcast).collect::<Result<Vec<_>, _>>()?;
    layouts.push(to.clone());
    Ok(layouts)
}

/// Bytes and alignments of the operands' buffers.
fn needs<'a>(
    operands: impl Iterator<Item = &'a Operand>,
    layouts: &[Layout],
    frame: Option<&Frame>,
) -> Vec<Need> {
    let need = |(index, (operand, layout)): (usize, (&Operand, &Layout))| {
        let size = operand.r#type.size();
        let is_quad = frame.is_some_and(|frame| frame.is_quad(index));
        let align = if is_quad { (4 * size).min(16) } else { size };
        let bytes = layout.last().map_or(0, |last| last.saturating_add(1).saturating_mul(size));
        Need { bytes, align: align as u64 }
    };
    operands.zip(layouts).enumerate().map(need).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operand(shape: &[usize], r#type: Type) -> Operand {
        Operand { layout: Layout::contiguous(shape).unwrap(), r#type }
    }

    #[test]
    fn needs_are_in_bytes() {
        let output = operand(&[6, 8], Type::Bool);
        let inputs = [operand(&[8], Type::I64), operand(&[6, 1], Type::F32)];
        let layouts = layouts(&inputs, &output).unwrap();
        let found = |frame: Option<&Frame>| {
            let needs = needs(inputs.iter().chain([&output]), &layouts, frame);
            needs.iter().map(|need| (need.bytes, need.align)).collect::<Vec<_>>()
        };
        assert_eq!(found(Some(&Frame::new(&layouts))), [(64, 16), (24, 4), (48, 4)]);
        assert_eq!(found(None), [(64, 8), (24, 4), (48, 1)]);
    }

    #[test]
    fn operands_that_do_not_fit_are_refused() {
        let error = |inputs: &[Operand], output| layouts(inputs, output).unwrap_err().to_string();
        let to = operand(&[2, 3], Type::F32);
        assert!(error(&[operand(&[2], Type::F32)], &to).contains("input 0"));
        let overlapping = Operand { layout: Layout::new(&[3], &[0], 0).unwrap(), r#type: Type::F32 };
        assert!(error(&[], &overlapping).contains("place of its own"));
    }
}

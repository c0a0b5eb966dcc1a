//! Chains of elementwise operations on a GPU: a program of `steptime_ops::elementwise` as one kernel.
//!
//! The kernel is written for the program and the operands' layouts: shapes and strides are constants in it, dimensions
//! that lie together in all operands are one, and a thread takes four neighbouring elements where all operands allow.
//! Each input is read once, each output written once; registers hold all that is in between. Additions, products,
//! quotients and roots have the bits of the CPU's; `exp`, `tanh` and their like come from CUDA's library.

use std::fmt::Write;

use steptime_ops::elementwise::{Binary, ElementwiseError, Op, Program, Source as From, Target, Unary};
use steptime_tensor::{Joined, Layout};

use crate::geometry::Geometry;
use crate::{Args, Device, Error, Grid, Kernel, Slice, SliceMut, Source, Stream};

/// Threads of a block.
const THREADS: u32 = 256;

/// An input of a program.
#[derive(Debug, Clone, Copy)]
pub enum Input<'a> {
    /// Elements at the positions that the layout says.
    Slice(Slice<'a, f32>),
    /// What this output held before; the layouts must be the same.
    InPlace(usize),
}

/// The operands' common shape with as few dimensions as strides allow.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Frame {
    shape: Vec<usize>,
    /// For each operand its strides.
    strides: Vec<Vec<usize>>,
    offsets: Vec<usize>,
    /// Neighbouring elements of a thread.
    vector: usize,
}

impl Frame {
    /// Of layouts of one shape.
    fn new(layouts: &[Layout]) -> Frame {
        let Joined { mut shape, mut strides } = Joined::new(layouts);
        if shape.is_empty() {
            shape.push(1);
            strides.iter_mut().for_each(|strides| strides.push(1));
        }
        let offsets: Vec<usize> = layouts.iter().map(Layout::offset).collect();
        let last = shape.len() - 1;
        let quads = |strides: &Vec<usize>, offset: &usize| match strides[last] {
            0 => true,
            1 => strides[..last].iter().chain([offset]).all(|stride| stride.is_multiple_of(4)),
            _ => false,
        };
        let all = strides.iter().zip(&offsets).all(|(strides, offset)| quads(strides, offset));
        let vector = if shape[last].is_multiple_of(4) && all { 4 } else { 1 };
        Frame { shape, strides, offsets, vector }
    }

    fn threads(&self) -> usize {
        self.shape.iter().product::<usize>() / self.vector
    }

    /// Whether a thread's elements of this operand are neighbours in memory, to be moved at once.
    fn is_quad(&self, operand: usize) -> bool {
        self.vector == 4 && self.strides[operand].last() == Some(&1)
    }

    /// Code that finds the position `p{operand}` of each operand's first element for thread `at`.
    fn positions(&self, code: &mut String) {
        let last = self.shape.len() - 1;
        for (axis, &size) in self.shape.iter().enumerate().rev() {
            let (size, step) = if axis == last { (size / self.vector, self.vector) } else { (size, 1) };
            let _ = if axis == 0 {
                writeln!(code, "    Index i0 = at * {step};")
            } else {
                writeln!(code, "    Index i{axis} = at % {size}u * {step}; at /= {size}u;")
            };
        }
        for (operand, (strides, offset)) in self.strides.iter().zip(&self.offsets).enumerate() {
            let _ = write!(code, "    Place p{operand} = {offset}u");
            for (axis, stride) in strides.iter().enumerate().filter(|&(_, &stride)| stride > 0) {
                let _ = write!(code, " + i{axis} * (Place){stride}u");
            }
            code.push_str(";\n");
        }
    }
}

/// The functions that programs call.
const FUNCTIONS: &str = "\
struct Operands { float *at[OPERANDS]; };
__device__ __forceinline__ float relu(float x) { return x < 0.0f ? 0.0f : x; }
__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
__device__ __forceinline__ float get(const float4 &v, int k) { return k == 0 ? v.x : k == 1 ? v.y : k == 2 ? v.z : v.w; }
__device__ __forceinline__ void set(float4 &v, int k, float x) { (k == 0 ? v.x : k == 1 ? v.y : k == 2 ? v.z : v.w) = x; }
";

fn operand(from: From) -> String {
    match from {
        From::Input(input) => format!("x{input}"),
        From::Constant(value) => format!("__uint_as_float({}u)", value.to_bits()),
        From::Register(register) => format!("r{register}"),
    }
}

fn expression(op: Op, operands: [From; 3]) -> String {
    let [a, b, c] = operands.map(operand);
    match op {
        Op::Copy => a,
        Op::MulAdd => format!("fmaf({a}, {b}, {c})"),
        Op::Binary(Binary::Add) => format!("{a} + {b}"),
        Op::Binary(Binary::Sub) => format!("{a} - {b}"),
        Op::Binary(Binary::Mul) => format!("{a} * {b}"),
        Op::Binary(Binary::Div) => format!("{a} / {b}"),
        Op::Unary(Unary::Neg) => format!("-{a}"),
        Op::Unary(Unary::Abs) => format!("fabsf({a})"),
        Op::Unary(Unary::Sqrt) => format!("sqrtf({a})"),
        Op::Unary(Unary::Exp) => format!("expf({a})"),
        Op::Unary(Unary::Relu) => format!("relu({a})"),
        Op::Unary(Unary::Step) => format!("({a} > 0.0f ? 1.0f : 0.0f)"),
        Op::Unary(Unary::Sigmoid) => format!("sigmoid({a})"),
        Op::Unary(Unary::Tanh) => format!("tanhf({a})"),
        Op::Unary(Unary::NormalCdf) => format!("normcdff({a})"),
    }
}

/// The kernel's source.
fn source(program: &Program, frame: &Frame) -> Source {
    let (inputs, outputs, vector) = (program.inputs(), program.outputs(), frame.vector);
    let reach = |(strides, offset): (&Vec<usize>, &usize)| {
        offset + strides.iter().zip(&frame.shape).map(|(stride, size)| stride * (size - 1)).sum::<usize>()
    };
    let reach = frame.strides.iter().zip(&frame.offsets).map(reach).max().unwrap_or(0);
    let narrow = |wide: bool| if wide { "unsigned long long" } else { "unsigned int" };
    let mut code = format!("#define OPERANDS {}\n{FUNCTIONS}", inputs + outputs);
    let _ = writeln!(code, "typedef {} Index;", narrow(frame.threads() * vector > 1 << 31));
    let _ = writeln!(code, "typedef {} Place;", narrow(reach > 1 << 31));
    let _ = writeln!(
        code,
        "extern \"C\" __global__ void __launch_bounds__({THREADS}) elementwise(Operands to) {{"
    );
    let _ = writeln!(code, "    Index at = (Index)blockIdx.x * {THREADS}u + threadIdx.x;");
    let _ = writeln!(code, "    if (at >= {}u) return;", frame.threads());
    frame.positions(&mut code);
    for input in 0..inputs {
        let _ = if frame.is_quad(input) {
            writeln!(code, "    float4 v{input} = *(const float4 *)(to.at[{input}] + p{input});")
        } else {
            writeln!(code, "    float v{input} = to.at[{input}][p{input}];")
        };
    }
    for output in inputs..inputs + outputs {
        let _ = writeln!(code, "    {} v{output};", if frame.is_quad(output) { "float4" } else { "float" });
    }
    let _ = writeln!(code, "#pragma unroll\n    for (int k = 0; k < {vector}; k++) {{");
    for input in 0..inputs {
        let value = if frame.is_quad(input) { format!("get(v{input}, k)") } else { format!("v{input}") };
        let _ = writeln!(code, "        float x{input} = {value};");
    }
    let targets = program.steps().iter().filter_map(|step| match step.target {
        Target::Register(register) => Some(register),
        Target::Output(_) => None,
    });
    for register in 0..targets.max().map_or(0, |last| last + 1) {
        let _ = writeln!(code, "        float r{register};");
    }
    for step in program.steps() {
        let value = expression(step.op, step.operands);
        let _ = match step.target {
            Target::Register(register) => writeln!(code, "        r{register} = {value};"),
            Target::Output(output) if frame.is_quad(inputs + output) => {
                writeln!(code, "        set(v{}, k, {value});", inputs + output)
            }
            Target::Output(output) => writeln!(code, "        v{} = {value};", inputs + output),
        };
    }
    code.push_str("    }\n");
    for output in inputs..inputs + outputs {
        let kind = if frame.is_quad(output) { "*(float4 *)(to" } else { "*(to" };
        let _ = writeln!(code, "    {kind}.at[{output}] + p{output}) = v{output};");
    }
    code.push_str("}\n");
    Source::new("elementwise.cu", code).option("--fmad=false")
}

/// A program compiled for operands of these layouts.
#[derive(Debug)]
pub struct Elementwise {
    kernel: Kernel,
    frame: Frame,
    /// Elements that each operand must have.
    needed: Vec<usize>,
    inputs: usize,
    empty: bool,
}

impl Elementwise {
    /// Compiles a program for outputs of one shape and inputs that broadcast to it.
    ///
    /// # Errors
    ///
    /// Layouts too few or too many, or of shapes that do not match; outputs whose elements may overlap; no compiler.
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

    /// Runs it.
    ///
    /// # Errors
    ///
    /// Operands too few, too many, too short, or not aligned to 16 bytes.
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
                    what: "an operand of an elementwise program at an address that is no multiple of 16"
                        .into(),
                    remedy: "say where it begins in its layout's offset, and give all of its buffer",
                });
            }
        }
        if self.empty {
            return Ok(());
        }
        let addresses: Vec<u64> = operands.iter().map(|&(address, _)| address).collect();
        // SAFETY: the argument is that of the kernel, which keeps to the layouts; operands are as long as those say.
        unsafe { self.kernel.launch(stream, self.grid(), Args::new().array(&addresses)) }
    }

    fn grid(&self) -> Grid {
        Grid::line(self.frame.threads().div_ceil(THREADS as usize) as u32, THREADS)
    }

    /// How it is launched.
    ///
    /// # Errors
    ///
    /// The driver refuses to say how many registers it takes.
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
    use crate::{Build, Capability, CubinCache, nvrtc_version};

    fn layout(shape: &[usize]) -> Layout {
        Layout::contiguous(shape).unwrap()
    }

    #[test]
    fn dimensions_that_lie_together_are_one() {
        let frame = Frame::new(&[layout(&[3, 4, 8]), layout(&[3, 4, 8])]);
        assert_eq!((frame.shape, frame.vector), (vec![96], 4));
        let bias = layout(&[8]).broadcast(&[3, 4, 8]).unwrap();
        let frame = Frame::new(&[bias, layout(&[3, 4, 8])]);
        assert_eq!((frame.shape, frame.vector), (vec![12, 8], 4));
        let turned = layout(&[8, 6]).transpose(0, 1).unwrap();
        let frame = Frame::new(&[turned, layout(&[6, 8])]);
        assert_eq!((frame.shape, frame.vector), (vec![6, 8], 1));
        assert_eq!(Frame::new(&[layout(&[1, 1])]).shape, [1]);
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

    #[test]
    fn every_operation_compiles() {
        let Ok((major, _)) = nvrtc_version() else {
            return eprintln!("skipped: no libnvrtc");
        };
        let folder = tempfile::tempdir().unwrap();
        let cache = CubinCache::at(folder.path());
        let x = || Expr::input(0);
        let all = [
            x().gelu() + x().silu() * Expr::input(1),
            (x().abs().sqrt() / 3.0 - x().exp()).tanh(),
            -x().relu() + x().unary(Unary::Step),
            x(),
        ];
        let program = Program::new(&all).unwrap();
        for shape in [vec![64, 8], vec![5, 3, 7]] {
            let mut all = vec![layout(&shape), layout(&shape[shape.len() - 1..]).broadcast(&shape).unwrap()];
            all.extend(vec![layout(&shape); 4]);
            let source = source(&program, &Frame::new(&all));
            let build = Build::new(&source, Capability { major: 9, minor: 0 }, major * 1000, &cache);
            assert!(build.is_ok(), "{}", build.unwrap_err());
        }
    }
}

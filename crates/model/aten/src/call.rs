//! Call of an op, with its arguments.

use smallvec::SmallVec;

use crate::dtype::Dtype;
use crate::kernel::{KernelCall, Slot};
use crate::memory_key::Place;

/// Location of a tensor's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Device {
    /// GPU memory.
    #[default]
    Cuda,
    /// Host memory; the driver stages copies from and to it.
    Cpu,
    /// Page-locked host memory.
    Pinned,
    /// Not recorded.
    Unknown,
}

/// Tensor as argument or result of an op.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tensor {
    /// Shape of the tensor.
    pub shape: SmallVec<[i64; 5]>,
    /// Strides in elements, of the same length as the shape; empty for a sparse tensor.
    pub strides: SmallVec<[i64; 5]>,
    /// Type of the elements.
    pub dtype: Dtype,
    /// Location of its memory.
    pub device: Device,
    /// Offset of the first element in the storage, in elements; matters for alignment only.
    pub offset: u64,
    /// Identity of its storage.
    pub place: Place,
}

/// Argument or return. Its tensors are described directly, or by an id if they are in a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Arg<T = Tensor> {
    /// Absent, or of a kind that the recorder does not write.
    #[default]
    None,
    /// Single tensor.
    Tensor(T),
    /// List of tensors.
    Tensors(Vec<T>),
    /// Truth value.
    Bool(bool),
    /// Integer.
    Int(i64),
    /// Floating-point number.
    Float(f64),
    /// List of integers, or of truth values as 0 and 1.
    Ints(SmallVec<[i64; 4]>),
    /// List of floating-point numbers.
    Floats(Vec<f64>),
    /// Text, or a name (type, layout, device).
    Text(String),
}

/// PyTorch's global settings, which select kernels but are not among an op's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Settings {
    /// `torch.backends.cuda.matmul.allow_tf32`; off by default.
    pub matmul_tf32: bool,
    /// `torch.backends.cudnn.allow_tf32`; on by default.
    pub conv_tf32: bool,
    /// Whether products, dense gradients of tables and optimizers run as in `steptime-runtime`; off by default.
    pub runtime: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { matmul_tf32: false, conv_tf32: true, runtime: false }
    }
}

/// Call of an op.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OpCall {
    /// Name of the op, for example `aten::addmm`.
    pub name: String,
    /// Arguments, one for each that the schema declares.
    pub inputs: Vec<Arg>,
    /// Results, if recorded. Otherwise the op's shape rule computes them.
    pub outputs: Vec<Arg>,
    /// PyTorch's global settings.
    pub settings: Settings,
}

impl Tensor {
    /// Returns a contiguous tensor on the GPU.
    #[must_use]
    pub fn contiguous(shape: &[i64], dtype: Dtype) -> Tensor {
        Tensor {
            shape: shape.into(),
            strides: contiguous_strides(shape),
            dtype,
            device: Device::Cuda,
            offset: 0,
            place: Place::UNKNOWN,
        }
    }

    /// Returns a strided tensor on the GPU. Strides of another length than the shape's mean contiguous.
    #[must_use]
    pub fn strided(shape: &[i64], strides: &[i64], dtype: Dtype) -> Tensor {
        let strides = if strides.len() == shape.len() { strides.into() } else { contiguous_strides(shape) };
        Tensor { shape: shape.into(), strides, dtype, device: Device::Cuda, offset: 0, place: Place::UNKNOWN }
    }

    /// Returns the number of elements. A negative size counts as zero.
    #[must_use]
    pub fn numel(&self) -> u64 {
        self.shape.iter().fold(1, |n: u64, &size| n.saturating_mul(u64::try_from(size).unwrap_or(0)))
    }

    /// Returns the bytes of its elements.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.numel().saturating_mul(self.dtype.size())
    }

    /// Returns the bytes of distinct elements: those of broadcast dimensions (stride 0) count once.
    #[must_use]
    pub fn distinct_bytes(&self) -> u64 {
        let dims = self.shape.iter().zip(&self.strides);
        let distinct = dims.map(|(&size, &stride)| if stride == 0 { size.min(1) } else { size });
        distinct
            .fold(1, |n: u64, size| n.saturating_mul(u64::try_from(size).unwrap_or(0)))
            .saturating_mul(self.dtype.size())
    }

    /// Whether it is sparse: its values and indices are stored in other tensors.
    #[must_use]
    pub fn is_sparse(&self) -> bool {
        self.strides.len() != self.shape.len()
    }

    /// Whether its elements are adjacent in row-major order.
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        let mut expected = 1;
        for (&size, &stride) in self.shape.iter().zip(&self.strides).rev() {
            if size != 1 && stride != expected {
                return self.numel() == 0;
            }
            expected = size.max(1).saturating_mul(expected);
        }
        true
    }

    /// Whether its elements are adjacent in some order of its dimensions.
    #[must_use]
    pub fn is_dense(&self) -> bool {
        let mut dims: SmallVec<[(i64, i64); 5]> = self
            .strides
            .iter()
            .copied()
            .zip(self.shape.iter().copied())
            .filter(|&(_, size)| size != 1)
            .collect();
        dims.sort_unstable();
        let mut expected = 1;
        for (stride, size) in dims {
            if stride != expected {
                return self.numel() == 0;
            }
            expected = size.max(1).saturating_mul(expected);
        }
        true
    }

    /// Whether it is a 4-d (or 5-d) tensor whose channels are adjacent, and that is not also contiguous.
    #[must_use]
    pub fn is_channels_last(&self) -> bool {
        matches!(self.shape.len(), 4 | 5)
            && self.strides.get(1) == Some(&1)
            && self.shape[1] > 1
            && !self.is_contiguous()
    }

    /// Returns the size of a dimension; negative dimensions count from the end, missing ones are 1.
    #[must_use]
    pub fn size(&self, dim: i64) -> i64 {
        let rank = self.shape.len() as i64;
        let at = if dim < 0 { dim + rank } else { dim };
        usize::try_from(at).ok().and_then(|at| self.shape.get(at)).copied().unwrap_or(1)
    }
}

fn contiguous_strides(shape: &[i64]) -> SmallVec<[i64; 5]> {
    let mut strides: SmallVec<[i64; 5]> = smallvec::smallvec![1; shape.len()];
    for at in (1..shape.len()).rev() {
        strides[at - 1] = strides[at].saturating_mul(shape[at].max(1));
    }
    strides
}

impl OpCall {
    /// Returns a call with arguments and default settings.
    #[must_use]
    pub fn new(name: &str, inputs: Vec<Arg>) -> OpCall {
        OpCall { name: name.into(), inputs, ..OpCall::default() }
    }

    /// Returns the tensor at an argument: itself, or the first of a list.
    #[must_use]
    pub fn tensor_at(&self, arg: usize) -> Option<&Tensor> {
        match self.inputs.get(arg)? {
            Arg::Tensor(tensor) => Some(tensor),
            Arg::Tensors(list) => list.first(),
            _ => None,
        }
    }

    /// Returns all tensors at an argument.
    #[must_use]
    pub fn tensors_at(&self, arg: usize) -> &[Tensor] {
        self.inputs.get(arg).map_or(&[], Arg::tensors)
    }

    /// Returns the tensor at a return, if recorded.
    #[must_use]
    pub fn output(&self, ret: usize) -> Option<&Tensor> {
        self.outputs.get(ret).and_then(|arg| arg.tensors().first())
    }

    /// Returns the place of each operand of a kernel that it launches.
    #[must_use]
    pub fn places(&self, kernel: &KernelCall) -> SmallVec<[Place; 4]> {
        let at = |args: &[Arg], arg: u16, at: u16| {
            Some(args.get(usize::from(arg))?.tensors().get(usize::from(at))?.place)
        };
        let place = |slot| match slot {
            Slot::Input(arg, number) => at(&self.inputs, arg, number),
            Slot::Output(ret, number) => at(&self.outputs, ret, number),
            Slot::Scratch => None,
        };
        kernel.operands.iter().map(|operand| place(operand.slot).unwrap_or_default()).collect()
    }

    /// Returns every input tensor, with its argument and its position in the list.
    pub fn input_tensors(&self) -> impl Iterator<Item = (usize, usize, &Tensor)> {
        let all = self.inputs.iter().enumerate();
        all.flat_map(|(arg, input)| input.tensors().iter().enumerate().map(move |(at, t)| (arg, at, t)))
    }

    /// Returns the whole number at an argument; a truth value counts as 0 or 1.
    #[must_use]
    pub fn int_at(&self, arg: usize) -> Option<i64> {
        match self.inputs.get(arg)? {
            Arg::Int(value) => Some(*value),
            Arg::Bool(value) => Some(i64::from(*value)),
            Arg::Float(value) if value.fract() == 0.0 => Some(*value as i64),
            _ => None,
        }
    }

    /// Returns the number at an argument.
    #[must_use]
    pub fn float_at(&self, arg: usize) -> Option<f64> {
        match self.inputs.get(arg)? {
            Arg::Int(value) => Some(*value as f64),
            Arg::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the truth value at an argument.
    #[must_use]
    pub fn flag_at(&self, arg: usize) -> Option<bool> {
        self.int_at(arg).map(|value| value != 0)
    }

    /// Returns the whole numbers at an argument; a single number becomes a list of one.
    #[must_use]
    pub fn ints_at(&self, arg: usize) -> Option<SmallVec<[i64; 4]>> {
        match self.inputs.get(arg)? {
            Arg::Ints(list) => Some(list.clone()),
            Arg::Int(value) => Some(smallvec::smallvec![*value]),
            _ => None,
        }
    }
}

impl<T> Arg<T> {
    /// Returns the tensors of the argument: itself, or those of its list.
    #[must_use]
    pub fn tensors(&self) -> &[T] {
        match self {
            Arg::Tensor(tensor) => std::slice::from_ref(tensor),
            Arg::Tensors(list) => list,
            _ => &[],
        }
    }

    /// Returns the tensors of the argument as mutable.
    pub fn tensors_mut(&mut self) -> &mut [T] {
        match self {
            Arg::Tensor(tensor) => std::slice::from_mut(tensor),
            Arg::Tensors(list) => list,
            _ => &mut [],
        }
    }

    /// Returns the same argument with each tensor converted by `to`, in order.
    pub fn map<U>(&self, mut to: impl FnMut(&T) -> U) -> Arg<U> {
        match self {
            Arg::None => Arg::None,
            Arg::Tensor(tensor) => Arg::Tensor(to(tensor)),
            Arg::Tensors(list) => Arg::Tensors(list.iter().map(to).collect()),
            Arg::Bool(value) => Arg::Bool(*value),
            Arg::Int(value) => Arg::Int(*value),
            Arg::Float(value) => Arg::Float(*value),
            Arg::Ints(list) => Arg::Ints(list.clone()),
            Arg::Floats(list) => Arg::Floats(list.clone()),
            Arg::Text(text) => Arg::Text(text.clone()),
        }
    }
}

//! Binding of a call to memory: its arguments by position, and its use of each tensor.

use steptime_aten::{Arg as Argument, Device, Dtype};
use steptime_eager::Role;
use steptime_step::{Call, Op, OpId, StepIr, TensorId};
use steptime_tensor::Layout;

use crate::arg::Arg;
use crate::described::DescribedStep;
use crate::inputs::Joined;
use crate::kernel::Kernel;
use crate::places::{Located, MemoryId, Places};
use crate::slices::Access;
use crate::target::Target;

/// Reason why an op cannot run, with the remedy.
pub(crate) type Refusal = String;

/// Result of binding an op.
pub(crate) enum Built {
    /// An instruction.
    Kernel(Kernel),
    /// No work: a view, an allocation, or a note.
    Nothing,
    /// The ops inside it run instead.
    Inside,
}

/// Binds an op with its arguments.
pub(crate) type Build = fn(&mut Binder<'_, '_>) -> Result<Built, Refusal>;

/// Use of a tensor by an instruction.
#[derive(Debug, Clone)]
pub(crate) struct Use {
    pub(crate) tensor: TensorId,
    pub(crate) access: Access,
    pub(crate) arg: Arg,
}

/// A call that is bound to memory.
pub(crate) struct Binder<'b, 'd> {
    pub(crate) op: OpId,
    /// Device of the program.
    pub(crate) target: Target,
    pub(crate) places: &'b mut Places<'d>,
    /// Whether a name is that of an op in the table.
    pub(crate) is_op: fn(&str) -> bool,
    /// Inputs that the call takes joined.
    pub(crate) joined: &'b mut Vec<Joined>,
    /// Memory of the instruction, with its use.
    pub(crate) slots: Vec<(MemoryId, Access)>,
    /// Used tensors, in order.
    pub(crate) uses: Vec<Use>,
    /// Whether the op reads and writes 16-bit floats itself.
    pub(crate) takes_halves: bool,
    /// Operands of 16 bits that the op takes as 32-bit floats.
    pub(crate) widened: Vec<Widened>,
}

/// An operand of 16 bits, and its copy in 32-bit floats.
#[derive(Debug)]
pub(crate) struct Widened {
    pub(crate) tensor: TensorId,
    /// Memory and layout of the operand.
    pub(crate) narrow: Located,
    /// Memory of the copy.
    pub(crate) memory: MemoryId,
    /// Slot and layout of the copy.
    pub(crate) wide: Arg,
}

impl<'d> Binder<'_, 'd> {
    pub(crate) fn described(&self) -> &'d DescribedStep {
        self.places.described
    }

    pub(crate) fn step(&self) -> &'d StepIr {
        &self.described().step
    }

    pub(crate) fn row(&self) -> &'d Op {
        &self.step().ops[self.op]
    }

    /// Name of the op.
    pub(crate) fn name(&self) -> &'d str {
        &self.row().name
    }

    /// Its arguments and results.
    pub(crate) fn call(&self) -> Result<&'d Call, Refusal> {
        self.row().call.as_deref().ok_or_else(|| "its arguments are not recorded".to_owned())
    }

    fn argument(&self, at: usize) -> Result<&'d Argument<TensorId>, Refusal> {
        self.call()?.inputs.get(at).ok_or_else(|| format!("argument {at} is not recorded"))
    }

    /// The tensor at an argument.
    pub(crate) fn id(&self, at: usize) -> Result<TensorId, Refusal> {
        match self.argument(at)? {
            Argument::Tensor(tensor) => Ok(*tensor),
            _ => Err(format!("argument {at} is not a tensor")),
        }
    }

    /// The tensors of a list.
    pub(crate) fn ids(&self, at: usize) -> Result<&'d [TensorId], Refusal> {
        Ok(self.argument(at)?.tensors())
    }

    /// The tensor at a result.
    pub(crate) fn result(&self, at: usize) -> Result<TensorId, Refusal> {
        let tensor = self.call()?.outputs.get(at).and_then(|arg| arg.tensors().first());
        tensor.copied().ok_or_else(|| format!("result {at} is not recorded"))
    }

    /// Whether an argument is absent.
    pub(crate) fn is_none(&self, at: usize) -> bool {
        self.argument(at).map_or(true, |arg| matches!(arg, Argument::None))
    }

    /// A number, given as such or by a constant tensor.
    pub(crate) fn number(&self, at: usize) -> Result<f64, Refusal> {
        match self.argument(at)? {
            Argument::Int(value) => Ok(*value as f64),
            Argument::Float(value) => Ok(*value),
            Argument::Bool(value) => Ok(f64::from(u8::from(*value))),
            Argument::Tensor(tensor) => self
                .constant(*tensor)
                .ok_or_else(|| format!("the value of the number at argument {at} is not known")),
            _ => Err(format!("argument {at} is not a number")),
        }
    }

    /// The value of a constant tensor of one number.
    pub(crate) fn constant(&self, tensor: TensorId) -> Option<f64> {
        match self.described().named(tensor) {
            Some((_, Role::Number(value))) => Some(*value),
            _ => None,
        }
    }

    pub(crate) fn int(&self, at: usize) -> Result<i64, Refusal> {
        match self.argument(at)? {
            Argument::Int(value) => Ok(*value),
            Argument::Bool(value) => Ok(i64::from(*value)),
            _ => Err(format!("argument {at} is not a whole number")),
        }
    }

    /// Whole numbers; of one number a list of one.
    pub(crate) fn sizes(&self, at: usize) -> Result<Vec<i64>, Refusal> {
        match self.argument(at)? {
            Argument::Ints(list) => Ok(list.to_vec()),
            Argument::Int(value) => Ok(vec![*value]),
            _ => Err(format!("argument {at} is not a list of whole numbers")),
        }
    }

    /// Description of a tensor.
    pub(crate) fn value(&self, tensor: TensorId) -> &'d steptime_aten::Tensor {
        &self.step().tensors[tensor].value
    }

    /// Whether a tensor is a matrix of 16-bit floats on a GPU, stored by rows.
    pub(crate) fn is_half_rows(&self, tensor: TensorId) -> bool {
        let value = self.value(tensor);
        let by_rows = matches!(value.strides[..], [_, 1]);
        self.target == Target::Cuda && value.dtype == Dtype::Bf16 && by_rows
    }

    /// Whether all tensors have 16-bit floats.
    pub(crate) fn are_halves(&self, tensors: &[TensorId]) -> bool {
        tensors.iter().all(|&tensor| self.value(tensor).dtype == Dtype::Bf16)
    }

    /// Whether a tensor is in host memory.
    pub(crate) fn is_on_host(&self, tensor: TensorId) -> bool {
        self.value(tensor).device == Device::Cpu
    }

    /// A tensor that the instruction uses.
    pub(crate) fn tensor(&mut self, tensor: TensorId, access: Access) -> Result<Arg, Refusal> {
        let located = self.places.locate(tensor)?;
        let is_narrow = located.dtype == Dtype::Bf16 && self.target == Target::Cuda;
        let arg = if is_narrow && !self.takes_halves {
            self.widened(tensor, located, access)?
        } else {
            let slot = self.slot(located.memory, access);
            Arg { slot, layout: located.layout, dtype: located.dtype, pad: located.pad }
        };
        self.uses.push(Use { tensor, access, arg: arg.clone() });
        Ok(arg)
    }

    /// The slot of memory.
    fn slot(&mut self, memory: MemoryId, access: Access) -> usize {
        let known = self.slots.iter().position(|(known, _)| *known == memory);
        let slot = known.unwrap_or(self.slots.len());
        if known.is_none() {
            self.slots.push((memory, access));
        }
        let own = &mut self.slots[slot].1;
        if *own != access {
            *own = Access::Change;
        }
        slot
    }

    /// A copy of an operand in 32-bit floats.
    fn widened(&mut self, tensor: TensorId, narrow: Located, access: Access) -> Result<Arg, Refusal> {
        let same = |one: &Widened| one.narrow.memory == narrow.memory && one.narrow.layout == narrow.layout;
        if let Some(known) = self.widened.iter().find(|one| same(one)) {
            let (memory, wide) = (known.memory, known.wide.clone());
            self.slot(memory, access);
            return Ok(wide);
        }
        let layout = Layout::contiguous(narrow.layout.shape()).map_err(|source| source.to_string())?;
        let memory = self.places.add(tensor, 4 * layout.len() as u64);
        let wide = Arg { slot: self.slot(memory, access), layout, dtype: Dtype::F32, pad: 0 };
        self.widened.push(Widened { tensor, narrow, memory, wide: wide.clone() });
        Ok(wide)
    }

    /// A tensor argument that is read.
    pub(crate) fn reads(&mut self, at: usize) -> Result<Arg, Refusal> {
        self.tensor(self.id(at)?, Access::Read)
    }

    /// The tensors of a list, which are read.
    pub(crate) fn reads_all(&mut self, at: usize) -> Result<Vec<Arg>, Refusal> {
        self.ids(at)?.iter().map(|&tensor| self.tensor(tensor, Access::Read)).collect()
    }

    /// A tensor argument that is changed in place.
    pub(crate) fn changes(&mut self, at: usize) -> Result<Arg, Refusal> {
        self.tensor(self.id(at)?, Access::Change)
    }

    /// A tensor argument that is overwritten.
    pub(crate) fn overwrites(&mut self, at: usize) -> Result<Arg, Refusal> {
        self.tensor(self.id(at)?, Access::Write)
    }

    /// A result of which a part is written already.
    pub(crate) fn changes_result(&mut self, at: usize) -> Result<Arg, Refusal> {
        self.tensor(self.result(at)?, Access::Change)
    }

    /// A result.
    pub(crate) fn writes(&mut self, at: usize) -> Result<Arg, Refusal> {
        self.tensor(self.result(at)?, Access::Write)
    }

    /// An argument of 32-bit floats; on a GPU also of 16 bits, where the op takes these.
    pub(crate) fn floats(&mut self, at: usize) -> Result<Arg, Refusal> {
        let arg = self.reads(at)?;
        if !(self.takes_halves && self.target == Target::Cuda && arg.dtype == Dtype::Bf16) {
            of_type(&arg, Dtype::F32)?;
        }
        Ok(arg)
    }
}

/// Checks the element type of an operand.
pub(crate) fn of_type(arg: &Arg, dtype: Dtype) -> Result<(), Refusal> {
    if arg.dtype == dtype {
        return Ok(());
    }
    Err(format!("it takes {}, not {}: leave out rules that change types", dtype.name(), arg.dtype.name()))
}

/// Checks that elements are neighbours.
pub(crate) fn in_order(arg: &Arg) -> Result<(), Refusal> {
    if arg.layout.is_contiguous() { Ok(()) } else { Err("an operand is not contiguous".to_owned()) }
}

//! Inputs and outputs: tensors, scalars and lists of them, in arenas.

use crate::strings::NameId;

/// Some consecutive values, see [`Values::list`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueRange {
    pub(super) first: u32,
    pub(super) end: u32,
}

/// Some consecutive numbers, see [`Values::dims`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DimRange {
    pub(super) first: u32,
    pub(super) end: u32,
}

/// The position of a tensor, see [`Values::tensor`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TensorIdx(pub u32);

/// One input or output.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Value {
    /// Absent.
    None,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Text.
    Str(NameId),
    /// A device, `cuda:0`.
    Device(NameId),
    /// A tensor.
    Tensor(TensorIdx),
    /// A list or tuple.
    List(ValueRange),
    /// Something that did not fit its declared type.
    #[default]
    Unknown,
}

/// A tensor as one op saw it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tensor {
    /// Its id, after its address: ids are used again once it is freed.
    pub tensor_id: u64,
    /// The id of its storage, which views share; likewise used again.
    pub storage_id: u64,
    /// Where in the storage it begins, in elements.
    pub offset: u64,
    /// How many elements it has.
    pub numel: u64,
    /// Bytes an element.
    pub itemsize: u32,
    /// Where it lives, `cuda:0`; empty in schema 1.0.0.
    pub device: NameId,
    /// The element type: `float`, `long int`, `c10::BFloat16`.
    pub dtype: NameId,
    /// Its shape.
    pub shape: DimRange,
    /// Its strides in elements, from schema 1.1.1 on.
    pub strides: Option<DimRange>,
}

/// The values of all nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    pub(super) values: Vec<Value>,
    pub(super) tensors: Vec<Tensor>,
    pub(super) dims: Vec<i64>,
}

impl ValueRange {
    /// How many values there are.
    #[must_use]
    pub fn len(self) -> usize {
        (self.end - self.first) as usize
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.first == self.end
    }
}

impl Values {
    /// The values of a node's inputs or outputs, or of a list.
    ///
    /// # Panics
    /// When the range is of another trace and out of bounds.
    #[must_use]
    pub fn list(&self, range: ValueRange) -> &[Value] {
        &self.values[range.first as usize..range.end as usize]
    }

    /// A tensor.
    ///
    /// # Panics
    /// When the position is of another trace and out of bounds.
    #[must_use]
    pub fn tensor(&self, index: TensorIdx) -> &Tensor {
        &self.tensors[index.0 as usize]
    }

    /// Keeps a list of values, and says where.
    pub fn push_list(&mut self, list: &[Value]) -> ValueRange {
        let first = self.values.len() as u32;
        self.values.extend_from_slice(list);
        ValueRange { first, end: self.values.len() as u32 }
    }

    /// Keeps a tensor, and says where.
    pub fn push_tensor(&mut self, tensor: Tensor) -> TensorIdx {
        self.tensors.push(tensor);
        TensorIdx(self.tensors.len() as u32 - 1)
    }

    /// Keeps a shape or strides, and says where.
    pub fn push_dims(&mut self, dims: &[i64]) -> DimRange {
        let first = self.dims.len() as u32;
        self.dims.extend_from_slice(dims);
        DimRange { first, end: self.dims.len() as u32 }
    }

    /// All tensors, as often as ops mention them.
    #[must_use]
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// A shape or strides.
    ///
    /// # Panics
    /// When the range is of another trace and out of bounds.
    #[must_use]
    pub fn dims(&self, range: DimRange) -> &[i64] {
        &self.dims[range.first as usize..range.end as usize]
    }
}

//! Inputs and outputs: tensors, scalars and lists of them, in arenas.

use crate::strings::NameId;

/// Range of values, see [`Values::list`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueRange {
    pub(super) first: u32,
    pub(super) end: u32,
}

/// Range of numbers, see [`Values::dims`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DimRange {
    pub(super) first: u32,
    pub(super) end: u32,
}

/// Position of a tensor, see [`Values::tensor`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TensorIdx(pub u32);

/// Input or output of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Value {
    /// Absent value.
    None,
    /// Truth value.
    Bool(bool),
    /// Integer.
    Int(i64),
    /// Floating-point number.
    Float(f64),
    /// Text value.
    Str(NameId),
    /// Device, for example `cuda:0`.
    Device(NameId),
    /// Single tensor.
    Tensor(TensorIdx),
    /// List or tuple.
    List(ValueRange),
    /// Value that did not fit its declared type.
    #[default]
    Unknown,
}

/// Tensor as input or output of one op.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tensor {
    /// Id, derived from its address: reused after the tensor is freed.
    pub tensor_id: u64,
    /// Id of its storage, which views share; also reused.
    pub storage_id: u64,
    /// Offset of the first element in the storage, in elements.
    pub offset: u64,
    /// Number of elements.
    pub numel: u64,
    /// Bytes per element.
    pub itemsize: u32,
    /// Device, for example `cuda:0`; empty in schema 1.0.0.
    pub device: NameId,
    /// Element type: `float`, `long int`, `c10::BFloat16`.
    pub dtype: NameId,
    /// Shape of the tensor.
    pub shape: DimRange,
    /// Strides in elements, from schema 1.1.1 on.
    pub strides: Option<DimRange>,
}

/// Values of all nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    pub(super) values: Vec<Value>,
    pub(super) tensors: Vec<Tensor>,
    pub(super) dims: Vec<i64>,
}

impl ValueRange {
    /// Returns the number of values.
    #[must_use]
    pub fn len(self) -> usize {
        (self.end - self.first) as usize
    }

    /// Whether there are no values.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.first == self.end
    }
}

impl Values {
    /// Returns the values of a node's inputs or outputs, or of a list.
    ///
    /// # Panics
    /// If the range is of another trace and out of bounds.
    #[must_use]
    pub fn list(&self, range: ValueRange) -> &[Value] {
        &self.values[range.first as usize..range.end as usize]
    }

    /// Returns a tensor.
    ///
    /// # Panics
    /// If the position is of another trace and out of bounds.
    #[must_use]
    pub fn tensor(&self, index: TensorIdx) -> &Tensor {
        &self.tensors[index.0 as usize]
    }

    /// Stores a list of values and returns its range.
    pub fn push_list(&mut self, list: &[Value]) -> ValueRange {
        let first = self.values.len() as u32;
        self.values.extend_from_slice(list);
        ValueRange { first, end: self.values.len() as u32 }
    }

    /// Stores a tensor and returns its position.
    pub fn push_tensor(&mut self, tensor: Tensor) -> TensorIdx {
        self.tensors.push(tensor);
        TensorIdx(self.tensors.len() as u32 - 1)
    }

    /// Stores a shape or strides and returns their range.
    pub fn push_dims(&mut self, dims: &[i64]) -> DimRange {
        let first = self.dims.len() as u32;
        self.dims.extend_from_slice(dims);
        DimRange { first, end: self.dims.len() as u32 }
    }

    /// Returns all tensors, one per occurrence in an op.
    #[must_use]
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// Returns a shape or strides.
    ///
    /// # Panics
    /// If the range is of another trace and out of bounds.
    #[must_use]
    pub fn dims(&self, range: DimRange) -> &[i64] {
        &self.dims[range.first as usize..range.end as usize]
    }
}

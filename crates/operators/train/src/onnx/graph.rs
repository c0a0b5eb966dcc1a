//! A graph that is built value by value.

use std::collections::HashSet;

use steptime_tensor::DType;

use super::{Dim, OnnxError};
use crate::checkpoint::Entry;

/// A forward graph: inputs, weights, ops, outputs. `'a` is the memory or the checkpoint of its weights.
///
/// Ops are methods that return their result's [`Value`]. They have ONNX's names and semantics, and check shapes and types.
pub struct OnnxGraph<'a> {
    pub(super) name: String,
    pub(super) values: Vec<Info>,
    pub(super) nodes: Vec<Node>,
    pub(super) inputs: Vec<Value>,
    pub(super) outputs: Vec<Value>,
    pub(super) weights: Vec<(Value, Initializer<'a>)>,
    names: HashSet<String>,
}

/// A value of one graph: an input, a weight or the result of an op.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Value(u32);

pub(super) struct Info {
    pub name: String,
    pub dtype: DType,
    pub shape: Vec<Dim>,
    /// Whether it is the result of an op.
    computed: bool,
}

pub(super) enum Initializer<'a> {
    /// Read when the graph is written.
    Entry(Entry<'a>),
    /// Little-endian bytes.
    Bytes(Vec<u8>),
}

pub(super) struct Node {
    pub op: &'static str,
    pub inputs: Vec<Value>,
    pub output: Value,
    pub attributes: Vec<(&'static str, Attribute)>,
}

pub(super) enum Attribute {
    Int(i64),
    Ints(Vec<i64>),
}

impl<'a> OnnxGraph<'a> {
    /// A graph without values.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        OnnxGraph {
            name: name.into(),
            values: Vec::new(),
            nodes: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            weights: Vec::new(),
            names: HashSet::new(),
        }
    }

    /// Adds an input.
    ///
    /// # Errors
    ///
    /// The name is empty or given twice.
    pub fn input(&mut self, name: &str, dtype: DType, shape: &[Dim]) -> Result<Value, OnnxError> {
        self.take_name(name)?;
        let value = self.value(name.to_owned(), dtype, shape.to_vec(), false);
        self.inputs.push(value);
        Ok(value)
    }

    /// Adds a weight, whose bytes are read when the graph is written.
    ///
    /// # Errors
    ///
    /// The name is empty or given twice.
    pub fn weight(&mut self, entry: Entry<'a>) -> Result<Value, OnnxError> {
        self.take_name(entry.name())?;
        let shape = entry.shape().iter().copied().map(Dim::Fixed).collect();
        let value = self.value(entry.name().to_owned(), entry.dtype(), shape, false);
        self.weights.push((value, Initializer::Entry(entry)));
        Ok(value)
    }

    /// Makes a value an output of the graph.
    ///
    /// # Errors
    ///
    /// The name is empty or given twice; the value belongs to another graph.
    pub fn output(&mut self, name: &str, value: Value) -> Result<(), OnnxError> {
        let info = self.info("output", value)?;
        let (dtype, shape, computed) = (info.dtype, info.shape.clone(), info.computed);
        self.take_name(name)?;
        // An input, a weight or an output keeps its name.
        let value = match computed && !self.outputs.contains(&value) {
            true => value,
            false => self.node("Identity", &[value], dtype, shape, Vec::new()),
        };
        self.values[value.0 as usize].name = name.to_owned();
        self.outputs.push(value);
        Ok(())
    }

    /// Shape of a value; `None` if it belongs to another graph.
    #[must_use]
    pub fn shape(&self, value: Value) -> Option<&[Dim]> {
        self.values.get(value.0 as usize).map(|info| &*info.shape)
    }

    pub(super) fn info(&self, op: &'static str, value: Value) -> Result<&Info, OnnxError> {
        self.values.get(value.0 as usize).ok_or(OnnxError::Foreign { op })
    }

    /// Name of a value of this graph.
    pub(super) fn name_of(&self, value: Value) -> String {
        self.values[value.0 as usize].name.clone()
    }

    /// The value's type and shape, if its type is a floating-point one.
    pub(super) fn float(&self, op: &'static str, value: Value) -> Result<(DType, &[Dim]), OnnxError> {
        let info = self.info(op, value)?;
        match info.dtype {
            DType::F32 | DType::F16 | DType::Bf16 => Ok((info.dtype, &info.shape)),
            given => Err(OnnxError::Type { op, given, needed: "a floating-point type" }),
        }
    }

    /// Two values' common type and their shapes.
    pub(super) fn alike(
        &self,
        op: &'static str,
        a: Value,
        b: Value,
    ) -> Result<(DType, [&[Dim]; 2]), OnnxError> {
        let (first, second) = (self.info(op, a)?, self.info(op, b)?);
        match first.dtype == second.dtype {
            true => Ok((first.dtype, [&first.shape, &second.shape])),
            false => Err(OnnxError::Type { op, given: second.dtype, needed: "the other input's type" }),
        }
    }

    pub(super) fn node(
        &mut self,
        op: &'static str,
        inputs: &[Value],
        dtype: DType,
        shape: Vec<Dim>,
        attributes: Vec<(&'static str, Attribute)>,
    ) -> Value {
        let mut name = format!("{op}_{}", self.nodes.len());
        while !self.names.insert(name.clone()) {
            name.push('_');
        }
        let output = self.value(name, dtype, shape, true);
        self.nodes.push(Node { op, inputs: inputs.to_vec(), output, attributes });
        output
    }

    pub(super) fn value(&mut self, name: String, dtype: DType, shape: Vec<Dim>, computed: bool) -> Value {
        self.values.push(Info { name, dtype, shape, computed });
        Value(self.values.len() as u32 - 1)
    }

    pub(super) fn take_name(&mut self, name: &str) -> Result<(), OnnxError> {
        match !name.is_empty() && self.names.insert(name.to_owned()) {
            true => Ok(()),
            false => Err(OnnxError::Name { name: name.to_owned() }),
        }
    }
}

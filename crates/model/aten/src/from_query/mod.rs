//! [`OpCall`] from a short description: shapes of its tensors, one type, and other arguments that matter.

mod arrange;
mod values;

#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::call::{Arg, OpCall};
use crate::op_set::OpSet;
use crate::schema::{Argument, Kind, Schema, overloads};
use arrange::{Arrangement, arrange};
use values::{arg, arg_for, dtype, is_empty, is_nested, tensor};

/// Short description of a call.
#[derive(Debug, Clone, Default)]
pub struct Query<'a> {
    /// Name of the op, `aten::addmm` or just `addmm`.
    pub op: &'a str,
    /// Shape of each input tensor, in order, or an entry for every argument, empty if it is not a
    /// tensor. For a list of tensors a list of shapes, or their shapes one after the other.
    pub shapes: &'a [Value],
    /// Strides in the same arrangement; contiguous if absent.
    pub strides: &'a [Value],
    /// Element type; that of indices, offsets, targets and masks follows from their names. One for all tensors, or
    /// a list with one for each tensor or each argument, which holds for indices too.
    pub dtype: Option<&'a Value>,
    /// Arguments that are not tensors: in the declared order, with or without places for tensors, or by name.
    pub args: Option<&'a Value>,
}

/// Reason why a description is not a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// The op is unknown.
    #[error("op {0:?} is not known: names are those of PyTorch's operators, such as aten::addmm")]
    Op(String),
    /// The shapes fit no overload.
    #[error("{op} takes {expected} tensors, and {found} shapes are given")]
    Shapes {
        /// Name of the op.
        op: String,
        /// Number of tensors that it takes.
        expected: String,
        /// Number of given shapes.
        found: usize,
    },
    /// A shape, stride or type is invalid.
    #[error("{what} {value} is not a {expected}")]
    Value {
        /// Kind of the value.
        what: &'static str,
        /// Given value.
        value: String,
        /// Expected form.
        expected: &'static str,
    },
    /// The op does not have a given argument.
    #[error("{op} has no argument {name:?} beside its tensors; it has {known}")]
    Name {
        /// Name of the op.
        op: String,
        /// Name of the argument.
        name: String,
        /// Names of the op's arguments.
        known: String,
    },
}

impl Query<'_> {
    /// Returns the call. An unknown op with a qualified name (`mine::fused`) is assumed to write as much as
    /// the largest tensor that it reads.
    ///
    /// # Errors
    /// If the name is not that of an op, or the arguments do not fit.
    pub fn op_call(&self, ops: &OpSet) -> Result<OpCall, QueryError> {
        let name = if self.op.contains("::") { self.op.to_owned() } else { format!("aten::{}", self.op) };
        let overloads = overloads(&name);
        if overloads.is_empty() {
            return match ops.find(&name) {
                Some(_) => self.without_schema(&name),
                None if self.op.contains("::") => self.unknown(&name),
                None => Err(QueryError::Op(self.op.to_owned())),
            };
        }
        let fitting = overloads.iter().filter_map(|schema| Some((arrange(self, schema)?, schema)));
        let (arrangement, schema) = fitting
            .min_by_key(|(arrangement, _)| arrangement.misfit)
            .ok_or_else(|| self.wrong_shapes(&name, overloads))?;
        self.with_schema(&name, schema, &arrangement)
    }

    fn wrong_shapes(&self, name: &str, overloads: &[Schema]) -> QueryError {
        let least = overloads.iter().map(|schema| schema.tensors().0).min().unwrap_or(0);
        let most = overloads.iter().map(|schema| schema.tensors().1).max().unwrap_or(0);
        let expected = if least == most { least.to_string() } else { format!("{least} to {most}") };
        QueryError::Shapes { op: name.to_owned(), expected, found: self.shapes.len() }
    }

    fn with_schema(&self, name: &str, schema: &Schema, from: &Arrangement) -> Result<OpCall, QueryError> {
        self.check_names(name, schema)?;
        let mut ordinal = 0;
        let mut inputs = Vec::with_capacity(schema.arguments.len());
        for (at, argument) in schema.arguments.iter().enumerate() {
            let places = &from.shapes[at];
            if argument.kind != Kind::Other {
                inputs.push(self.tensors_at(places, ordinal, argument)?);
                ordinal += places.len();
                continue;
            }
            let default = || argument.default.clone().unwrap_or_default();
            let given = from.values[at].as_ref().filter(|value| value.is_array() || !is_empty(value));
            inputs.push(given.map_or_else(default, |value| arg_for(argument.takes, value)));
        }
        Ok(OpCall::new(name, inputs))
    }

    fn check_names(&self, name: &str, schema: &Schema) -> Result<(), QueryError> {
        let Some(Value::Object(map)) = self.args else { return Ok(()) };
        let others = || schema.arguments.iter().filter(|argument| argument.kind == Kind::Other);
        match map.keys().find(|key| !others().any(|argument| argument.name == key.as_str())) {
            None => Ok(()),
            Some(key) => Err(QueryError::Name {
                op: name.to_owned(),
                name: key.clone(),
                known: others().map(|argument| argument.name).collect::<Vec<_>>().join(", "),
            }),
        }
    }

    /// Returns the tensors of one argument, whose shapes are at these positions.
    fn tensors_at(&self, places: &[usize], ordinal: usize, argument: &Argument) -> Result<Arg, QueryError> {
        let Some(&first) = places.first() else { return Ok(Arg::None) };
        let Some(shape) = self.shapes.get(first).filter(|shape| !shape.is_null()) else {
            return Ok(Arg::None);
        };
        if argument.optional && is_empty(shape) {
            return Ok(Arg::None);
        }
        let dtype = |at| dtype(self.dtype, at, ordinal, argument.name);
        let is_list = argument.kind == Kind::Tensors;
        if is_nested(shape) || (is_list && is_empty(shape)) {
            let dtype = dtype(first)?;
            let strides = self.strides.get(first).and_then(Value::as_array);
            let shapes = shape.as_array().map_or(&[][..], Vec::as_slice).iter().enumerate();
            let tensor = |(at, shape)| tensor(shape, strides.and_then(|strides| strides.get(at)), dtype);
            return Ok(Arg::Tensors(shapes.map(tensor).collect::<Result<_, _>>()?));
        }
        let one = |&at: &usize| tensor(&self.shapes[at], self.strides.get(at), dtype(at)?);
        if is_list {
            places.iter().map(one).collect::<Result<_, _>>().map(Arg::Tensors)
        } else {
            one(&first).map(Arg::Tensor)
        }
    }

    /// Returns the call of a known op without a schema here: an entry for every argument, or its tensors and then the rest.
    fn without_schema(&self, name: &str) -> Result<OpCall, QueryError> {
        let argument = Argument::unnamed();
        let values = match self.args {
            Some(Value::Array(list)) => list.as_slice(),
            _ => &[],
        };
        let empty = |at: usize| values.get(at).is_none_or(is_empty);
        let both = values.len() == self.shapes.len()
            && (0..values.len()).all(|at| empty(at) || is_empty(&self.shapes[at]));
        let mut inputs = Vec::with_capacity(self.shapes.len() + values.len());
        for at in 0..self.shapes.len() {
            let value = values.get(at).filter(|_| both && !empty(at));
            inputs.push(value.map_or_else(|| self.tensors_at(&[at], at, &argument), |value| Ok(arg(value)))?);
        }
        inputs.extend(values.iter().filter(|_| !both).map(arg));
        Ok(OpCall::new(name, inputs))
    }

    fn unknown(&self, name: &str) -> Result<OpCall, QueryError> {
        let mut call = self.without_schema(name)?;
        let largest =
            call.input_tensors().map(|(_, _, tensor)| tensor).max_by_key(|tensor| tensor.bytes()).cloned();
        call.outputs = largest.into_iter().map(Arg::Tensor).collect();
        Ok(call)
    }
}

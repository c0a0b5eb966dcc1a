//! Expressions as a list of values, each computed from earlier ones, without duplicates.

use std::collections::HashMap;

use super::expr::{Binary, Expr, Node, Unary};

/// A value, as its index in the list.
pub(super) type Id = usize;

/// Definition of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Value {
    Input(usize),
    /// A constant by its bits, so that it can be compared.
    Constant(u32),
    Unary(Unary, Id),
    Binary(Binary, Id, Id),
}

impl Value {
    /// The values from which it is computed.
    pub(super) fn operands(self) -> impl Iterator<Item = Id> {
        let (first, second) = match self {
            Value::Input(_) | Value::Constant(_) => (None, None),
            Value::Unary(_, a) => (Some(a), None),
            Value::Binary(_, a, b) => (Some(a), Some(b)),
        };
        first.into_iter().chain(second)
    }

    /// Whether it is the result of an operation.
    pub(super) fn is_computed(self) -> bool {
        matches!(self, Value::Unary(..) | Value::Binary(..))
    }
}

/// The values of some expressions, operands before the values that use them.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) values: Vec<Value>,
    known: HashMap<Value, Id>,
    /// Index of each shared part of an expression, by its address.
    seen: HashMap<*const Node, Id>,
}

impl Graph {
    /// Returns the index of an expression's value, and adds the value if it is new.
    pub(super) fn add(&mut self, expr: &Expr) -> Id {
        let address = std::sync::Arc::as_ptr(&expr.0);
        if let Some(&id) = self.seen.get(&address) {
            return id;
        }
        let value = match &*expr.0 {
            Node::Input(index) => Value::Input(*index),
            Node::Constant(value) => Value::Constant(value.to_bits()),
            Node::Unary(op, a) => Value::Unary(*op, self.add(a)),
            Node::Binary(op, a, b) => {
                let a = self.add(a);
                Value::Binary(*op, a, self.add(b))
            }
        };
        let id = *self.known.entry(value).or_insert(self.values.len());
        if id == self.values.len() {
            self.values.push(value);
        }
        self.seen.insert(address, id);
        id
    }
}

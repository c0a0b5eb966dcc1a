//! Assignment of a query's shapes and values to the arguments of an overload.

use serde_json::{Map, Value};

use super::Query;
use super::values::{arg, is_empty, is_nested};
use crate::schema::{Argument, Kind, Schema};

/// Misfit of a surplus value, or of a shape where no tensor is expected.
const OVER: usize = 32;
/// Misfit of a value that the argument cannot have.
const WRONG: usize = 8;
/// Misfit of an argument without default that gets no value.
const MISSING: usize = 4;

/// Assignment of a query's shapes and values to an overload's arguments.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Arrangement {
    /// Positions in the query of each argument's shapes: one, or several for a list of tensors.
    pub(super) shapes: Vec<Vec<usize>>,
    /// Value of each argument.
    pub(super) values: Vec<Option<Value>>,
    /// Misfit of the assignment; 0 is perfect.
    pub(super) misfit: usize,
}

/// Returns the best arrangement for an overload; `None` if the number of shapes is impossible.
pub(super) fn arrange(query: &Query<'_>, schema: &Schema) -> Option<Arrangement> {
    let whole = one_an_argument(query.shapes, schema);
    let tensors = one_a_tensor(query.shapes, schema).or_else(|| spread(query.shapes, schema));
    [whole, tensors]
        .into_iter()
        .flatten()
        .map(|shapes| with_values(query, schema, shapes))
        .min_by_key(|a| a.misfit)
}

/// Assigns shapes in Kineto's form: an entry for every argument, empty if it is not a tensor. The last ones may be left out.
fn one_an_argument(shapes: &[Value], schema: &Schema) -> Option<Vec<Vec<usize>>> {
    let arguments = &schema.arguments;
    let needed = arguments.iter().rposition(|argument| argument.kind != Kind::Other && !argument.optional);
    let fits = shapes.len() > schema.tensors().1
        && shapes.len() <= arguments.len()
        && needed.is_none_or(|last| last < shapes.len());
    let place = |(at, argument): (usize, &Argument)| match argument.kind {
        Kind::Other => Vec::new(),
        _ => (at..shapes.len().min(at + 1)).collect(),
    };
    fits.then(|| arguments.iter().enumerate().map(place).collect())
}

/// Assigns one entry to each tensor: to all required ones, and to as many optional ones as there are entries.
fn one_a_tensor(shapes: &[Value], schema: &Schema) -> Option<Vec<Vec<usize>>> {
    let (least, most) = schema.tensors();
    let mut others = shapes.len().checked_sub(least)?;
    if shapes.len() > most {
        return None;
    }
    let mut next = 0;
    let place = |argument: &Argument| {
        let takes = argument.kind != Kind::Other && (!argument.optional || others > 0);
        if !takes {
            return Vec::new();
        }
        others -= usize::from(argument.optional);
        next += 1;
        vec![next - 1]
    };
    Some(schema.arguments.iter().map(place).collect())
}

/// Assigns more entries than arguments: lists of tensors take several, in equal parts.
fn spread(shapes: &[Value], schema: &Schema) -> Option<Vec<Vec<usize>>> {
    let lists = schema.arguments.iter().filter(|argument| argument.kind == Kind::Tensors).count();
    let single = schema.arguments.iter().filter(|a| a.kind == Kind::Tensor && !a.optional).count();
    let for_lists = shapes.len().checked_sub(single)?;
    if lists == 0 || for_lists % lists != 0 || shapes.iter().any(is_nested) {
        return None;
    }
    let mut next = 0;
    let place = |argument: &Argument| {
        let count = match argument.kind {
            Kind::Tensors => for_lists / lists,
            Kind::Tensor if !argument.optional => 1,
            _ => 0,
        };
        next += count;
        (next - count..next).collect()
    };
    Some(schema.arguments.iter().map(place).collect())
}

fn with_values(query: &Query<'_>, schema: &Schema, shapes: Vec<Vec<usize>>) -> Arrangement {
    let count = schema.arguments.len();
    let used: usize = shapes.iter().map(Vec::len).sum();
    let stray = query.shapes.len() > used;
    let stray = stray.then(|| {
        let is_used = |at: &usize| shapes.iter().any(|places| places.contains(at));
        (0..query.shapes.len()).filter(|at| !is_used(at) && !is_empty(&query.shapes[*at])).count()
    });
    let absent =
        schema.arguments.iter().zip(&shapes).filter(|(a, places)| a.kind != Kind::Other && places.is_empty());
    let base = OVER * stray.unwrap_or(0) + absent.count();
    let (values, misfit) = match query.args {
        Some(Value::Array(list)) => {
            let whole = (list.len() == count).then(|| by_argument(list, schema));
            let others = by_order(list, schema);
            [whole, Some(others)].into_iter().flatten().min_by_key(|(_, misfit)| *misfit).unwrap_or_default()
        }
        Some(Value::Object(map)) => by_name(map, schema),
        _ => score(vec![None; count], schema, 0),
    };
    Arrangement { shapes, values, misfit: base + misfit }
}

fn by_argument(list: &[Value], schema: &Schema) -> (Vec<Option<Value>>, usize) {
    let strays =
        list.iter().zip(&schema.arguments).filter(|(v, a)| a.kind != Kind::Other && !is_empty(v)).count();
    score(list.iter().cloned().map(Some).collect(), schema, strays)
}

fn by_order(list: &[Value], schema: &Schema) -> (Vec<Option<Value>>, usize) {
    let mut values = list.iter();
    let value = |argument: &Argument| match argument.kind {
        Kind::Other => values.next().cloned(),
        _ => None,
    };
    let placed = schema.arguments.iter().map(value).collect();
    score(placed, schema, values.filter(|value| !is_empty(value)).count())
}

fn by_name(map: &Map<String, Value>, schema: &Schema) -> (Vec<Option<Value>>, usize) {
    let value = |argument: &Argument| match argument.kind {
        Kind::Other => map.get(argument.name).cloned(),
        _ => None,
    };
    let placed: Vec<Option<Value>> = schema.arguments.iter().map(value).collect();
    let strays = map.len() - placed.iter().flatten().count();
    score(placed, schema, strays)
}

fn score(values: Vec<Option<Value>>, schema: &Schema, strays: usize) -> (Vec<Option<Value>>, usize) {
    let others = schema.arguments.iter().zip(&values).filter(|(argument, _)| argument.kind == Kind::Other);
    let misfit = |(argument, value): (&Argument, &Option<Value>)| match value {
        Some(value) if argument.takes.accepts(&arg(value)) => 0,
        Some(_) => WRONG,
        None if argument.optional => 0,
        None => MISSING,
    };
    let sum: usize = others.map(misfit).sum();
    (values, sum + OVER * strays)
}

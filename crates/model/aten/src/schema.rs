//! Declared arguments of ops: positions, kinds and defaults.

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use crate::call::{Arg, OpCall};

/// Schemas of PyTorch 2.11, written by `data/schemas.py`.
static TEXT: &str = include_str!("../data/schemas.txt");

/// Schemas of this project's ops, as registered by `python/steptime/operators`.
static OWN: &str = include_str!("../data/own.txt");

static BY_NAME: LazyLock<HashMap<&'static str, Overloads>> = LazyLock::new(|| {
    let mut all: HashMap<&str, Overloads> = HashMap::new();
    for line in TEXT.lines().chain(OWN.lines()) {
        all.entry(name(line)).or_default().lines.push(line);
    }
    all
});

/// Returns the schema of an overload, `aten::add_.Tensor`, in PyTorch's notation.
#[must_use]
pub fn declared(overload: &str) -> Option<&'static str> {
    let name = overload.split_once('.').map_or(overload, |(name, _)| name);
    let lines = &BY_NAME.get(name)?.lines;
    lines.iter().copied().find(|line| line.strip_prefix(overload).is_some_and(|rest| rest.starts_with('(')))
}

/// Returns the schema of the first overload that matches a call, in PyTorch's notation; `None` if there is none.
#[must_use]
pub fn declared_for(call: &OpCall) -> Option<&'static str> {
    let fits = |schema: &Schema| {
        let mut given = call.inputs.iter().zip(&schema.arguments);
        schema.arguments.len() >= call.inputs.len() && given.all(|(arg, argument)| argument.may_be(arg))
    };
    let lines = &BY_NAME.get(&*call.name)?.lines;
    let read = lines.iter().filter_map(|&line| Some((line, parse(line)?)));
    let fitting: Vec<_> = read.filter(|(_, schema)| fits(schema)).collect();
    let exact = fitting.iter().find(|(_, schema)| schema.arguments.len() == call.inputs.len());
    exact.or(fitting.first()).map(|&(line, _)| line)
}

/// Overloads of an op, parsed at the first use.
#[derive(Default)]
struct Overloads {
    lines: Vec<&'static str>,
    schemas: OnceLock<Vec<Schema>>,
}

/// Declared arguments of one overload.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Schema {
    /// Name among the overloads, often empty.
    pub(crate) overload: &'static str,
    pub(crate) arguments: Vec<Argument>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Argument {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) takes: ValueKind,
    pub(crate) optional: bool,
    /// Default value, if it has one.
    pub(crate) default: Option<Arg>,
}

/// Kind of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Tensor,
    Tensors,
    Other,
}

/// Kind of value of an argument that is not a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueKind {
    Bool,
    Int,
    Number,
    Text,
    /// Type, layout, device or memory format: a name, or PyTorch's number for it.
    Option,
    /// List of numbers; a single number is allowed if the list has a fixed length.
    List {
        fixed: bool,
    },
}

/// Returns the overloads of an op.
pub(crate) fn overloads(name: &str) -> &'static [Schema] {
    let read = |all: &Overloads| all.lines.iter().filter_map(|line| parse(line)).collect();
    BY_NAME.get(name).map_or(&[], |all| all.schemas.get_or_init(|| read(all)))
}

/// Positions of an op's arguments, by name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Signature(Vec<(&'static str, usize)>);

/// Returns the signature of an op: all arguments of all its overloads. An argument with different positions in several overloads has
/// the position in the named overload, otherwise that in the first one. Given names replace the schemas.
pub(crate) fn signature(op: &str, overload: &str, names: &[&'static str]) -> Signature {
    let mut places: Vec<(&'static str, usize)> = Vec::new();
    let mut add = |name, at| {
        if places.iter().all(|&(known, _)| known != name) {
            places.push((name, at));
        }
    };
    let overloads = if names.is_empty() { overloads(op) } else { &[] };
    let (first, others): (Vec<&Schema>, Vec<&Schema>) =
        overloads.iter().partition(|schema| !overload.is_empty() && schema.overload == overload);
    for schema in first.into_iter().chain(others) {
        schema.arguments.iter().enumerate().for_each(|(at, argument)| add(argument.name, at));
    }
    names.iter().enumerate().for_each(|(at, name)| add(name, at));
    Signature(places)
}

impl Signature {
    /// Returns the position of an argument.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.0.iter().find(|&&(known, _)| known == name).map(|&(_, at)| at)
    }
}

impl Schema {
    /// Returns the minimum and maximum number of tensors, or lists of them, that it takes.
    pub(crate) fn tensors(&self) -> (usize, usize) {
        let tensors = self.arguments.iter().filter(|argument| argument.kind != Kind::Other);
        let all = tensors.clone().count();
        let required = tensors.filter(|argument| !argument.optional).count();
        (required, all)
    }
}

impl Argument {
    /// Whether a value is valid for the argument.
    fn may_be(&self, value: &Arg) -> bool {
        match (self.kind, value) {
            (_, Arg::None) => self.optional,
            (Kind::Tensor, value) => matches!(value, Arg::Tensor(_)),
            (Kind::Tensors, value) => matches!(value, Arg::Tensors(_)),
            (Kind::Other, value) => self.takes.accepts(value),
        }
    }

    /// Returns a tensor, or a list of them, without a declaration.
    pub(crate) fn unnamed() -> Argument {
        Argument { name: "", kind: Kind::Tensor, takes: ValueKind::Option, optional: false, default: None }
    }
}

impl ValueKind {
    fn parse(kind: &str) -> ValueKind {
        if let Some((_, length)) = kind.split_once('[') {
            return ValueKind::List { fixed: length != "]" };
        }
        match kind {
            "bool" => ValueKind::Bool,
            "int" | "SymInt" => ValueKind::Int,
            "float" | "Scalar" => ValueKind::Number,
            "str" => ValueKind::Text,
            _ => ValueKind::Option,
        }
    }

    /// Whether a value is valid for the argument.
    pub(crate) fn accepts(self, value: &Arg) -> bool {
        match value {
            Arg::None => true,
            Arg::Bool(_) => matches!(self, ValueKind::Bool | ValueKind::Number),
            Arg::Int(0 | 1) if self == ValueKind::Bool => true,
            Arg::Int(_) => {
                matches!(
                    self,
                    ValueKind::Int | ValueKind::Number | ValueKind::Option | ValueKind::List { fixed: true }
                )
            }
            Arg::Float(_) => self == ValueKind::Number,
            Arg::Ints(_) | Arg::Floats(_) => matches!(self, ValueKind::List { .. }),
            Arg::Text(_) => matches!(self, ValueKind::Text | ValueKind::Option),
            Arg::Tensor(_) | Arg::Tensors(_) => false,
        }
    }
}

/// Returns the op of a schema.
fn name(line: &'static str) -> &'static str {
    line.split(['(', '.']).next().unwrap_or(line)
}

/// Parses `aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor`.
fn parse(line: &'static str) -> Option<Schema> {
    let (full_name, rest) = line.split_once('(')?;
    let overload = full_name.split_once('.').map_or("", |(_, overload)| overload);
    let (list, _) = rest.rsplit_once(") -> ")?;
    let arguments = split(list).into_iter().filter(|text| *text != "*").filter_map(argument).collect();
    Some(Schema { overload, arguments })
}

fn argument(text: &'static str) -> Option<Argument> {
    let (declared, default) = text.split_once('=').map_or((text, None), |(text, value)| (text, Some(value)));
    // A kind may contain spaces: `Tensor(a -> *)`.
    let (kind, name) = declared.rsplit_once(' ')?;
    let plain = kind.trim_end_matches('?');
    let is_tensor = plain.starts_with("Tensor");
    let kind_of = match (is_tensor, plain.ends_with(']')) {
        (true, true) => Kind::Tensors,
        (true, false) => Kind::Tensor,
        _ => Kind::Other,
    };
    Some(Argument {
        name,
        kind: kind_of,
        takes: ValueKind::parse(plain),
        optional: kind.ends_with('?') || default.is_some(),
        default: default.map(value),
    })
}

/// Converts a default to an argument.
fn value(text: &str) -> Arg {
    match text {
        "None" => Arg::None,
        "True" => Arg::Bool(true),
        "False" => Arg::Bool(false),
        _ => {
            if let Some(list) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
                let numbers = list.split(',').filter_map(|number| number.trim().parse().ok());
                return Arg::Ints(numbers.collect());
            }
            let number = || text.parse().ok().map(Arg::Float);
            let whole = text.parse().ok().map(Arg::Int);
            whole.or_else(number).unwrap_or_else(|| Arg::Text(text.trim_matches('"').into()))
        }
    }
}

/// Splits at commas outside of brackets.
fn split(list: &'static str) -> Vec<&'static str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0i32, 0);
    for (at, letter) in list.char_indices() {
        match letter {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(list[start..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_read() {
        let line = "aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], *, \
                    ScalarType? dtype=None, Tensor?[] list) -> (Tensor, Tensor(a!))";
        let schema = parse(line).unwrap();
        assert_eq!(name(line), "aten::conv2d");
        let names: Vec<_> = schema.arguments.iter().map(|argument| argument.name).collect();
        assert_eq!(names, ["input", "weight", "bias", "stride", "dtype", "list"]);
        assert_eq!(schema.tensors(), (3, 4));
        assert_eq!(schema.arguments[3].default, Some(Arg::Ints(smallvec::smallvec![1, 1])));
        assert_eq!(schema.arguments[5].kind, Kind::Tensors);
        let takes: Vec<_> = schema.arguments.iter().map(|argument| argument.takes).collect();
        assert_eq!(takes[3..5], [ValueKind::List { fixed: true }, ValueKind::Option]);
    }

    #[test]
    fn values_are_told_apart_by_what_they_can_be_for() {
        assert!(ValueKind::List { fixed: true }.accepts(&Arg::Int(3)));
        assert!(!ValueKind::Option.accepts(&Arg::Ints(smallvec::smallvec![0])));
        assert!(!ValueKind::Int.accepts(&Arg::Float(0.5)));
        assert!(ValueKind::Bool.accepts(&Arg::Int(1)) && !ValueKind::Bool.accepts(&Arg::Int(2)));
    }

    #[test]
    fn every_line_of_the_table_is_read() {
        assert!(TEXT.lines().chain(OWN.lines()).all(|line| parse(line).is_some()));
        assert!(!overloads("aten::addmm").is_empty());
        assert_eq!(overloads("steptime::embedding_bag_backward_adam")[0].tensors(), (4, 5));
    }
}

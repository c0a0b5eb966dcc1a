//! The declared arguments of ops, to make sense of a call whose arguments come without their places.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::call::Arg;

/// Written by `data/schemas.py` from PyTorch 2.11.
static TEXT: &str = include_str!("../data/schemas.txt");

/// Our own ops, as `python/steptime/operators` registers them.
static OWN: &str = include_str!("../data/own.txt");

static BY_NAME: LazyLock<HashMap<&'static str, Vec<Schema>>> = LazyLock::new(|| {
    let mut all: HashMap<&str, Vec<Schema>> = HashMap::new();
    for (name, schema) in TEXT.lines().chain(OWN.lines()).filter_map(parse) {
        all.entry(name).or_default().push(schema);
    }
    all
});

/// The declared arguments of one overload.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Schema {
    pub(crate) arguments: Vec<Argument>,
}

/// One declared argument.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Argument {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) takes: Takes,
    pub(crate) optional: bool,
    /// Its default, where it has one.
    pub(crate) default: Option<Arg>,
}

/// What kind of argument it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Tensor,
    Tensors,
    Other,
}

/// What an argument that is no tensor may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    Bool,
    Int,
    Number,
    Text,
    /// A type, layout, device or memory format: a name, or PyTorch's number for it.
    Option,
    /// Numbers; one alone where the list has a fixed length.
    List {
        fixed: bool,
    },
}

/// The overloads of an op.
pub(crate) fn overloads(name: &str) -> &'static [Schema] {
    BY_NAME.get(name).map_or(&[], Vec::as_slice)
}

impl Schema {
    /// How many tensors, or lists of them, it takes: at least, and at most.
    pub(crate) fn tensors(&self) -> (usize, usize) {
        let tensors = self.arguments.iter().filter(|argument| argument.kind != Kind::Other);
        let all = tensors.clone().count();
        let required = tensors.filter(|argument| !argument.optional).count();
        (required, all)
    }
}

impl Argument {
    /// A tensor, or a list of them, of which nothing is declared.
    pub(crate) fn unnamed() -> Argument {
        Argument { name: "", kind: Kind::Tensor, takes: Takes::Option, optional: false, default: None }
    }
}

impl Takes {
    fn parse(kind: &str) -> Takes {
        if let Some((_, length)) = kind.split_once('[') {
            return Takes::List { fixed: length != "]" };
        }
        match kind {
            "bool" => Takes::Bool,
            "int" | "SymInt" => Takes::Int,
            "float" | "Scalar" => Takes::Number,
            "str" => Takes::Text,
            _ => Takes::Option,
        }
    }

    /// Whether a value can be meant for the argument.
    pub(crate) fn accepts(self, value: &Arg) -> bool {
        match value {
            Arg::None => true,
            Arg::Bool(_) => matches!(self, Takes::Bool | Takes::Number),
            Arg::Int(0 | 1) if self == Takes::Bool => true,
            Arg::Int(_) => {
                matches!(self, Takes::Int | Takes::Number | Takes::Option | Takes::List { fixed: true })
            }
            Arg::Float(_) => self == Takes::Number,
            Arg::Ints(_) | Arg::Floats(_) => matches!(self, Takes::List { .. }),
            Arg::Text(_) => matches!(self, Takes::Text | Takes::Option),
            Arg::Tensor(_) | Arg::Tensors(_) => false,
        }
    }
}

/// Reads `aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor`.
fn parse(line: &'static str) -> Option<(&'static str, Schema)> {
    let (full_name, rest) = line.split_once('(')?;
    let name = full_name.split_once('.').map_or(full_name, |(name, _)| name);
    let (list, _) = rest.rsplit_once(") -> ")?;
    let arguments = split(list).into_iter().filter(|text| *text != "*").filter_map(argument).collect();
    Some((name, Schema { arguments }))
}

fn argument(text: &'static str) -> Option<Argument> {
    let (kind, rest) = text.split_once(' ')?;
    let (name, default) = rest.split_once('=').map_or((rest, None), |(name, value)| (name, Some(value)));
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
        takes: Takes::parse(plain),
        optional: kind.ends_with('?') || default.is_some(),
        default: default.map(value),
    })
}

/// A default as an argument.
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
        let (name, schema) = parse(line).unwrap();
        assert_eq!(name, "aten::conv2d");
        let names: Vec<_> = schema.arguments.iter().map(|argument| argument.name).collect();
        assert_eq!(names, ["input", "weight", "bias", "stride", "dtype", "list"]);
        assert_eq!(schema.tensors(), (3, 4));
        assert_eq!(schema.arguments[3].default, Some(Arg::Ints(smallvec::smallvec![1, 1])));
        assert_eq!(schema.arguments[5].kind, Kind::Tensors);
        let takes: Vec<_> = schema.arguments.iter().map(|argument| argument.takes).collect();
        assert_eq!(takes[3..5], [Takes::List { fixed: true }, Takes::Option]);
    }

    #[test]
    fn values_are_told_apart_by_what_they_can_be_for() {
        assert!(Takes::List { fixed: true }.accepts(&Arg::Int(3)));
        assert!(!Takes::Option.accepts(&Arg::Ints(smallvec::smallvec![0])));
        assert!(!Takes::Int.accepts(&Arg::Float(0.5)));
        assert!(Takes::Bool.accepts(&Arg::Int(1)) && !Takes::Bool.accepts(&Arg::Int(2)));
    }

    #[test]
    fn every_line_of_the_table_is_read() {
        assert!(TEXT.lines().chain(OWN.lines()).all(|line| parse(line).is_some()));
        assert!(!overloads("aten::addmm").is_empty());
        assert_eq!(overloads("steptime::embedding_bag_backward_adam")[0].tensors(), (4, 5));
    }
}

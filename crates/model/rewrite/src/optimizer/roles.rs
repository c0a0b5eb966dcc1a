//! Roles of the tensors of an optimizer's ops.

use steptime_aten::OpCall;
use steptime_aten::optimizer::Rule;

/// Role of a tensor in the optimizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Role {
    Parameter,
    Gradient,
    /// First state: momentum, Adam's first moment, sum of squares of Adagrad and RMSprop.
    First,
    /// Adam's second moment.
    Second,
    /// The largest second moment so far.
    Largest,
    /// Divisor of the update, temporary within the step.
    Divisor,
}

use Role::{Divisor, First, Gradient, Largest, Parameter, Second};

/// Roles of an op's input tensors in order, and role of its result, where that is a new tensor.
pub(super) type Roles = (Vec<Role>, Option<Role>);

/// Roles for each op of an update of one parameter, or of one list of them.
pub(super) fn assign(rule: Rule, ops: &[OpCall]) -> Vec<Roles> {
    let mut before: Vec<&str> = Vec::new();
    let mut all = Vec::new();
    for (at, op) in ops.iter().enumerate() {
        let name = base(&op.name);
        let last = at + 1 == ops.len();
        all.push(match rule {
            Rule::Sgd { nesterov, .. } => sgd(name, &before, last, nesterov),
            _ => scaled(rule, name, &before),
        });
        before.push(name);
    }
    all
}

/// An op's name without namespace and `_foreach_` prefix.
pub(super) fn base(name: &str) -> &str {
    let name = name.strip_prefix("aten::").unwrap_or(name);
    name.strip_prefix("_foreach_").unwrap_or(name)
}

fn sgd(name: &str, before: &[&str], last: bool, nesterov: bool) -> Roles {
    let momentum = before.contains(&"mul_");
    let step = if momentum && !nesterov { First } else { Gradient };
    match (name, momentum) {
        ("mul_", _) => (vec![First], None),
        _ if last => (vec![Parameter, step], None),
        ("add", false) => (vec![Gradient, Parameter], Some(Gradient)),
        ("add", true) => (vec![Gradient, First], Some(Gradient)),
        _ if before.last() == Some(&"mul_") => (vec![First, Gradient], None),
        _ => (vec![Gradient, First], None),
    }
}

fn scaled(rule: Rule, name: &str, before: &[&str]) -> Roles {
    let adam = matches!(rule, Rule::Adam { .. } | Rule::AdamW { .. });
    let square = if adam { Second } else { First };
    let largest = before.iter().any(|name| name.starts_with("maximum"));
    match name {
        "add" => (vec![Gradient, Parameter], Some(Gradient)),
        "mul" => (vec![Gradient], Some(Gradient)),
        "mul_" if adam && !before.contains(&"lerp_") => (vec![Parameter], None),
        "mul_" if rule == Rule::Adagrad => (vec![Gradient], None),
        "mul_" => (vec![square], None),
        "lerp_" => (vec![First, Gradient], None),
        "addcmul_" => (vec![square, Gradient, Gradient], None),
        "maximum_" => (vec![Largest, Second], None),
        "maximum" => (vec![Largest, Second, Largest], None),
        "sqrt" => (vec![if largest { Largest } else { square }], Some(Divisor)),
        "div" => (vec![Divisor], Some(Divisor)),
        "addcdiv_" => (vec![Parameter, if adam { First } else { Gradient }, Divisor], None),
        _ => (vec![Divisor], None),
    }
}

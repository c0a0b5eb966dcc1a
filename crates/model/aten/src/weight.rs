//! Detection of arguments that are weights of a model, by their names.

use crate::schema;

/// Whether an argument of an op is a weight of a model: its own `weight` or `bias`, or the `params` of a recurrent one.
#[must_use]
pub fn is_weight(op: &str, argument: usize) -> bool {
    // Weights of samples, and of an average, are not weights of a model.
    if op.starts_with("aten::binary_cross_entropy") || op.starts_with("aten::lerp") {
        return false;
    }
    let named =
        |name: &str| name == "params" || name.split('_').any(|part| matches!(part, "weight" | "bias"));
    schema::overloads(op)
        .iter()
        .any(|schema| schema.arguments.get(argument).is_some_and(|argument| named(argument.name)))
}

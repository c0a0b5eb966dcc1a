//! Errors in an optimizer's settings or arguments.

/// Reason why an optimizer cannot be made, or a step cannot be taken.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OptimizerError {
    /// A setting that is out of range.
    #[error("{name} = {value} of {rule}: {needed}")]
    Setting {
        /// The optimizer.
        rule: &'static str,
        /// The setting.
        name: &'static str,
        /// Value of the setting.
        value: f64,
        /// Condition on the value.
        needed: &'static str,
    },
    /// Lists of different lengths.
    #[error(
        "{parameters} parameters and {gradients} gradients for an optimizer of {tensors} tensors: give one of each"
    )]
    Count {
        /// Number of tensors that the optimizer has state for.
        tensors: usize,
        /// Number of parameters given.
        parameters: usize,
        /// Number of gradients given.
        gradients: usize,
    },
    /// A tensor of another size than the optimizer was made for.
    #[error(
        "tensor {tensor} has {parameters} parameters and {gradients} gradients, but state for {state}: all must agree"
    )]
    Length {
        /// Index in the list.
        tensor: usize,
        /// Number of elements of the state.
        state: usize,
        /// Number of elements of the parameter.
        parameters: usize,
        /// Number of elements of the gradient.
        gradients: usize,
    },
}

/// Checks that a setting is in its range.
pub(crate) fn check(
    rule: &'static str,
    name: &'static str,
    value: f64,
    good: bool,
    needed: &'static str,
) -> Result<(), OptimizerError> {
    if good { Ok(()) } else { Err(OptimizerError::Setting { rule, name, value, needed }) }
}

/// Checks that a setting is finite and not negative.
pub(crate) fn check_positive(
    rule: &'static str,
    name: &'static str,
    value: f64,
) -> Result<(), OptimizerError> {
    check(rule, name, value, value.is_finite() && value >= 0.0, "it must be finite and not negative")
}

/// Checks that a setting is in `0 <= value < 1`.
pub(crate) fn check_share(rule: &'static str, name: &'static str, value: f64) -> Result<(), OptimizerError> {
    check(rule, name, value, (0.0..1.0).contains(&value), "it must be at least 0 and below 1")
}

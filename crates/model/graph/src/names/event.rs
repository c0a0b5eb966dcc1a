//! Names of host events that PyTorch itself creates.

use steptime_trace::STEP_MARK;

/// Parsed name of a host event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventName<'a> {
    /// Profiler's mark of a step, `ProfilerStep#3`, with its number; 0 if it has none.
    ProfilerStep(u32),
    /// Optimizer's update of the parameters: `Optimizer.step#Adam.step`.
    OptimizerStep,
    /// Optimizer's reset of the gradients: `Optimizer.zero_grad#Adam.zero_grad`.
    ZeroGrad,
    /// Any other event of an optimizer.
    Optimizer,
    /// Data loader's creation of the next batch: `enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__`.
    DataLoader,
    /// Autograd engine's event around one function, `autograd::engine::evaluate_function: MulBackward0`; holds the function.
    Engine(&'a str),
    /// Function of the backward pass, `AddmmBackward` or `torch::autograd::AccumulateGrad`; without the namespace.
    BackwardFunction(&'a str),
    /// Any other op or annotation.
    Other(&'a str),
}

const OPTIMIZER: &str = "Optimizer.";
const LOADER: &str = "enumerate(DataLoader)";
const ENGINE: &str = "autograd::engine::";
const EVALUATE: &str = "evaluate_function: ";
const AUTOGRAD: &str = "torch::autograd::";
const BACKWARD: &str = "Backward";
const ACCUMULATE: &str = "AccumulateGrad";

/// Function that accumulates the gradient of a parameter.
pub const ACCUMULATE_GRAD: &str = "torch::autograd::AccumulateGrad";

impl<'a> EventName<'a> {
    /// Parses a name.
    pub fn parse(name: &'a str) -> EventName<'a> {
        if let Some(number) = after(name, STEP_MARK) {
            EventName::ProfilerStep(number.parse().unwrap_or(0))
        } else if let Some(method) = after(name, OPTIMIZER) {
            match method.split('#').next() {
                Some("step") => EventName::OptimizerStep,
                Some("zero_grad") => EventName::ZeroGrad,
                _ => EventName::Optimizer,
            }
        } else if after(name, LOADER).is_some() {
            EventName::DataLoader
        } else if let Some(what) = after(name, ENGINE) {
            EventName::Engine(what.strip_prefix(EVALUATE).unwrap_or(name))
        } else if let Some(function) = after(name, AUTOGRAD) {
            EventName::BackwardFunction(function)
        } else if is_function(name) {
            EventName::BackwardFunction(name)
        } else {
            EventName::Other(name)
        }
    }

    /// Returns the name of the engine's event around a function of the backward pass.
    pub fn engine(function: &str) -> String {
        format!("{ENGINE}{EVALUATE}{function}")
    }

    /// Returns the name of an optimizer's event around a method: `Optimizer.step#Adam.step`.
    pub fn optimizer(class: &str, method: &str) -> String {
        format!("{OPTIMIZER}{method}#{class}.{method}")
    }

    /// Returns the class of the optimizer in the name of its event, `Adam` of `Optimizer.step#Adam.step`.
    pub fn optimizer_class(name: &str) -> Option<&str> {
        let (_, marked) = name.strip_prefix(OPTIMIZER)?.split_once('#')?;
        Some(marked.rsplit_once('.').map_or(marked, |(class, _)| class))
    }

    /// Whether it is the profiler's mark of a step.
    pub fn is_step(self) -> bool {
        matches!(self, EventName::ProfilerStep(_))
    }

    /// Whether it is an event of the autograd engine itself.
    pub fn is_engine(self) -> bool {
        matches!(self, EventName::Engine(_))
    }

    /// Whether it belongs to the backward pass: an engine event, or a function as in traces from before the engine recorded events.
    pub fn is_backward(self) -> bool {
        matches!(self, EventName::Engine(_) | EventName::BackwardFunction(_))
    }

    /// Whether it is an event of an optimizer.
    pub fn is_optimizer(self) -> bool {
        matches!(self, EventName::OptimizerStep | EventName::ZeroGrad | EventName::Optimizer)
    }

    /// Whether it is an optimizer's update of parameters.
    pub fn is_optimizer_step(self) -> bool {
        self == EventName::OptimizerStep
    }

    /// Whether it accumulates the gradient of a parameter: the function itself, not the engine's event around it.
    pub fn is_accumulation(self) -> bool {
        self == EventName::BackwardFunction(ACCUMULATE)
    }
}

/// Returns the rest of a name after a prefix. The first two letters are compared first, which rules out most names.
#[inline]
fn after<'a>(name: &'a str, prefix: &str) -> Option<&'a str> {
    let first = |text: &str| [text.as_bytes().first().copied(), text.as_bytes().get(1).copied()];
    if first(name) == first(prefix) { name.strip_prefix(prefix) } else { None }
}

/// Whether a name is that of a function of the backward pass, with or without a trailing number.
fn is_function(name: &str) -> bool {
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if !name.ends_with(BACKWARD) {
        return false;
    }
    let plain = name.rsplit("::").next().unwrap_or(name);
    let word = plain.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    word && plain.len() > BACKWARD.len() && plain.starts_with(char::is_uppercase)
}

/// Whether a name without a scope mentions the backward pass.
pub fn mentions_backward(name: &str) -> bool {
    name.contains(BACKWARD)
}

#[cfg(test)]
mod tests {
    use super::{ACCUMULATE_GRAD, EventName};

    #[test]
    fn functions_of_the_backward_pass_are_known_by_their_names() {
        for name in [
            "autograd::engine::evaluate_function: MulBackward0",
            "AddmmBackward",
            "NllLossBackward0",
            "torch::autograd::AccumulateGrad",
            "torch::autograd::CopySlices",
        ] {
            assert!(EventName::parse(name).is_backward(), "{name}");
        }
        for name in [
            "aten::mm",
            "aten::_log_softmax_backward_data",
            "aten::native_batch_norm_backward",
            "Backward",
            "loss Backward",
            "AccumulateGrad",
        ] {
            assert_eq!(EventName::parse(name), EventName::Other(name));
        }
    }

    #[test]
    fn steps_and_optimizers_are_told_apart() {
        assert_eq!(EventName::parse("ProfilerStep#12"), EventName::ProfilerStep(12));
        assert_eq!(EventName::parse("ProfilerStep#"), EventName::ProfilerStep(0));
        assert_eq!(EventName::parse("Optimizer.step#Adam.step"), EventName::OptimizerStep);
        assert_eq!(EventName::parse("Optimizer.zero_grad#Adam.zero_grad"), EventName::ZeroGrad);
        assert_eq!(EventName::parse("Optimizer.add_param_group#Adam"), EventName::Optimizer);
        assert_eq!(EventName::optimizer_class("Optimizer.step#Adam.step"), Some("Adam"));
        assert_eq!(EventName::optimizer_class("Optimizer.step#apex.FusedLAMB.step"), Some("apex.FusedLAMB"));
        assert_eq!(EventName::optimizer_class("aten::step#Adam.step"), None);
        assert_eq!(EventName::parse(&EventName::optimizer("SGD", "step")), EventName::OptimizerStep);
        assert_eq!(EventName::parse(&EventName::optimizer("SGD", "zero_grad")), EventName::ZeroGrad);
        let loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
        assert_eq!(EventName::parse(loader), EventName::DataLoader);
        let name = EventName::engine("MulBackward0");
        assert_eq!(EventName::parse(&name), EventName::Engine("MulBackward0"));
        assert!(EventName::parse(ACCUMULATE_GRAD).is_accumulation());
        assert!(!EventName::parse(&EventName::engine(ACCUMULATE_GRAD)).is_accumulation());
    }
}

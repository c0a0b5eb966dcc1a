//! Types that the arguments and results of an op may have.

use steptime_aten::Dtype;
use steptime_step::{Call, TensorId};

use super::{all, tensor};

/// Types of an op's tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpTypes {
    /// The result is a view or a copy of the first argument, and has its type.
    View,
    /// All tensors have one type.
    One,
    /// Factors begin at this argument and have one type; the result has it too, or 32 bits.
    Product(usize),
    /// The result has the type of the argument, or 32 bits.
    Sum,
    /// Every tensor has a type of its own.
    Any,
    /// The first argument has any type, all others are unchanged.
    Update,
    /// The result has any type, the arguments are unchanged.
    Lookup,
}

/// Ops whose results are views or copies.
const VIEWS: [&str; 26] = [
    "alias",
    "as_strided",
    "chunk",
    "clone",
    "contiguous",
    "detach",
    "expand",
    "expand_as",
    "flatten",
    "narrow",
    "permute",
    "reshape",
    "_reshape_alias",
    "select",
    "slice",
    "split",
    "split_with_sizes",
    "squeeze",
    "t",
    "transpose",
    "unbind",
    "unflatten",
    "_unsafe_view",
    "unsqueeze",
    "view",
    "view_as",
];

impl OpTypes {
    /// The types of an op; `None` where it is unknown what it takes.
    pub fn from_name(name: &str) -> Option<OpTypes> {
        if let Some(own) = name.strip_prefix("steptime::") {
            return Some(match own {
                "embedding_bag" => OpTypes::Lookup,
                "interaction" | "interaction_backward" => OpTypes::One,
                "embedding_bag_dense_backward" => OpTypes::Update,
                update if update.starts_with("embedding_bag_backward_") => OpTypes::Update,
                _ => return None,
            });
        }
        let name = name.strip_prefix("aten::")?;
        Some(match name {
            "mm" => OpTypes::Product(0),
            "addmm" | "_addmm_activation" => OpTypes::Product(1),
            "relu" | "relu_" | "threshold_backward" => OpTypes::One,
            "sum" => OpTypes::Sum,
            "cat" => OpTypes::Any,
            view if VIEWS.contains(&view) => OpTypes::View,
            _ => return None,
        })
    }

    /// Whether a call may have these types.
    pub fn fit(self, call: &Call, dtype: impl Fn(TensorId) -> Option<Dtype>) -> bool {
        let first = |at| tensor(&call.inputs, at).and_then(&dtype);
        let result = tensor(&call.outputs, 0).and_then(&dtype);
        match self {
            OpTypes::View | OpTypes::One => {
                let mut types = all(call).filter_map(&dtype);
                types.next().is_none_or(|first| types.all(|other| other == first))
            }
            OpTypes::Product(at) => {
                first(at) == first(at + 1) && (result == first(at) || result == Some(Dtype::F32))
            }
            OpTypes::Sum => result == first(0) || result == Some(Dtype::F32),
            OpTypes::Any | OpTypes::Update | OpTypes::Lookup => true,
        }
    }

    /// Whether the type of a tensor of the call may change at all.
    pub fn changes(self, call: &Call, of: TensorId) -> bool {
        match self {
            OpTypes::Update => tensor(&call.inputs, 0) == Some(of),
            OpTypes::Lookup => call.gives().any(|given| given == of),
            _ => true,
        }
    }
}

//! User-level pooling.

use crate::bound_call::BoundCall;
use crate::call::{Arg, OpCall};
use crate::child_calls::{child, ints, unsqueeze};
use crate::op_def::OpDef;

/// Definitions of pooling layers.
pub static OPS: &[OpDef] = &[
    OpDef::composite(&["aten::max_pool2d"]).expand(|call| renamed(call, "aten::max_pool2d_with_indices")),
    OpDef::composite(&["aten::max_pool3d"]).expand(|call| renamed(call, "aten::max_pool3d_with_indices")),
    OpDef::composite(&["aten::max_pool1d"]).expand(|call| renamed(call, "aten::max_pool1d_with_indices")),
    OpDef::composite(&["aten::max_pool1d_with_indices"])
        .expand(|call| widened(call, "aten::max_pool2d_with_indices", &[1, 1, 0, 1])),
    OpDef::composite(&["aten::avg_pool1d"]).expand(|call| widened(call, "aten::avg_pool2d", &[1, 1, 0])),
    OpDef::composite(&["aten::adaptive_avg_pool2d"])
        .expand(|call| adaptive(call, "aten::_adaptive_avg_pool2d", &[-1, -2])),
    OpDef::composite(&["aten::adaptive_avg_pool3d"])
        .expand(|call| adaptive(call, "aten::_adaptive_avg_pool3d", &[-1, -2, -3])),
    OpDef::composite(&["aten::adaptive_avg_pool1d"])
        .expand(|call| widened(call, "aten::adaptive_avg_pool2d", &[1])),
    OpDef::composite(&["aten::adaptive_max_pool1d"])
        .expand(|call| widened(call, "aten::adaptive_max_pool2d", &[1])),
];

fn renamed(call: &BoundCall<'_>, name: &str) -> Vec<OpCall> {
    vec![child(call, name, call.inputs.clone())]
}

/// Returns the pooling of lines as images of height 1; `lead` has the value of each parameter for that dimension.
fn widened(call: &BoundCall<'_>, name: &str, lead: &[i64]) -> Vec<OpCall> {
    let Some(input) = call.tensor("self").filter(|input| !input.shape.is_empty()) else { return Vec::new() };
    let image = unsqueeze(input, input.shape.len() - 1);
    let parameters = call.inputs.iter().enumerate().skip(1).map(|(arg, given)| match lead.get(arg - 1) {
        Some(&lead) => match call.ints_at(arg) {
            Some(list) if !list.is_empty() => ints(&std::iter::once(lead).chain(list).collect::<Vec<_>>()),
            _ => ints(&[]),
        },
        None => given.clone(),
    });
    vec![child(call, name, std::iter::once(Arg::Tensor(image)).chain(parameters).collect())]
}

/// Returns the calls of an adaptive pooling: a single window over all elements is a mean.
fn adaptive(call: &BoundCall<'_>, name: &str, dims: &[i64]) -> Vec<OpCall> {
    let whole =
        call.ints("output_size").is_some_and(|size| !size.is_empty() && size.iter().all(|&size| size == 1));
    if whole {
        let input = call.inputs.first().cloned().unwrap_or_default();
        return vec![child(call, "aten::mean", vec![input, ints(dims), Arg::Bool(true), Arg::None])];
    }
    renamed(call, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype::F32;
    use crate::OpSet;
    use crate::child_calls::fresh;

    #[test]
    fn one_window_is_a_mean() {
        let call = |size: &[i64]| {
            let call = OpCall::new("aten::adaptive_avg_pool2d", vec![fresh(&[2, 8, 7, 7], F32), ints(size)]);
            OpSet::standard().expand(&call).remove(0).name
        };
        assert_eq!(
            (call(&[1, 1]), call(&[3, 3])),
            ("aten::mean".into(), "aten::_adaptive_avg_pool2d".into())
        );
    }

    #[test]
    fn lines_are_images_of_height_one() {
        let inputs = vec![fresh(&[2, 8, 100], F32), ints(&[4]), ints(&[]), ints(&[0])];
        let all = OpSet::standard().leaves(&OpCall::new("aten::max_pool1d", inputs));
        assert_eq!(all[0].kernel.bytes_written(), 2 * 8 * 25 * 12);
    }
}

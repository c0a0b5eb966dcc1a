//! Elementwise ops of three tensors, or of bounds and masks.

use crate::ops::gradients as back;
use crate::ops::pointwise::rows;

rows! {
    "addcmul" Light 3 []: "aten::addcmul" "aten::addcmul_";
    "addcdiv" Medium 3 []: "aten::addcdiv" "aten::addcdiv_";
    "lerp" Light 3 [] (|c| back::steps(c, back::LERP)): "aten::lerp" "aten::lerp_";
    "where" Light 3 [mixed wraps] (|c| back::steps(c, back::WHERE)): "aten::where";
    "masked_fill" Light 3 [mixed] (|c| back::steps(c, back::FILLED)): "aten::masked_fill_";
    "clamp" Light 3 [] (|c| back::steps(c, back::CLAMP)): "aten::clamp" "aten::clamp_";
    "clamp_min" Light 2 [] (|c| back::steps(c, back::BOUND)): "aten::clamp_min" "aten::clamp_min_" "aten::clamp_max" "aten::clamp_max_";
    "addr" Light 3 []: "aten::addr" "aten::addr_";
}

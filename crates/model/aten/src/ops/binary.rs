//! Elementwise arithmetic of two tensors, or of a tensor and a number.

use crate::ops::gradients as back;
use crate::ops::pointwise::rows;

rows! {
    "add" Light 2 [wraps] (|c| back::sum(c, None)): "aten::add" "aten::add_";
    "sub" Light 2 [wraps] (|c| back::sum(c, Some("other"))): "aten::sub" "aten::sub_";
    "rsub" Light 2 [wraps] (|c| back::sum(c, Some("self"))): "aten::rsub";
    "mul" Light 2 [wraps] (back::product): "aten::mul" "aten::mul_";
    "div" Medium 2 [wraps] (back::quotient): "aten::div" "aten::div_";
    "floor_divide" Heavy 2 [wraps]: "aten::floor_divide" "aten::floor_divide_";
    "remainder" Heavy 2 [wraps]: "aten::remainder" "aten::remainder_" "aten::fmod" "aten::fmod_";
    "pow" Heavy 2 [] (|c| back::steps(c, back::POW)): "aten::pow" "aten::pow_";
    "atan2" Heavy 2 []: "aten::atan2" "aten::atan2_" "aten::hypot" "aten::hypot_";
    "xlogy" Heavy 2 [wraps]: "aten::xlogy" "aten::xlogy_";
    "copysign" Light 2 [wraps]: "aten::copysign" "aten::copysign_";
    "maximum" Light 2 []: "aten::maximum" "aten::minimum" "aten::fmax" "aten::fmin";
    "bitwise_and" Light 2 [wraps]: "aten::bitwise_and" "aten::bitwise_and_";
    "bitwise_or" Light 2 [wraps]: "aten::bitwise_or" "aten::bitwise_or_";
    "bitwise_xor" Light 2 [wraps]: "aten::bitwise_xor" "aten::bitwise_xor_";
    "bitwise_shift" Light 2 [wraps]: "aten::bitwise_left_shift" "aten::bitwise_left_shift_"
        "aten::bitwise_right_shift" "aten::bitwise_right_shift_";
    "shift" Light 2 []: "aten::__lshift__" "aten::__rshift__";
}

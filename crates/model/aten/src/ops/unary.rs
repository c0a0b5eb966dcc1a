//! Elementwise ops of one tensor.

use crate::ops::gradients as back;
use crate::ops::pointwise::rows;

rows! {
    "neg" Light 1 [] (|c| back::steps(c, back::NEG)): "aten::neg" "aten::neg_";
    "abs" Light 1 [calls_out] (|c| back::steps(c, back::ABS)): "aten::abs";
    "sign" Light 1 [] (|c| back::steps(c, back::NONE)): "aten::sign" "aten::sign_" "aten::sgn" "aten::sgn_";
    "exp" Medium 1 [] (|c| back::steps(c, back::EXP)): "aten::exp" "aten::exp_" "aten::exp2" "aten::exp2_" "aten::expm1" "aten::expm1_";
    "log" Medium 1 [] (|c| back::steps(c, back::LOG)): "aten::log" "aten::log_" "aten::log2" "aten::log2_" "aten::log10" "aten::log10_";
    "log1p" Medium 1 [] (|c| back::steps(c, back::LOG1P)): "aten::log1p" "aten::log1p_";
    "sqrt" Medium 1 [] (|c| back::steps(c, back::SQRT)): "aten::sqrt" "aten::sqrt_";
    "rsqrt" Medium 1 [] (|c| back::steps(c, back::RSQRT)): "aten::rsqrt" "aten::rsqrt_";
    "reciprocal" Medium 1 [] (|c| back::steps(c, back::RECIPROCAL)): "aten::reciprocal" "aten::reciprocal_";
    "sin" Medium 1 [] (|c| back::steps(c, back::SIN)): "aten::sin" "aten::sin_" "aten::cos" "aten::cos_" "aten::tan" "aten::tan_";
    "asin" Heavy 1 []: "aten::asin" "aten::asin_" "aten::acos" "aten::acos_" "aten::atan" "aten::atan_";
    "sinh" Heavy 1 []: "aten::sinh" "aten::sinh_" "aten::cosh" "aten::cosh_" "aten::atanh" "aten::asinh";
    "erf" Heavy 1 [] (|c| back::steps(c, back::ERF)): "aten::erf" "aten::erf_" "aten::erfc" "aten::erfc_" "aten::erfinv" "aten::erfinv_";
    "lgamma" Heavy 1 []: "aten::lgamma" "aten::lgamma_" "aten::digamma" "aten::digamma_";
    "floor" Light 1 [] (|c| back::steps(c, back::NONE)): "aten::floor" "aten::floor_" "aten::ceil" "aten::ceil_" "aten::round" "aten::round_"
        "aten::trunc" "aten::trunc_" "aten::frac" "aten::frac_";
    "nan_to_num" Light 1 [calls_out]: "aten::nan_to_num";
    "logit" Heavy 1 [mixed]: "aten::logit";
    "logical_not" Light 1 [truth calls_out]: "aten::logical_not";
    "bitwise_not" Light 1 []: "aten::bitwise_not" "aten::bitwise_not_";
}

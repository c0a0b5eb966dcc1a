//! Activations and their gradients.

use crate::ops::gradients as back;
use crate::ops::pointwise::rows;

rows! {
    "sigmoid" Medium 1 [] (|c| back::by_result(c, "aten::sigmoid_backward")): "aten::sigmoid" "aten::sigmoid_";
    "tanh" Medium 1 [] (|c| back::by_result(c, "aten::tanh_backward")): "aten::tanh" "aten::tanh_";
    "gelu" Heavy 1 [] (|c| back::by_input(c, "aten::gelu_backward")): "aten::gelu" "aten::gelu_";
    "silu" Medium 1 [] (|c| back::by_input(c, "aten::silu_backward")): "aten::silu" "aten::silu_";
    "mish" Heavy 1 [] (|c| back::by_input(c, "aten::mish_backward")): "aten::mish" "aten::mish_";
    "elu" Medium 1 [] (|c| back::by_input(c, "aten::elu_backward")): "aten::elu" "aten::elu_";
    "leaky_relu" Light 1 [] (|c| back::by_input(c, "aten::leaky_relu_backward")): "aten::leaky_relu" "aten::leaky_relu_";
    "threshold" Light 1 [] (|c| back::by_input(c, "aten::threshold_backward")): "aten::threshold" "aten::threshold_";
    "softplus" Heavy 1 [] (|c| back::by_input(c, "aten::softplus_backward")): "aten::softplus";
    "hardswish" Light 1 [] (|c| back::by_input(c, "aten::hardswish_backward")): "aten::hardswish" "aten::hardswish_";
    "hardsigmoid" Light 1 [] (|c| back::by_input(c, "aten::hardsigmoid_backward")): "aten::hardsigmoid" "aten::hardsigmoid_";
    "hardshrink" Light 1 [] (|c| back::by_input(c, "aten::hardshrink_backward")): "aten::hardshrink" "aten::softshrink";
    "log_sigmoid" Medium 1 [] (|c| back::by_input(c, "aten::log_sigmoid_backward")): "aten::log_sigmoid_forward";
    "prelu" Light 2 [] (|c| back::by_input(c, "aten::_prelu_kernel_backward")): "aten::_prelu_kernel";
    "threshold_backward" Light 2 []: "aten::threshold_backward";
    "sigmoid_backward" Light 2 []: "aten::sigmoid_backward";
    "tanh_backward" Light 2 []: "aten::tanh_backward";
    "gelu_backward" Heavy 2 []: "aten::gelu_backward";
    "silu_backward" Medium 2 []: "aten::silu_backward";
    "mish_backward" Heavy 2 []: "aten::mish_backward";
    "hardswish_backward" Light 2 []: "aten::hardswish_backward";
    "hardsigmoid_backward" Light 2 []: "aten::hardsigmoid_backward";
    "hardtanh_backward" Light 2 []: "aten::hardtanh_backward";
    "hardshrink_backward" Light 2 []: "aten::hardshrink_backward" "aten::softshrink_backward";
    "leaky_relu_backward" Light 2 []: "aten::leaky_relu_backward";
    "softplus_backward" Medium 2 []: "aten::softplus_backward";
    "elu_backward" Medium 6 []: "aten::elu_backward";
    "prelu_backward" Light 3 []: "aten::_prelu_kernel_backward";
    "log_sigmoid_backward" Medium 2 []: "aten::log_sigmoid_backward";
}

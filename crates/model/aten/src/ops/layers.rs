//! Ops that call others in ways that depend on more than their arguments: their calls are unknown here.

use crate::op_def::OpDef;

/// Definitions of ops that call others.
pub static OPS: &[OpDef] = &[
    OpDef::composite(&["aten::bilinear", "aten::einsum", "aten::tensordot", "aten::inner", "aten::addbmm"]),
    OpDef::composite(&["aten::lstm", "aten::gru", "aten::rnn_tanh", "aten::rnn_relu", "aten::lstm_cell"]),
    OpDef::composite(&["aten::_weight_norm", "aten::cosine_similarity", "aten::isclose"]),
];

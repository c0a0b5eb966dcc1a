//! Ops that call others in ways that depend on more than their arguments: what they call is not known here.

use crate::op_def::OpDef;

/// Ops that call others.
pub static OPS: &[OpDef] = &[
    OpDef::composite(&["aten::bilinear", "aten::einsum", "aten::tensordot", "aten::inner", "aten::addbmm"]),
    OpDef::composite(&["aten::lstm", "aten::gru", "aten::rnn_tanh", "aten::rnn_relu", "aten::lstm_cell"]),
    OpDef::composite(&["aten::_weight_norm", "aten::cosine_similarity", "aten::isclose"]),
];

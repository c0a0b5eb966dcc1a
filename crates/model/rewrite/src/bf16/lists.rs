//! Which ops autocast runs in 16 bits, and which in 32.

/// What autocast does about an op, or about a function of the backward of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Its inputs are cast to 16 bits.
    Narrow,
    /// Its inputs are cast to 32 bits.
    Wide,
    /// It runs in the types that come.
    Any,
}

/// Run in 16 bits.
const NARROW: [&str; 33] = [
    "_convolution",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "convolution",
    "prelu",
    "addmm",
    "addmv",
    "addr",
    "matmul",
    "einsum",
    "mm",
    "mv",
    "linalg_vecdot",
    "linear",
    "addbmm",
    "baddbmm",
    "bmm",
    "chain_matmul",
    "linalg_multi_dot",
    "_thnn_fused_lstm_cell",
    "_thnn_fused_gru_cell",
    "lstm_cell",
    "gru_cell",
    "lstm",
    "gru",
    "cudnn_rnn",
    "_native_multi_head_attention",
    "scaled_dot_product_attention",
];

/// Run in 32 bits.
const WIDE: [&str; 50] = [
    "acos",
    "asin",
    "cosh",
    "erfinv",
    "exp",
    "expm1",
    "log",
    "log10",
    "log2",
    "log1p",
    "reciprocal",
    "rsqrt",
    "sinh",
    "tan",
    "pow",
    "softplus",
    "layer_norm",
    "native_layer_norm",
    "group_norm",
    "native_group_norm",
    "frobenius_norm",
    "nuclear_norm",
    "norm",
    "cosine_similarity",
    "poisson_nll_loss",
    "cosine_embedding_loss",
    "nll_loss",
    "nll_loss2d",
    "hinge_embedding_loss",
    "kl_div",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "mse_loss",
    "margin_ranking_loss",
    "multilabel_margin_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "multi_margin_loss",
    "binary_cross_entropy_with_logits",
    "dist",
    "cdist",
    "renorm",
    "logsumexp",
    "prod",
    "softmax",
    "log_softmax",
    "cumprod",
    "cumsum",
    "sum",
];

impl Kind {
    /// What autocast does about an op.
    pub fn of_op(name: &str) -> Kind {
        let Some(name) = name.strip_prefix("aten::") else { return Kind::Any };
        match name {
            _ if NARROW.contains(&name) => Kind::Narrow,
            _ if WIDE.contains(&name) => Kind::Wide,
            _ => Kind::Any,
        }
    }

    /// What it did about the op that a function such as `AddmmBackward0` is the backward of.
    pub fn of_function(name: &str) -> Kind {
        let Some((name, _)) = name.split_once("Backward") else { return Kind::Any };
        let name = name.to_ascii_lowercase();
        let is = |op: &&str| op.replace('_', "") == name;
        match () {
            () if name.starts_with("scaleddotproduct") || NARROW.iter().any(&is) => Kind::Narrow,
            () if WIDE.iter().any(is) => Kind::Wide,
            () => Kind::Any,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Kind;

    #[test]
    fn functions_are_of_the_kind_of_their_ops() {
        assert_eq!(Kind::of_op("aten::addmm"), Kind::Narrow);
        assert_eq!(Kind::of_op("aten::relu"), Kind::Any);
        assert_eq!(Kind::of_function("AddmmBackward0"), Kind::Narrow);
        assert_eq!(Kind::of_function("NativeLayerNormBackward0"), Kind::Wide);
        assert_eq!(Kind::of_function("LogSoftmaxBackward0"), Kind::Wide);
        assert_eq!(Kind::of_function("ScaledDotProductEfficientAttentionBackward0"), Kind::Narrow);
        assert_eq!(Kind::of_function("torch::autograd::AccumulateGrad"), Kind::Any);
    }
}

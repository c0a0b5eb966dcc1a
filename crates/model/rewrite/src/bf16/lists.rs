//! CUDA's lists of autocast: ops that it runs in 16 bits and in 32 bits. A CPU has different lists.

/// Autocast's treatment of an op, or of a backward function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Inputs are cast to 16 bits.
    Narrow,
    /// Inputs are cast to 32 bits.
    Wide,
    /// The output has 32 bits. A softmax casts its input to 32 bits, unless it is float16.
    WideResult,
    /// The output has 32 bits, and the input is not cast.
    WideSum,
    /// Inputs are cast to the widest type among them.
    Promoted,
    /// No cast.
    Any,
}

/// Ops that run in 16 bits.
const NARROW: [&str; 36] = [
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
    "rnn_tanh_cell",
    "rnn_relu_cell",
    // Their inner op is on the list as `_cudnn_rnn`.
    "lstm",
    "gru",
    "rnn_tanh",
    "rnn_relu",
    "_cudnn_rnn",
    "scaled_dot_product_attention",
];

/// Ops that run in 32 bits.
const WIDE: [&str; 53] = [
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
    "frobenius_norm",
    "nuclear_norm",
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
    "pdist",
    "cdist",
    "renorm",
    "logsumexp",
    "upsample_nearest1d",
    "upsample_nearest2d",
    "upsample_nearest3d",
    "upsample_linear1d",
    "upsample_bilinear2d",
    "upsample_trilinear3d",
    "upsample_bicubic2d",
    "_upsample_nearest_exact2d",
    "_upsample_bilinear2d_aa",
    "_upsample_bicubic2d_aa",
];

/// Ops called with `dtype=torch.float32`: they cast their input to it ...
const WIDE_RESULT: [&str; 4] = ["softmax", "log_softmax", "cumprod", "cumsum"];
/// ... or read it without a cast.
const WIDE_SUM: [&str; 5] = ["sum", "prod", "norm", "linalg_vector_norm", "linalg_matrix_norm"];

/// Ops that run in the widest type of their inputs.
const PROMOTED: [&str; 10] = [
    "addcdiv",
    "addcmul",
    "atan2",
    "bilinear",
    "cross",
    "grid_sampler",
    "index_put",
    "scatter_add",
    "tensordot",
    "vdot",
];

const LISTS: [(&[&str], Kind); 5] = [
    (&NARROW, Kind::Narrow),
    (&WIDE, Kind::Wide),
    (&WIDE_RESULT, Kind::WideResult),
    (&WIDE_SUM, Kind::WideSum),
    (&PROMOTED, Kind::Promoted),
];

impl Kind {
    /// Autocast's treatment of an op.
    pub fn from_op(name: &str) -> Kind {
        let Some(name) = name.strip_prefix("aten::") else { return Kind::Any };
        let found = LISTS.iter().find(|(list, _)| list.contains(&name));
        found.map_or(Kind::Any, |&(_, kind)| kind)
    }

    /// Autocast's treatment of the op that a function such as `AddmmBackward0` differentiates.
    pub fn from_function(name: &str) -> Kind {
        let Some((name, _)) = name.split_once("Backward") else { return Kind::Any };
        let name = name.to_ascii_lowercase();
        if name.starts_with("scaleddotproduct") {
            return Kind::Narrow;
        }
        let is = |op: &&str| op.replace('_', "") == name;
        let of_list = LISTS.iter().find(|(list, _)| list.iter().any(is)).map(|&(_, kind)| kind);
        // The op that `group_norm` calls is on no list.
        let inner = || (name == "nativegroupnorm").then_some(Kind::Wide);
        of_list.or_else(inner).unwrap_or(Kind::Any)
    }
}

#[cfg(test)]
mod tests {
    use super::Kind;

    #[test]
    fn functions_are_of_the_kind_of_their_ops() {
        assert_eq!(Kind::from_op("aten::addmm"), Kind::Narrow);
        assert_eq!(Kind::from_op("aten::relu"), Kind::Any);
        assert_eq!(Kind::from_op("aten::log_softmax"), Kind::WideResult);
        assert_eq!(Kind::from_function("AddmmBackward0"), Kind::Narrow);
        assert_eq!(Kind::from_function("NativeLayerNormBackward0"), Kind::Wide);
        assert_eq!(Kind::from_function("LogSoftmaxBackward0"), Kind::WideResult);
        assert_eq!(Kind::from_function("SumBackward1"), Kind::WideSum);
        assert_eq!(Kind::from_function("ScaledDotProductEfficientAttentionBackward0"), Kind::Narrow);
        assert_eq!(Kind::from_function("torch::autograd::AccumulateGrad"), Kind::Any);
    }
}

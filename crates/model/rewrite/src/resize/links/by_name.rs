//! Links by the name of an op.

use super::{Link, OpTensors};

impl OpTensors<'_> {
    /// Adds the links for the op's name; returns whether the name is known.
    pub(super) fn by_name(&mut self) -> bool {
        let name = self.call.name.strip_prefix("aten::").unwrap_or(&self.call.name).to_owned();
        let name = name.trim_end_matches('_');
        match name {
            "mm" | "_addmm_activation" | "addmm" | "bmm" | "baddbmm" | "mv" | "addmv" => self.product(name),
            "matmul" if self.step.ops[self.op].children.is_empty() => self.matmul(),
            "linear" => self.linear(),
            "cdist" | "_cdist_forward" => self.distances(),
            "t" | "transpose" | "permute" | "numpy_T" | "swapaxes" | "swapdims" | "mT" => self.permuted(name),
            "view" | "_unsafe_view" | "reshape" | "flatten" | "unflatten" | "_reshape_alias" => {
                self.reshaped()
            }
            "view_as" | "reshape_as" => {
                self.reshaped();
                self.leading(self.input(1), self.output(0));
            }
            "squeeze" => self.squeezed(),
            "unsqueeze" => self.unsqueezed(),
            "expand" | "expand_as" | "broadcast_to" => self.expanded(),
            "repeat" | "tile" => self.tiled(),
            "as_strided" => self.strided(),
            "select" | "unbind" => self.reduced(&[0]),
            "sum" | "mean" | "amax" | "amin" | "max" | "min" | "argmax" | "argmin" | "logsumexp" | "any"
            | "all" | "prod" | "var" | "std" | "var_mean" | "std_mean" | "norm" | "linalg_vector_norm" => {
                self.reductions();
            }
            "select_backward" => self.inserted(),
            "slice" | "narrow" => self.cut(),
            "split"
            | "split_with_sizes"
            | "unsafe_split"
            | "unsafe_split_with_sizes"
            | "chunk"
            | "unsafe_chunk"
            | "tensor_split" => self.split(),
            "slice_backward" => self.put_back(),
            "stack" => self.stacked(),
            "cat" | "concat" | "concatenate" => self.joined(),
            "embedding" => self.embedding(),
            "embedding_dense_backward" | "embedding_backward" | "embedding_sparse_backward" => {
                self.embedding_backward();
            }
            "_embedding_bag" | "_embedding_bag_forward_only" | "embedding_bag" => self.bags(),
            "_embedding_bag_dense_backward"
            | "_embedding_bag_sparse_backward"
            | "_embedding_bag_backward" => self.bags_backward(name),
            "_sparse_coo_tensor_unsafe" | "sparse_coo_tensor" => self.columns(self.input(0), self.input(1)),
            "_sparse_coo_tensor_with_dims_and_tensors" => self.columns(self.input(3), self.input(4)),
            "_values" | "values" => {
                let made = self.made();
                self.leading(made.map(|(_, values)| values), self.output(0));
            }
            "_indices" | "indices" => {
                let made = self.made();
                self.leading(made.map(|(indices, _)| indices), self.output(0));
            }
            "convolution_backward" | "cudnn_convolution_backward" => self.convolution_backward(),
            "index_select" => self.index_select(),
            "index_add" | "index_copy" => self.index_add(),
            "gather" => self.gather(),
            "scatter" | "scatter_add" | "scatter_reduce" => self.scatter(),
            "index" => self.indexed(self.output(0)),
            "index_put" | "_index_put_impl" => {
                self.indexed(self.input(2));
                self.leading(self.input(0), self.output(0));
            }
            "nonzero" | "masked_select" | "unique" | "_unique2" | "unique_dim" | "unique_consecutive" => {
                self.found()
            }
            "one_hot" => {
                self.leading(self.input(0), self.output(0));
                self.fixed(self.output(0), -1);
            }
            "constant_pad_nd" | "pad" | "reflection_pad1d" | "reflection_pad2d" | "replication_pad1d"
            | "replication_pad2d" => self.padded(),
            "nll_loss_forward" | "nll_loss" | "nll_loss_nd" | "cross_entropy_loss" | "nll_loss2d"
            | "nll_loss2d_forward" => self.classes(false),
            "nll_loss_backward" | "nll_loss2d_backward" => self.classes(true),
            "lstm" | "gru" | "rnn_tanh" | "rnn_relu" | "_cudnn_rnn" => self.recurrent(),
            _ if name.starts_with("_foreach_") || name.starts_with("_fused_") => self.by_list(),
            _ if name.contains("conv") && !name.contains("backward") => self.convolution(),
            _ if name.contains("attention") => {
                if self.rank(self.input(0)) == 4 {
                    self.samples(self.input(0), 0);
                }
                self.by_leading(None);
            }
            _ if name.contains("lstm_cell") || name.contains("gru_cell") => self.by_leading(None),
            _ if name.contains("layer_norm") || name.contains("rms_norm") => self.by_leading(Some(-1)),
            _ if name.contains("_norm") => self.by_leading(Some(1)),
            _ if name.contains("pool") || name.contains("upsample") || name.contains("grid_sampler") => {
                self.resampled();
            }
            _ => return false,
        }
        true
    }

    /// A reduction over some dimensions, or the elementwise maximum or minimum of two tensors.
    fn reductions(&mut self) {
        match self.input(1) {
            Some(_) => self.by_place_from_the_end(),
            None => self.reduced(&[]),
        }
    }

    /// Padding.
    fn padded(&mut self) {
        let (x, out) = (self.input(0), self.output(0));
        for at in 0..self.rank(out) {
            let (Some(from), Some(to)) = (self.dim(x, at), self.dim(out, at)) else { continue };
            let same = self.size(from) == self.size(to);
            self.links.push(if same { Link::Same(from, to) } else { Link::Longer(from, to) });
        }
    }
}

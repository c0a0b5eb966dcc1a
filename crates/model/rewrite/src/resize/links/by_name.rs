//! What an op's name says of its dimensions.

use steptime_aten::Arg;
use steptime_step::TensorId;

use super::{Dim, Link, Seen};

impl Seen<'_> {
    /// What the op's name says; whether it says anything.
    pub(super) fn by_name(&mut self) -> bool {
        let name = self.call.name.strip_prefix("aten::").unwrap_or(&self.call.name).to_owned();
        let name = name.trim_end_matches('_');
        let (x, out) = (self.input(0), self.output(0));
        match name {
            "mm" | "_addmm_activation" | "addmm" | "bmm" | "baddbmm" => self.product(name),
            "linear" => self.linear(),
            "t" | "transpose" | "permute" | "numpy_T" => self.permuted(name),
            "view" | "_unsafe_view" | "reshape" | "flatten" | "unflatten" | "_reshape_alias" | "squeeze"
            | "unsqueeze" | "view_as" => {
                self.links.extend(x.zip(out).map(|(x, out)| Link::Reshape(x, out)));
            }
            "as_strided" => self.strided(),
            "select" | "sum" | "mean" | "amax" | "amin" | "max" | "min" | "argmax" | "unbind"
            | "logsumexp" | "any" | "all" | "prod" | "var" | "std" | "norm" => self.reduced(),
            "select_backward" => self.inserted(),
            "stack" => self.stacked(),
            "cat" | "concat" | "concatenate" => self.joined(),
            "embedding" => {
                let (weight, indices) = (x, self.input(1));
                self.leading(indices, out);
                self.same(weight, -1, out, -1);
            }
            "embedding_dense_backward" | "embedding_backward" | "embedding_sparse_backward" => {
                self.leading(self.input(1), x);
                self.same(x, -1, out, -1);
            }
            "_embedding_bag" | "_embedding_bag_forward_only" | "embedding_bag" => {
                let (indices, offsets) = (self.input(1), self.input(2));
                self.same(offsets, 0, out, 0);
                self.same(x, -1, out, -1);
                self.same(indices, 0, self.output(1), 0);
                self.same(offsets, 0, self.output(2), 0);
            }
            "_embedding_bag_dense_backward"
            | "_embedding_bag_sparse_backward"
            | "_embedding_bag_backward" => {
                let offset2bag = if name == "_embedding_bag_backward" { 3 } else { 2 };
                self.same(self.input(1), 0, self.input(offset2bag), 0);
                self.same(x, 0, self.input(offset2bag + 1), 0);
                self.same(x, -1, out, -1);
            }
            "_sparse_coo_tensor_unsafe"
            | "sparse_coo_tensor"
            | "_sparse_coo_tensor_with_dims_and_tensors" => {
                let at = usize::from(name == "_sparse_coo_tensor_with_dims_and_tensors") * 3;
                self.same(self.input(at), 1, self.input(at + 1), 0);
            }
            "convolution" | "_convolution" | "cudnn_convolution" | "conv2d" | "conv1d" | "conv3d" => {
                self.same(x, 0, out, 0);
                self.same(self.input(1), 0, out, 1);
            }
            "convolution_backward" => {
                let data = self.input(1);
                self.same(x, 0, data, 0);
                self.same(data, 0, out, 0);
                self.same(data, 1, out, 1);
            }
            "index_select" => {
                let dim = self.call.int_at(1).unwrap_or(0) as isize;
                self.same(self.input(2), 0, out, dim);
                let rank = x.map_or(0, |x| self.shape(x).len() as isize);
                (0..rank).filter(|&at| at != dim).for_each(|at| self.same(x, at, out, at));
            }
            "index_add" | "index_copy" => {
                let dim = self.call.int_at(1).unwrap_or(0) as isize;
                self.same(self.input(2), 0, self.input(3), dim);
                self.alike(x, out);
            }
            "_values" | "values" => {
                let made = self.sparse();
                self.alike(made.map(|(_, values)| values), out);
            }
            "_indices" | "indices" => {
                let made = self.sparse();
                self.alike(made.map(|(indices, _)| indices), out);
            }
            _ if name.contains("attention")
                || name.ends_with("_norm")
                || name.ends_with("_norm_backward") =>
            {
                self.by_leading();
            }
            _ if name.starts_with("_foreach_") || name.starts_with("_fused_") => self.by_place(),
            "nll_loss_forward" | "nll_loss" | "nll_loss_nd" | "cross_entropy_loss" => {
                self.same(x, 0, self.input(1), 0)
            }
            "nll_loss_backward" => {
                self.alike(self.input(1), out);
                self.same(self.input(1), 0, self.input(2), 0);
            }
            _ => return false,
        }
        true
    }

    /// Lists of parameters, gradients and states: those of one place are of one shape.
    fn by_place(&mut self) {
        let args = self.ids.inputs.iter().chain(&self.ids.outputs);
        let lists: Vec<Vec<TensorId>> =
            args.map(|arg| arg.tensors().to_vec()).filter(|list| !list.is_empty()).collect();
        let Some(first) = lists.first() else { return };
        for list in lists[1..].iter().filter(|list| list.len() == first.len()) {
            for (&one, &other) in first.iter().zip(list) {
                if self.shape(one) == self.shape(other) {
                    self.alike(Some(one), Some(other));
                }
            }
        }
    }

    fn product(&mut self, name: &str) {
        let first = usize::from(name.contains("add"));
        let (a, b, out) = (self.input(first), self.input(first + 1), self.output(0));
        if name.contains("bmm") {
            self.same(a, 0, b, 0);
            self.same(a, 0, out, 0);
        }
        self.same(a, -2, out, -2);
        self.same(a, -1, b, -2);
        self.same(b, -1, out, -1);
        if first == 1 {
            let rank = self.input(0).map_or(0, |added| self.shape(added).len() as isize);
            for back in 1..=rank {
                self.if_equal(self.input(0), -back, out, -back);
            }
        }
    }

    fn linear(&mut self) {
        let (x, weight, out) = (self.input(0), self.input(1), self.output(0));
        let rank = x.map_or(0, |x| self.shape(x).len() as isize);
        for at in 0..rank - 1 {
            self.same(x, at, out, at);
        }
        self.same(x, -1, weight, -1);
        self.same(weight, 0, out, -1);
    }

    fn permuted(&mut self, name: &str) {
        let (Some(x), out) = (self.input(0), self.output(0)) else { return };
        let rank = self.shape(x).len() as i64;
        let wrap = |dim: i64| if dim < 0 { dim + rank } else { dim };
        let order: Vec<i64> = match name {
            "permute" => self.call.ints_at(1).unwrap_or_default().iter().map(|&dim| wrap(dim)).collect(),
            "transpose" => {
                let (a, b) = (self.call.int_at(1).map(wrap), self.call.int_at(2).map(wrap));
                let swapped = |at| {
                    if Some(at) == a {
                        b
                    } else if Some(at) == b {
                        a
                    } else {
                        Some(at)
                    }
                };
                (0..rank).filter_map(swapped).collect()
            }
            _ => (0..rank).rev().collect(),
        };
        for (at, from) in order.into_iter().enumerate() {
            self.same(Some(x), from as isize, out, at as isize);
        }
    }

    /// Views of any kind: dimensions of the same size and stride.
    fn strided(&mut self) {
        let (Some(x), Some(out)) = (self.input(0), self.output(0)) else { return };
        let (from, to) = (&self.step.tensors[x].value, &self.step.tensors[out].value);
        let mut found = Vec::new();
        for (at, dim) in from.shape.iter().zip(&from.strides).enumerate() {
            let same = to.shape.iter().zip(&to.strides).position(|other| other == dim && *dim.0 > 1);
            found.extend(same.map(|other| (at as isize, other as isize)));
        }
        for (at, other) in found {
            self.same(Some(x), at, Some(out), other);
        }
    }

    /// A dimension, or several, are gone or of size one.
    fn reduced(&mut self) {
        let Some(x) = self.input(0) else { return };
        let rank = self.shape(x).len() as i64;
        let gone: Vec<i64> = match (self.call.name.as_str(), self.call.ints_at(1)) {
            ("aten::unbind", None) => vec![0],
            (_, Some(dims)) => dims.iter().map(|&dim| if dim < 0 { dim + rank } else { dim }).collect(),
            _ => return,
        };
        let outs: Vec<TensorId> = self.ids.gives().collect();
        for out in outs {
            let keeps = self.shape(out).len() as i64 == rank;
            let left = (0..rank).filter(|dim| keeps || !gone.contains(dim)).collect::<Vec<_>>();
            for (at, from) in left.into_iter().enumerate().filter(|(_, from)| !gone.contains(from)) {
                self.same(Some(x), from as isize, Some(out), at as isize);
            }
        }
    }

    /// The gradient of a selection: a dimension more.
    fn inserted(&mut self) {
        let (Some(x), Some(out)) = (self.input(0), self.output(0)) else { return };
        let rank = self.shape(out).len() as i64;
        let Some(dim) = self.call.int_at(2).map(|dim| if dim < 0 { dim + rank } else { dim }) else { return };
        let others = (0..rank).filter(|&at| at != dim).enumerate().collect::<Vec<_>>();
        for (at, to) in others {
            self.same(Some(x), at as isize, Some(out), to as isize);
        }
    }

    /// Parts laid one after the other along a dimension.
    fn joined(&mut self) {
        let Some(out) = self.output(0) else { return };
        let rank = self.shape(out).len() as i64;
        let dim = self.call.int_at(1).map_or(0, |dim| if dim < 0 { dim + rank } else { dim });
        let parts: Vec<TensorId> = self.ids.inputs.first().map_or(&[][..], Arg::tensors).to_vec();
        // An empty part of another rank is left out.
        let parts: Vec<TensorId> =
            parts.into_iter().filter(|&part| self.shape(part).len() as i64 == rank).collect();
        for at in (0..rank).filter(|&at| at != dim) {
            parts.iter().for_each(|&part| self.same(Some(part), at as isize, Some(out), at as isize));
        }
        let dims = parts.iter().map(|&tensor| Dim { tensor, at: dim as usize }).collect();
        self.links.push(Link::Joined(dims, Dim { tensor: out, at: dim as usize }));
    }

    fn stacked(&mut self) {
        let Some(out) = self.output(0) else { return };
        let rank = self.shape(out).len() as i64;
        let dim = self.call.int_at(1).map_or(0, |dim| if dim < 0 { dim + rank } else { dim });
        let parts: Vec<TensorId> = self.ids.inputs.first().map_or(&[][..], Arg::tensors).to_vec();
        for part in parts {
            for (at, to) in (0..rank).filter(|&at| at != dim).enumerate() {
                self.same(Some(part), at as isize, Some(out), to as isize);
            }
        }
    }
}

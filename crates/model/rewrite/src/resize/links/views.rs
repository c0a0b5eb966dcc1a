//! Views: dimensions that are permuted, merged, split, removed and inserted.

use steptime_aten::Arg;
use steptime_step::TensorId;

use super::{Dim, Link, OpTensors};

impl OpTensors<'_> {
    /// The same elements in another shape.
    pub(super) fn reshaped(&mut self) {
        let (Some(x), Some(out)) = (self.input(0), self.output(0)) else { return };
        let open = self.call.ints_at(1).and_then(|sizes| sizes.iter().position(|&size| size < 0));
        self.links.push(Link::Reshape(x, out, open));
        self.rows_of_parts();
    }

    /// Inserts a dimension of size one.
    pub(super) fn unsqueezed(&mut self) {
        let (x, out) = (self.input(0), self.output(0));
        let rank = self.rank(out);
        let Some(dim) = self.number("dim").map(|dim| dim as isize) else { return self.reshaped() };
        let new = if dim < 0 { dim + rank } else { dim };
        self.fixed(out, new);
        let kept: Vec<isize> = (0..rank).filter(|&at| at != new).collect();
        kept.into_iter().enumerate().for_each(|(at, to)| self.same(x, at as isize, out, to));
    }

    /// Removes dimensions of size one.
    pub(super) fn squeezed(&mut self) {
        let (x, out) = (self.input(0), self.output(0));
        let rank = self.rank(x);
        let Some(dims) = self.numbers("dim") else { return self.reshaped() };
        let gone: Vec<isize> =
            dims.iter().map(|&dim| dim as isize).map(|dim| if dim < 0 { dim + rank } else { dim }).collect();
        if rank - gone.len() as isize != self.rank(out) {
            return self.reshaped();
        }
        let kept: Vec<isize> = (0..rank).filter(|at| !gone.contains(at)).collect();
        kept.into_iter().enumerate().for_each(|(at, from)| self.same(x, from, out, at as isize));
    }

    pub(super) fn permuted(&mut self, name: &str) {
        let (x, out) = (self.input(0), self.output(0));
        let rank = self.rank(x) as i64;
        let wrap = |dim: i64| if dim < 0 { dim + rank } else { dim };
        let order: Vec<i64> = match name {
            "permute" => self.call.ints_at(1).unwrap_or_default().iter().map(|&dim| wrap(dim)).collect(),
            "transpose" | "swapaxes" | "swapdims" => {
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
            self.same(x, from as isize, out, at as isize);
        }
    }

    /// Views of any kind: links dimensions with the same size and stride. An op inside a view adds no links of its own.
    pub(super) fn strided(&mut self) {
        let (Some(x), Some(out)) = (self.input(0), self.output(0)) else { return };
        let around = self.step.ops[self.op].parent.and_then(|parent| self.step.ops[parent].call.as_deref());
        if around.is_some_and(|call| call.gives().any(|given| given == out)) {
            return;
        }
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

    /// Expansion along dimensions of size one, and along new ones: the script gives the new sizes.
    pub(super) fn expanded(&mut self) {
        let (x, out) = (self.input(0), self.output(0));
        let sizes = self.call.ints_at(1);
        let new = self.rank(out) - self.rank(x);
        for at in 0..self.rank(x) {
            let (Some(from), Some(to)) = (self.dim(x, at), self.dim(out, at + new)) else { continue };
            let kept =
                sizes.as_ref().and_then(|sizes| sizes.get((at + new) as usize)).is_some_and(|&size| size < 0);
            if self.size(from) == self.size(to) && (kept || self.size(from) != 1) {
                self.links.push(Link::Same(from, to));
            } else if self.size(from) == self.size(to) {
                self.links.push(Link::Spread([from].into_iter().collect(), to));
            }
        }
        if let (Some(other), Some(out)) = (self.input(1), out) {
            self.leading(Some(other), Some(out));
        }
    }

    /// Concatenated copies of a tensor.
    pub(super) fn tiled(&mut self) {
        let (x, out) = (self.input(0), self.output(0));
        let Some(times) = self.call.ints_at(1) else { return };
        let [more, short] = [self.rank(x), times.len() as isize].map(|own| self.rank(out) - own);
        for at in more..self.rank(out) {
            let count = usize::try_from(at - short).ok().and_then(|at| times.get(at)).copied().unwrap_or(1);
            if let (Some(from), Some(to)) = (self.dim(x, at - more), self.dim(out, at)) {
                self.links.push(if count == 1 {
                    Link::Same(from, to)
                } else {
                    Link::Repeated(from, to, count)
                });
            }
        }
    }

    /// Reduced dimensions, removed or of size one.
    pub(super) fn reduced(&mut self, default: &[i64]) {
        let x = self.input(0);
        let rank = self.rank(x) as i64;
        let named = self.numbers("dim").or_else(|| self.numbers("dims")).or_else(|| self.numbers("axis"));
        // Without dimensions, all are reduced. The form without dimensions has a type in their place.
        let named =
            named.filter(|dims| !dims.is_empty() && (self.call.inputs.len() > 2 || !default.is_empty()));
        let dims = named.unwrap_or_else(|| default.into());
        let gone: Vec<i64> = dims.iter().map(|&dim| if dim < 0 { dim + rank } else { dim }).collect();
        if gone.is_empty() {
            return;
        }
        let outs: Vec<TensorId> = self.ids.gives().collect();
        for out in outs {
            let keeps = self.shape(out).len() as i64 == rank;
            let left: Vec<i64> = (0..rank).filter(|dim| keeps || !gone.contains(dim)).collect();
            for (at, from) in left.into_iter().enumerate() {
                if gone.contains(&from) {
                    self.fixed(Some(out), at as isize);
                } else {
                    self.same(x, from as isize, Some(out), at as isize);
                }
            }
        }
    }

    /// The gradient of a selection: one more dimension.
    pub(super) fn inserted(&mut self) {
        let (x, out) = (self.input(0), self.output(0));
        let rank = self.rank(out);
        let Some(dim) = self.call.int_at(2).map(|dim| dim as isize) else { return };
        let dim = if dim < 0 { dim + rank } else { dim };
        let others: Vec<isize> = (0..rank).filter(|&at| at != dim).collect();
        others.into_iter().enumerate().for_each(|(at, to)| self.same(x, at as isize, out, to));
    }

    /// Parts concatenated along a dimension.
    pub(super) fn joined(&mut self) {
        let out = self.output(0);
        let rank = self.rank(out);
        let dim = self.number("dim").or_else(|| self.call.int_at(1)).unwrap_or(0) as isize;
        let dim = if dim < 0 { dim + rank } else { dim };
        let parts: Vec<TensorId> = self.ids.inputs.first().map_or(&[][..], Arg::tensors).to_vec();
        // An empty part of another rank is left out.
        let parts: Vec<TensorId> =
            parts.into_iter().filter(|&part| self.shape(part).len() as isize == rank).collect();
        for at in (0..rank).filter(|&at| at != dim) {
            parts.iter().for_each(|&part| self.same(Some(part), at, out, at));
        }
        let (Some(whole), Ok(at)) = (self.dim(out, dim), usize::try_from(dim)) else { return };
        let dims = parts.iter().map(|&tensor| Dim { tensor, at }).collect();
        self.links.push(Link::Joined(dims, whole));
    }

    /// Parts stacked along a new dimension.
    pub(super) fn stacked(&mut self) {
        let out = self.output(0);
        let rank = self.rank(out);
        let dim = self.number("dim").or_else(|| self.call.int_at(1)).unwrap_or(0) as isize;
        let dim = if dim < 0 { dim + rank } else { dim };
        self.fixed(out, dim);
        let parts: Vec<TensorId> = self.ids.inputs.first().map_or(&[][..], Arg::tensors).to_vec();
        let kept: Vec<isize> = (0..rank).filter(|&at| at != dim).collect();
        for part in parts {
            kept.iter().enumerate().for_each(|(at, &to)| self.same(Some(part), at as isize, out, to));
        }
    }
}

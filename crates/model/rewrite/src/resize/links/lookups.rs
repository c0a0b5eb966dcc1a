//! Row lookups, and gradients that are added to rows.

use steptime_aten::Arg;
use steptime_step::TensorId;

use super::{Dim, Link, OpTensors};

impl OpTensors<'_> {
    pub(super) fn embedding(&mut self) {
        let (weight, indices, out) = (self.input(0), self.input(1), self.output(0));
        self.leading(indices, out);
        self.same(weight, -1, out, -1);
    }

    pub(super) fn embedding_backward(&mut self) {
        let (grad, indices, out) = (self.input(0), self.input(1), self.output(0));
        self.leading(indices, grad);
        self.same(grad, -1, out, -1);
    }

    /// Bags of rows: the number of lookups is proportional to the number of bags.
    pub(super) fn bags(&mut self) {
        let (weight, indices, offsets, out) = (self.input(0), self.input(1), self.input(2), self.output(0));
        if self.rank(indices) == 2 {
            self.same(indices, 0, out, 0);
        } else {
            self.ends(offsets, out);
            self.each(self.dim(indices, 0), self.dim(out, 0));
        }
        self.same(weight, -1, out, -1);
        self.same(indices, 0, self.output(1), 0);
        self.ends(offsets, self.output(2));
        self.ends(offsets, self.output(3));
        self.same(self.named("per_sample_weights"), 0, indices, 0);
    }

    /// Offsets: one per bag, and possibly the end of the last.
    fn ends(&mut self, offsets: Option<TensorId>, bags: Option<TensorId>) {
        let (Some(offsets), Some(bags)) = (self.dim(offsets, 0), self.dim(bags, 0)) else { return };
        match self.size(offsets) - self.size(bags) {
            0 => self.links.push(Link::Same(offsets, bags)),
            1 => self.links.push(Link::Longer(bags, offsets)),
            _ => {}
        }
    }

    pub(super) fn bags_backward(&mut self, name: &str) {
        let (grad, indices, out) = (self.input(0), self.input(1), self.output(0));
        let offset2bag = if name == "_embedding_bag_backward" { 3 } else { 2 };
        self.same(indices, 0, self.input(offset2bag), 0);
        self.same(grad, 0, self.input(offset2bag + 1), 0);
        self.same(grad, -1, out, -1);
        self.each(self.dim(indices, 0), self.dim(grad, 0));
        if offset2bag == 3 {
            self.ends(self.input(2), grad);
        }
    }

    /// Rows by index: the other dimensions are equal.
    pub(super) fn index_select(&mut self) {
        let (x, indices, out) = (self.input(0), self.input(2), self.output(0));
        let dim = self.wrapped(self.call.int_at(1).unwrap_or(0), x);
        self.same(indices, 0, out, dim);
        self.each(self.dim(indices, 0), self.dim(x, dim));
        self.others(x, out, dim);
    }

    /// Rows of a tensor that are added to, or copied into, rows of another.
    pub(super) fn index_add(&mut self) {
        let (x, indices, source, out) = (self.input(0), self.input(2), self.input(3), self.output(0));
        let dim = self.wrapped(self.call.int_at(1).unwrap_or(0), x);
        self.same(indices, 0, source, dim);
        self.each(self.dim(source, dim), self.dim(x, dim));
        self.others(x, source, dim);
        self.leading(x, out);
    }

    /// One element per index.
    pub(super) fn gather(&mut self) {
        let (x, indices, out) = (self.input(0), self.input(2), self.output(0));
        let dim = self.wrapped(self.call.int_at(1).unwrap_or(0), x);
        self.leading(indices, out);
        self.each(self.dim(indices, dim), self.dim(x, dim));
        self.others(x, indices, dim);
    }

    pub(super) fn scatter(&mut self) {
        let (x, indices, source, out) = (self.input(0), self.input(2), self.input(3), self.output(0));
        let dim = self.wrapped(self.call.int_at(1).unwrap_or(0), x);
        self.leading(x, out);
        self.leading(indices, source);
        self.each(self.dim(indices, dim), self.dim(x, dim));
        self.others(x, indices, dim);
    }

    /// A tensor indexed by others: `x[i, :, j]`. The indices are broadcast to one another.
    pub(super) fn indexed(&mut self, values: Option<TensorId>) {
        let x = self.input(0);
        let list: Vec<TensorId> = self.ids.inputs.get(1).map_or(&[][..], Arg::tensors).to_vec();
        // An omitted index has no elements, and indexes no dimension.
        let used: Vec<(usize, TensorId)> =
            list.iter().copied().enumerate().filter(|&(_, index)| self.shape(index) != [0]).collect();
        let is_mask = |index: TensorId| self.step.tensors[index].value.dtype == steptime_aten::Dtype::Bool;
        let Some(&(first, largest)) = used.iter().max_by_key(|(_, index)| self.shape(*index).len()) else {
            return;
        };
        let (rank, across) = (self.rank(x), self.rank(Some(largest)));
        if used.iter().any(|&(_, index)| is_mask(index)) {
            return self.masked(x, first, largest, values);
        }
        let begin = used[0].0;
        let beside = used.windows(2).all(|pair| pair[1].0 == pair[0].0 + 1);
        let place = if beside { begin as isize } else { 0 };
        let kept: Vec<isize> =
            (0..rank).filter(|&at| !used.iter().any(|&(used, _)| used as isize == at)).collect();
        if self.rank(values) == kept.len() as isize + across {
            for at in 0..across {
                for &(_, index) in &used {
                    let own = at - (across - self.rank(Some(index)));
                    if own >= 0 {
                        self.same(Some(index), own, values, place + at);
                    }
                }
            }
            for (at, &from) in kept.iter().enumerate() {
                let at = at as isize;
                self.same(x, from, values, if at < place { at } else { at + across });
            }
        }
        let indices: Vec<TensorId> = used.iter().map(|&(_, index)| index).collect();
        self.broadcast(&indices, largest);
        for &(at, index) in &used {
            for own in 0..self.rank(Some(index)) {
                self.each(self.dim(Some(index), own), self.dim(x, at as isize));
            }
        }
    }

    /// Elements where a mask is true: their number is proportional to the size of the mask.
    fn masked(&mut self, x: Option<TensorId>, at: usize, mask: TensorId, values: Option<TensorId>) {
        for own in 0..self.rank(Some(mask)) {
            self.same(Some(mask), own, x, at as isize + own);
            self.each(self.dim(values, at as isize), self.dim(Some(mask), own));
        }
    }

    /// Positions of elements, or distinct elements: their number is proportional to the size of the input.
    pub(super) fn found(&mut self) {
        let x = self.input(0);
        for out in self.ids.gives().collect::<Vec<_>>() {
            for at in 0..self.rank(x) {
                self.each(self.dim(Some(out), 0), self.dim(x, at));
            }
        }
    }

    fn others(&mut self, a: Option<TensorId>, b: Option<TensorId>, dim: isize) {
        (0..self.rank(a)).filter(|&at| at != dim).for_each(|at| self.same(a, at, b, at));
    }

    fn wrapped(&self, dim: i64, x: Option<TensorId>) -> isize {
        let dim = dim as isize;
        if dim < 0 { dim + self.rank(x) } else { dim }
    }

    /// Indices of a sparse tensor, one column per value.
    pub(super) fn columns(&mut self, indices: Option<TensorId>, values: Option<TensorId>) {
        let both: (Option<Dim>, Option<Dim>) = (self.dim(indices, 1), self.dim(values, 0));
        if let (Some(_), Some(_)) = both {
            self.same(indices, 1, values, 0);
        }
    }
}

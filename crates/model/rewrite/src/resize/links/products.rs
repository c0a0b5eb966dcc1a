//! Products of matrices.

use steptime_step::TensorId;

use super::{Link, OpTensors};

impl OpTensors<'_> {
    pub(super) fn product(&mut self, name: &str) {
        let first = usize::from(name.contains("add"));
        let (a, b, out) = (self.input(first), self.input(first + 1), self.output(0));
        if name.contains("bmm") {
            self.same(a, 0, b, 0);
            self.same(a, 0, out, 0);
        }
        self.multiplied(first);
        if let (1, Some(added), Some(out)) = (first, self.input(0), out) {
            self.broadcast(&[added], out);
        }
    }

    /// A product over the last two dimensions of each; the others are broadcast.
    pub(super) fn matmul(&mut self) {
        self.multiplied(0);
        let (a, b, out) = (self.input(0), self.input(1), self.output(0));
        for back in 3..=self.rank(out) {
            self.same(a, -back, out, -back);
            self.same(b, -back, out, -back);
        }
    }

    /// Rows of one by columns of the other. A vector has one dimension.
    fn multiplied(&mut self, first: usize) {
        let (a, b, out) = (self.input(first), self.input(first + 1), self.output(0));
        let (rows, columns) = (self.rank(a) > 1, self.rank(b) > 1);
        self.same(a, -1, b, if columns { -2 } else { -1 });
        if rows {
            self.same(a, -2, out, if columns { -2 } else { -1 });
        }
        if columns {
            self.same(b, -1, out, -1);
        }
    }

    pub(super) fn linear(&mut self) {
        let (x, weight, out) = (self.input(0), self.input(1), self.output(0));
        for at in 0..self.rank(x) - 1 {
            self.same(x, at, out, at);
        }
        self.same(x, -1, weight, -1);
        self.same(weight, 0, out, -1);
        self.same(weight, 0, self.input(2), 0);
    }

    /// Distances between all rows of one and all of the other.
    pub(super) fn distances(&mut self) {
        let (a, b, out) = (self.input(0), self.input(1), self.output(0));
        self.same(a, -2, out, -2);
        self.same(b, -2, out, -1);
        self.same(a, -1, b, -1);
        for back in 3..=self.rank(out) {
            self.same(a, -back, out, -back);
            self.same(b, -back, out, -back);
        }
    }

    /// Links spatial dimensions of a layer's output as fixed where those of its input are.
    pub(super) fn spatial(&mut self, x: Option<TensorId>, out: Option<TensorId>) {
        for at in 2..self.rank(out) {
            self.follows(x, at, out, at);
        }
    }

    pub(super) fn convolution(&mut self) {
        let (x, weight, out) = (self.input(0), self.input(1), self.output(0));
        self.samples(x, 0);
        self.same(x, 0, out, 0);
        self.same(weight, 0, out, 1);
        if let (Some(weight), Some(out)) = (self.dim(weight, 1), self.dim(out, 1))
            && self.size(weight) != self.size(out)
        {
            self.links.push(Link::Follows(weight, out));
        }
        self.spatial(x, out);
    }

    pub(super) fn convolution_backward(&mut self) {
        let (grad, x, weight) = (self.input(0), self.input(1), self.input(2));
        self.same(grad, 0, x, 0);
        self.leading(x, self.output(0));
        self.leading(weight, self.output(1));
        self.same(grad, 1, self.output(2), 0);
    }
}

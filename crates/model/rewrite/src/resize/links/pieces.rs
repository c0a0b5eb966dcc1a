//! Parts of a dimension.

use steptime_step::TensorId;

use super::{Link, OpTensors};

impl OpTensors<'_> {
    /// One part of a dimension.
    pub(super) fn cut(&mut self) {
        let (dim, start) = (self.call.int_at(1).unwrap_or(0), self.call.int_at(2).unwrap_or(0));
        let pieces: Vec<TensorId> = self.ids.gives().collect();
        let start = match self.dim(self.input(0), dim as isize) {
            Some(whole) if start < 0 => start + self.size(whole),
            _ => start,
        };
        self.pieces(dim as isize, start, &pieces);
    }

    /// All parts of a dimension, in order.
    pub(super) fn split(&mut self) {
        let dim = self.number("dim").or_else(|| self.call.int_at(2)).unwrap_or(0);
        let pieces: Vec<TensorId> = self.ids.gives().collect();
        self.pieces(dim as isize, 0, &pieces);
    }

    /// The gradient of a part, with the shape of the whole.
    pub(super) fn put_back(&mut self) {
        let (grad, out) = (self.input(0), self.output(0));
        let rank = self.rank(out);
        let dim = self.call.int_at(2).unwrap_or(0) as isize;
        let dim = if dim < 0 { dim + rank } else { dim };
        (0..rank).filter(|&at| at != dim).for_each(|at| self.same(grad, at, out, at));
    }

    fn pieces(&mut self, dim: isize, mut start: i64, pieces: &[TensorId]) {
        let x = self.input(0);
        let rank = self.rank(x);
        let dim = if dim < 0 { dim + rank } else { dim };
        for &tensor in pieces {
            let piece = Some(tensor);
            (0..rank).filter(|&at| at != dim).for_each(|at| self.same(x, at, piece, at));
            let (Some(whole), Some(piece)) = (self.dim(x, dim), self.dim(piece, dim)) else { continue };
            self.links.push(Link::Piece { whole, piece, start });
            start += self.size(piece);
        }
    }
}

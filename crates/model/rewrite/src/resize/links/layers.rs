//! Layers whose tensors have corresponding dimensions at the same positions.

use steptime_step::TensorId;

use super::OpTensors;

impl OpTensors<'_> {
    /// Statistics have fewer dimensions than the data: the leading ones are equal. A tensor of a single dimension is a weight or a statistic per
    /// channel.
    pub(super) fn by_leading(&mut self, channel: Option<isize>) {
        let all: Vec<TensorId> = self.ids.gives().chain(self.ids.takes()).collect();
        let numel = |tensor: TensorId| self.shape(tensor).iter().product::<i64>();
        let Some(x) = all.iter().copied().max_by_key(|&tensor| (self.shape(tensor).len(), numel(tensor)))
        else {
            return;
        };
        for other in all.into_iter().filter(|&other| other != x) {
            let shared = self.rank(Some(x)).min(self.rank(Some(other)));
            if shared > 1 {
                (0..shared).for_each(|at| self.same(Some(x), at, Some(other), at));
            } else if let Some(channel) = channel {
                self.same(Some(x), channel, Some(other), 0);
            }
        }
    }

    /// Samples and channels come first; the other dimensions follow from those at the same position.
    pub(super) fn resampled(&mut self) {
        self.by_leading(None);
        let (x, outs) = (self.input(0), self.ids.gives().collect::<Vec<_>>());
        for out in outs {
            self.spatial(x, Some(out));
        }
    }

    /// Inputs and outputs of positions, samples and columns; states of layers, samples and columns.
    pub(super) fn recurrent(&mut self) {
        let (x, out) = (self.input(0), self.output(0));
        if self.rank(x) != 3 || self.rank(out) != 3 {
            return;
        }
        self.same(x, 0, out, 0);
        self.same(x, 1, out, 1);
        let samples = isize::from(self.number("batch_first") != Some(1));
        self.samples(x, samples);
        let states: Vec<TensorId> = self.ids.takes().chain(self.ids.gives()).skip(1).collect();
        for state in states.into_iter().filter(|&state| Some(state) != out) {
            if self.rank(Some(state)) == 3 {
                self.same(x, samples, Some(state), 1);
            }
        }
    }

    /// Lists of parameters, gradients and states: those at one position have the same shape.
    pub(super) fn by_list(&mut self) {
        let args = self.ids.inputs.iter().chain(&self.ids.outputs);
        let lists: Vec<Vec<TensorId>> =
            args.map(|arg| arg.tensors().to_vec()).filter(|list| !list.is_empty()).collect();
        let Some(first) = lists.first() else { return };
        for list in lists[1..].iter().filter(|list| list.len() == first.len()) {
            for (&one, &other) in first.iter().zip(list) {
                if self.shape(one) == self.shape(other) {
                    self.leading(Some(one), Some(other));
                }
            }
        }
    }

    /// A class for each row, and its loss.
    pub(super) fn classes(&mut self, backward: bool) {
        let first = usize::from(backward);
        let (x, target, out) = (self.input(first), self.input(first + 1), self.output(0));
        self.same(x, 0, target, 0);
        for at in 2..self.rank(x) {
            self.same(x, at, target, at - 1);
        }
        if backward {
            self.leading(x, out);
            self.same(self.input(0), 0, target, 0);
        } else if self.rank(out) > 0 {
            self.leading(target, out);
        }
    }
}

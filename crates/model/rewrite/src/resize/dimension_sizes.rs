//! The size of each dimension, as far as the ops of a step determine it.

use smallvec::SmallVec;
use steptime_graph::TiVec;
use steptime_step::{StepIr, TensorId};

use super::batch_inputs::Seeds;
use super::links::{Dim, Link};
use super::size_formula::{Factor, Form, Regroup, Size};

/// The form of each dimension of each tensor; `None` where it is unknown whether it grows.
#[derive(Debug, Default)]
pub(super) struct Forms {
    sizes: TiVec<TensorId, SmallVec<[Option<Form>; 5]>>,
    /// The recorded growing size.
    from: i64,
    /// The current level of assumptions.
    pub trust: Trust,
    /// Whether an ambiguous growing factor of size one goes to the usual dimension of a view.
    pub usual: bool,
    /// Kept tensors that would have to grow.
    pub doubted: Vec<TensorId>,
    /// Inputs that are taken to grow by their size alone.
    pub guessed: Vec<Dim>,
    /// Number of ops with a known sample dimension for which another dimension grows.
    pub astray: usize,
}

/// Levels of assumptions: the next one applies once nothing else follows from the previous one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trust {
    /// Only relations given by ops.
    #[default]
    Ops,
    /// The number of looked-up items grows in proportion to the tensor that they are looked up in.
    Shares,
    /// Unknown sizes do not grow.
    Fixed,
}

impl Forms {
    /// Forms without any known size; `from` is the growing size.
    pub fn new(step: &StepIr, from: u64) -> Forms {
        let sizes = step.tensors.iter().map(|tensor| SmallVec::from_elem(None, tensor.value.shape.len()));
        let from = i64::try_from(from).unwrap_or(i64::MAX);
        Forms { sizes: sizes.collect(), from, ..Forms::default() }
    }

    /// The form of each dimension of a tensor.
    pub fn get(&self, tensor: TensorId) -> &[Option<Form>] {
        &self.sizes[tensor]
    }

    /// Whether a dimension of a tensor grows.
    pub fn grows(&self, tensor: TensorId) -> bool {
        self.sizes[tensor].iter().flatten().any(Form::grows)
    }

    /// The form of a dimension.
    pub fn at(&self, dim: Dim) -> Option<&Form> {
        self.sizes[dim.tensor].get(dim.at)?.as_ref()
    }

    /// The forms of another tensor with the same elements, as far as they can be derived.
    pub fn reshaped(
        &self,
        step: &StepIr,
        from: TensorId,
        to: TensorId,
        open: Option<usize>,
    ) -> Vec<Option<Form>> {
        let sizes = |tensor: TensorId| -> SmallVec<[Size<'_>; 5]> {
            let each = step.tensors[tensor].value.shape.iter().zip(&self.sizes[tensor]);
            each.map(|(&is, form)| Size { is, form: form.as_ref() }).collect()
        };
        let lenient = self.trust == Trust::Fixed;
        Regroup { from: self.from, lenient, open, usual: self.usual }.forms(&sizes(from), &sizes(to))
    }

    /// Sets the forms of growing inputs and of kept tensors.
    pub fn seed(&mut self, step: &StepIr, seeds: &Seeds) {
        for &tensor in &seeds.kept {
            for (form, &size) in self.sizes[tensor].iter_mut().zip(&step.tensors[tensor].value.shape) {
                *form = Some(Form::constant(size));
            }
        }
        for &(tensor, at) in &seeds.dims {
            let shape = &step.tensors[tensor].value.shape;
            for (place, form) in self.sizes[tensor].iter_mut().enumerate() {
                if place == at {
                    *form = Form::from_size(shape, at, self.from);
                } else if seeds.samples && form.is_none() {
                    *form = Some(Form::constant(shape[place]));
                }
            }
        }
    }

    /// Takes inputs to grow that no op determines and that have a dimension of exactly the batch size. Returns whether there are any.
    pub fn guess(&mut self, step: &StepIr, seeds: &Seeds) -> bool {
        let known = |tensor: TensorId| self.sizes[tensor].iter().flatten().any(Form::grows);
        let of_its_size = |tensor: TensorId| {
            let sizes = step.tensors[tensor].value.shape.iter().zip(&self.sizes[tensor]);
            sizes
                .enumerate()
                .find(|(_, (size, form))| **size == self.from && form.is_none())
                .map(|(at, _)| at)
        };
        let unsure = seeds.unsure.iter().copied().filter(|&tensor| !known(tensor));
        self.guessed = unsure.filter_map(|tensor| Some(Dim { tensor, at: of_its_size(tensor)? })).collect();
        for &dim in &self.guessed {
            self.sizes[dim.tensor][dim.at] = Some(Form::from_factor(Factor::times(1)));
        }
        !self.guessed.is_empty()
    }

    /// Sets forms that follow from a link; returns whether one was unknown before.
    pub fn follow(&mut self, step: &StepIr, link: &Link, seeds: &Seeds) -> bool {
        match link {
            Link::Same(a, b) => self.copy(step, *a, *b, seeds) | self.copy(step, *b, *a, seeds),
            Link::Spread(operands, out) => self.spread_one(step, operands, *out, seeds),
            Link::Reshape(a, b, open) => {
                self.reshape(step, *a, *b, *open, seeds) | self.reshape(step, *b, *a, None, seeds)
            }
            Link::Joined(parts, whole) => self.joined(step, parts, *whole, seeds),
            Link::Piece { whole, piece, start } => self.piece(step, *whole, *piece, *start, seeds),
            Link::Longer(short, long) => {
                self.longer(step, *short, *long, seeds) | self.longer(step, *long, *short, seeds)
            }
            Link::Repeated(from, to, times) => {
                let repeated = self.at(*from).filter(|form| form.grows()).map(|form| form.repeated(*times));
                self.set(step, *to, repeated, seeds)
            }
            Link::Follows(from, to) => {
                let fixed = self.at(*from).is_some_and(|form| !form.grows());
                fixed && self.fix(step, *to, seeds)
            }
            Link::Fixed(dim) => self.fix(step, *dim, seeds),
            Link::Each(many, of) => self.share(step, *many, *of, seeds),
            Link::Samples(..) => false,
        }
    }

    fn copy(&mut self, step: &StepIr, from: Dim, to: Dim, seeds: &Seeds) -> bool {
        let form = self.at(from).cloned();
        self.set(step, to, form, seeds)
    }

    fn fix(&mut self, step: &StepIr, dim: Dim, seeds: &Seeds) -> bool {
        self.at(dim).is_none() && self.set(step, dim, Some(Form::constant(size(step, dim))), seeds)
    }

    /// A broadcast size of one: it grows where one of the operands does, and one of those where it does.
    fn spread_one(&mut self, step: &StepIr, operands: &[Dim], out: Dim, seeds: &Seeds) -> bool {
        let grown = operands.iter().find_map(|&dim| self.at(dim).filter(|form| form.grows())).cloned();
        if grown.is_some() {
            return self.set(step, out, grown, seeds);
        }
        match self.at(out) {
            Some(form) if !form.grows() => {
                let mut moved = false;
                for &dim in operands {
                    moved |= self.fix(step, dim, seeds);
                }
                moved
            }
            Some(form) => {
                // The only operand that may have grown has grown.
                let form = form.clone();
                let mut open = operands.iter().filter(|&&dim| self.at(dim).is_none());
                match (open.next(), open.next()) {
                    (Some(&only), None) if self.trust < Trust::Fixed => {
                        self.set(step, only, Some(form), seeds)
                    }
                    _ => false,
                }
            }
            None if !operands.is_empty() && operands.iter().all(|&dim| self.at(dim).is_some()) => {
                self.fix(step, out, seeds)
            }
            None => false,
        }
    }

    fn reshape(
        &mut self,
        step: &StepIr,
        from: TensorId,
        to: TensorId,
        open: Option<usize>,
        seeds: &Seeds,
    ) -> bool {
        if self.sizes[to].iter().all(Option::is_some) {
            return false;
        }
        let forms = self.reshaped(step, from, to, open);
        let mut moved = false;
        for (at, form) in forms.into_iter().enumerate() {
            moved |= self.set(step, Dim { tensor: to, at }, form, seeds);
        }
        moved
    }

    fn joined(&mut self, step: &StepIr, parts: &[Dim], whole: Dim, seeds: &Seeds) -> bool {
        let forms: Vec<Option<&Form>> = parts.iter().map(|&part| self.at(part)).collect();
        if let Some(all) = forms.iter().copied().collect::<Option<Vec<&Form>>>() {
            let sum = if self.at(whole).is_none() { Form::sum(&all) } else { None };
            return self.set(step, whole, sum, seeds);
        }
        let Some(sum) = self.at(whole) else {
            // Unknown parts are fixed beside a growing one.
            let known: Vec<&Form> = forms.iter().flatten().copied().collect();
            if self.trust < Trust::Fixed || !known.iter().any(|form| form.grows()) {
                return false;
            }
            let rest: i64 =
                parts.iter().filter(|&&part| self.at(part).is_none()).map(|&part| size(step, part)).sum();
            let sum = Form::sum(&known).and_then(|sum| sum.plus(rest));
            return self.set(step, whole, sum, seeds);
        };
        if !sum.grows() {
            let mut moved = false;
            for &part in parts {
                moved |= self.fix(step, part, seeds);
            }
            return moved;
        }
        let mut open = parts.iter().filter(|&&part| self.at(part).is_none());
        let (Some(&only), None) = (open.next(), open.next()) else { return false };
        let known: Vec<&Form> = forms.iter().flatten().copied().collect();
        let left = if known.is_empty() {
            Some(sum.clone())
        } else {
            Form::sum(&known).and_then(|known| sum.minus(&known))
        };
        self.set(step, only, left, seeds)
    }

    fn piece(&mut self, step: &StepIr, whole: Dim, piece: Dim, start: i64, seeds: &Seeds) -> bool {
        let (all, part) = (size(step, whole), size(step, piece));
        if all == part {
            return self.copy(step, whole, piece, seeds) | self.copy(step, piece, whole, seeds);
        }
        let Some(form) = self.at(whole) else { return false };
        if !form.grows() {
            return self.fix(step, piece, seeds);
        }
        if self.trust < Trust::Fixed || self.at(piece).is_some() {
            return false;
        }
        // Equal parts grow with the whole. Of unequal ones, the part larger than the rest grows.
        let equal =
            if part > 0 && all % part == 0 && start % part == 0 { form.share(part, all) } else { None };
        let rest = || if part > all - part { form.plus(part - all) } else { None };
        let form = equal.or_else(rest);
        self.set(step, piece, form, seeds)
    }

    fn longer(&mut self, step: &StepIr, from: Dim, to: Dim, seeds: &Seeds) -> bool {
        let form = self.at(from).and_then(|form| form.plus(size(step, to) - size(step, from)));
        self.set(step, to, form, seeds)
    }

    fn share(&mut self, step: &StepIr, many: Dim, of: Dim, seeds: &Seeds) -> bool {
        if self.trust != Trust::Shares || !seeds.samples || self.at(many).is_some() {
            return false;
        }
        let grown = self.at(of).filter(|form| form.grows());
        let form = grown.and_then(|form| form.share(size(step, many), size(step, of)));
        self.set(step, many, form, seeds)
    }

    /// Sets an unknown form; returns whether it was unknown. A known one stays: kept tensors do not grow.
    pub fn set(&mut self, step: &StepIr, dim: Dim, form: Option<Form>, seeds: &Seeds) -> bool {
        let Some(form) = form else { return false };
        let Some(slot) = self.sizes[dim.tensor].get_mut(dim.at) else { return false };
        if let Some(known) = slot {
            let seems = form.grows() && !known.grows() && size(step, dim) > 1;
            if seems && seeds.kept.contains(&dim.tensor) && !self.doubted.contains(&dim.tensor) {
                self.doubted.push(dim.tensor);
            }
            return false;
        }
        if form.size(self.from) != Some(size(step, dim)) {
            return false;
        }
        *slot = Some(form);
        true
    }
}

fn size(step: &StepIr, dim: Dim) -> i64 {
    step.tensors[dim.tensor].value.shape.get(dim.at).copied().unwrap_or(0)
}

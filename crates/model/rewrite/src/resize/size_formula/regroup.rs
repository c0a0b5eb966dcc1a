//! The same elements in another shape: assignment of factors to the new dimensions.

use smallvec::SmallVec;

use super::{Factor, Form};

/// The size of a dimension, with its form where known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size<'f> {
    pub is: i64,
    pub form: Option<&'f Form>,
}

impl Size<'_> {
    /// Whether it is known not to grow.
    fn is_fixed(self) -> bool {
        self.form.is_some_and(|form| !form.grows())
    }

    /// Whether it is known to grow.
    fn grows(self) -> bool {
        self.form.is_some_and(Form::grows)
    }
}

/// A reshape: elements keep their order, and so do the factors of sizes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Regroup {
    /// The recorded growing size.
    pub from: i64,
    /// Whether unknown parts of a growing size are taken to be fixed.
    pub lenient: bool,
    /// The dimension of size -1, which takes the remaining elements.
    pub open: Option<usize>,
    /// Whether an ambiguous growing factor of size one, between two dimensions, goes to the usual one of them.
    pub usual: bool,
}

/// A factor with its recorded size.
#[derive(Debug, Clone, Copy)]
struct Atom {
    size: i64,
    /// `None` where it is unknown whether it grows.
    factor: Option<Factor>,
    /// The dimension of origin.
    of: usize,
}

impl Atom {
    fn grows(self) -> bool {
        self.factor.is_some_and(Factor::grows)
    }
}

impl Regroup {
    /// The forms of the sizes of the new shape; `None` where they cannot be derived. Known forms of these sizes show which dimension takes a growing
    /// factor of size one.
    pub fn forms(self, from: &[Size<'_>], to: &[Size<'_>]) -> Vec<Option<Form>> {
        let mut atoms = self.atoms(from);
        atoms.reverse();
        let mut forms: Vec<Option<Form>> = Vec::with_capacity(to.len());
        for (at, size) in to.iter().enumerate() {
            let Some(own) = self.take(&mut atoms, (at, *size), to.get(at + 1), from) else { break };
            forms.push(self.form(&own));
        }
        forms.resize(to.len(), None);
        forms
    }

    /// Whether an unknown size of one may be the growing one.
    fn is_open(self) -> bool {
        self.from == 1 && !self.lenient
    }

    /// The factors of a shape, the outermost first. Fixed factors of size one are left out.
    fn atoms(self, from: &[Size<'_>]) -> Vec<Atom> {
        let mut atoms = Vec::new();
        for (of, size) in from.iter().enumerate() {
            match size.form {
                Some(form) => atoms.extend(form.factors().iter().filter_map(|&factor| {
                    Some(Atom { size: factor.size(self.from)?, factor: Some(factor), of })
                })),
                None if size.is != 1 || self.is_open() => {
                    atoms.push(Atom { size: size.is, factor: None, of });
                }
                None => {}
            }
        }
        atoms
    }

    /// The factors of one dimension, taken from the remaining ones, the outermost last. `None` where they do not fit, or are ambiguous.
    fn take(
        self,
        atoms: &mut Vec<Atom>,
        (at, size): (usize, Size<'_>),
        next: Option<&Size<'_>>,
        from: &[Size<'_>],
    ) -> Option<SmallVec<[Atom; 4]>> {
        let mut own: SmallVec<[Atom; 4]> = SmallVec::new();
        let mut left = size.is;
        let one = |atom: &Atom| atom.size == 1 && atom.grows();
        if size.is == 1 {
            own.extend(atoms.pop_if(|atom| one(atom) && !size.is_fixed()));
            // An unknown size may have a growing factor of size one.
            if own.is_empty() && self.is_open() && from.iter().any(|size| size.form.is_none()) {
                own.push(Atom { size: 1, factor: None, of: at });
            }
            return Some(own);
        }
        while left != 1 {
            let atom = atoms.pop()?;
            if left < 1 || atom.size < 1 {
                return None;
            }
            if left % atom.size == 0 {
                left /= atom.size;
                own.push(atom);
            } else if atom.size % left == 0 {
                let [outer, inner] = self.split(atom, left, at)?;
                own.push(outer);
                atoms.push(inner);
                left = 1;
            } else {
                // Adjacent fixed factors are merged.
                let inner = atoms.pop_if(|inner| !inner.grows() && !atom.grows())?;
                let size = atom.size.checked_mul(inner.size)?;
                let factor = atom.factor.and(inner.factor).map(|_| Factor::constant(size));
                atoms.push(Atom { size, factor, of: inner.of });
            }
        }
        // An unknown factor of size one belongs to this dimension or to the next.
        own.extend(atoms.last().filter(|atom| atom.size == 1 && atom.factor.is_none()).copied());
        let Some(&grown) = atoms.last().filter(|atom| one(atom)) else { return Some(own) };
        // A growing factor of size one is between two dimensions: it goes to the one that changed.
        let unchanged = own.len() == 1 || own.iter().all(|atom| atom.of == own[0].of);
        let inner = from.get(grown.of + 1).map(|size| size.is);
        let is_own = match next {
            None => true,
            Some(next) if next.is == 1 && !next.is_fixed() => false,
            Some(next) if size.is_fixed() || next.grows() => false,
            Some(next) if next.is_fixed() || size.grows() => true,
            Some(_) if !self.usual => return None,
            Some(next) => !unchanged || inner == Some(next.is),
        };
        own.extend(atoms.pop_if(|_| is_own));
        Some(own)
    }

    /// Splits a factor in two, the outer one with a given size.
    fn split(self, atom: Atom, outer: i64, at: usize) -> Option<[Atom; 2]> {
        let inner = atom.size / outer;
        if outer * inner != atom.size {
            return None;
        }
        let both = |a: Option<Factor>, b: Option<Factor>| {
            Some([Atom { size: outer, factor: a, of: atom.of }, Atom { size: inner, factor: b, of: atom.of }])
        };
        let fixed = |size: i64| Some(Factor::constant(size));
        let Some(factor) = atom.factor else { return both(None, None) };
        if !factor.grows() {
            return both(fixed(outer), fixed(inner));
        }
        let (outer_grows, inner_grows) = (factor.part(inner), factor.part(outer));
        let whole = |part: Option<Factor>| part.filter(|part| part.over <= factor.over);
        match (whole(outer_grows), whole(inner_grows)) {
            // Either may grow: the one of exactly the growing size, else the outer one.
            (Some(grown), Some(_))
                if outer == self.from || (inner != self.from && outer % self.from == 0) =>
            {
                both(Some(grown), fixed(inner))
            }
            (_, Some(grown)) => both(fixed(outer), Some(grown)),
            (Some(grown), None) => both(Some(grown), fixed(inner)),
            // Parts of the growing size: the size that was left open gives their number.
            (None, None) if self.open.is_some_and(|open| open > at) => both(fixed(outer), inner_grows),
            (None, None) => both(outer_grows, fixed(inner)),
        }
    }

    /// The form of a dimension; `None` where it is unknown.
    fn form(self, own: &[Atom]) -> Option<Form> {
        let grows = own.iter().any(|atom| atom.grows());
        let factor = |atom: &Atom| match atom.factor {
            Some(factor) => Some(factor),
            None if self.lenient && grows => Some(Factor::constant(atom.size)),
            None => None,
        };
        let factors: Option<SmallVec<[Factor; 4]>> = own.iter().map(factor).collect();
        Some(Form::product(&factors?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BATCH: Factor = Factor::times(1);

    fn regrouped(from: i64, shape: &[&[Factor]], to: &[i64]) -> Vec<Option<i64>> {
        regrouped_open(from, shape, to, None)
    }

    /// The sizes of a reshaped tensor when the batch is four times as large.
    fn regrouped_open(from: i64, shape: &[&[Factor]], to: &[i64], open: Option<usize>) -> Vec<Option<i64>> {
        let forms: Vec<Form> = shape.iter().map(|factors| Form::product(factors)).collect();
        let sizes: Vec<Size<'_>> =
            forms.iter().map(|form| Size { is: form.size(from).unwrap(), form: Some(form) }).collect();
        let regroup = Regroup { from, lenient: false, open, usual: true };
        let all = regroup.forms(&sizes, &not_known(to));
        all.into_iter().map(|form| form?.size(4 * from)).collect()
    }

    fn not_known(to: &[i64]) -> Vec<Size<'static>> {
        to.iter().map(|&is| Size { is, form: None }).collect()
    }

    const fn fixed(size: i64) -> Factor {
        Factor::constant(size)
    }

    #[test]
    fn the_batch_keeps_its_place_whatever_its_size() {
        // Samples, positions and heads of the same size.
        let tokens: &[&[Factor]] = &[&[BATCH], &[fixed(16)], &[fixed(64)]];
        assert_eq!(regrouped(16, tokens, &[256, 64]), [Some(1024), Some(64)]);
        assert_eq!(regrouped(16, tokens, &[16, 16, 4, 16]), [Some(64), Some(16), Some(4), Some(16)]);
        // Merged and split again: positions first.
        let flat: &[&[Factor]] = &[&[fixed(16), BATCH], &[fixed(64)]];
        assert_eq!(regrouped(16, flat, &[16, 16, 64]), [Some(16), Some(64), Some(64)]);
        // Heads that are split from the dimension after the batch.
        let heads: &[&[Factor]] = &[&[fixed(16)], &[BATCH], &[fixed(64)]];
        assert_eq!(regrouped(16, heads, &[16, 64, 16]), [Some(16), Some(256), Some(16)]);
    }

    #[test]
    fn a_batch_of_one_is_followed() {
        let tokens: &[&[Factor]] = &[&[BATCH], &[fixed(128)], &[fixed(64)]];
        assert_eq!(regrouped(1, tokens, &[128, 64]), [Some(512), Some(64)]);
        assert_eq!(regrouped(1, tokens, &[1, 128, 8, 8]), [Some(4), Some(128), Some(8), Some(8)]);
        // Positions first: the batch is merged with the heads.
        let second: &[&[Factor]] = &[&[fixed(128)], &[BATCH], &[fixed(64)]];
        assert_eq!(regrouped(1, second, &[128, 4, 16]), [Some(128), Some(16), Some(16)]);
        assert_eq!(regrouped(1, second, &[128, 64]), [Some(512), Some(64)]);
        assert_eq!(regrouped(1, second, &[128, 1, 64]), [Some(128), Some(4), Some(64)]);
    }

    #[test]
    fn a_batch_of_one_goes_where_nothing_is_fixed() {
        // Positions, samples, heads and columns: samples are merged either with positions or with columns.
        let forms = [fixed(6), BATCH, fixed(2), fixed(4)].map(Form::from_factor);
        let from: Vec<Size<'_>> =
            forms.iter().map(|form| Size { is: form.size(1).unwrap(), form: Some(form) }).collect();
        let regroup = Regroup { from: 1, lenient: false, open: None, usual: false };
        let grown = |to: &[Size<'_>]| -> Vec<Option<i64>> {
            regroup.forms(&from, to).into_iter().map(|form| form?.size(4)).collect()
        };
        let [rows, columns] = [6, 8].map(|is| Size { is, form: None });
        assert_eq!(grown(&[rows, columns]), [None, None]);
        let [six, eight] = [6, 8].map(Form::constant);
        assert_eq!(grown(&[rows, Size { form: Some(&eight), ..columns }]), [Some(24), Some(8)]);
        assert_eq!(grown(&[Size { form: Some(&six), ..rows }, columns]), [Some(6), Some(32)]);
    }

    #[test]
    fn parts_of_the_batch_are_told_by_what_is_left_open() {
        let images: &[&[Factor]] = &[&[BATCH], &[fixed(512)]];
        assert_eq!(regrouped(16, images, &[4, 4, 512]), [Some(16), Some(4), Some(512)]);
        assert_eq!(regrouped_open(16, images, &[4, 4, 512], Some(1)), [Some(4), Some(16), Some(512)]);
        // Two views of each image.
        let views: &[&[Factor]] = &[&[Factor::times(2)], &[fixed(512)]];
        assert_eq!(regrouped(16, views, &[2, 16, 512]), [Some(2), Some(64), Some(512)]);
        assert_eq!(regrouped(16, views, &[16, 2, 512]), [Some(64), Some(2), Some(512)]);
    }

    #[test]
    fn what_is_not_known_stays_so() {
        let batch = Form::from_factor(BATCH);
        let from = [Size { is: 16, form: Some(&batch) }, Size { is: 8, form: None }];
        let strict = Regroup { from: 16, lenient: false, open: None, usual: true };
        assert_eq!(strict.forms(&from, &not_known(&[16, 2, 4])), [Some(batch.clone()), None, None]);
        assert_eq!(strict.forms(&from, &not_known(&[128])), [None]);
        let lenient = Regroup { lenient: true, ..strict };
        assert_eq!(
            lenient.forms(&from, &not_known(&[128]))[0].as_ref().and_then(|form| form.size(32)),
            Some(256)
        );
    }
}

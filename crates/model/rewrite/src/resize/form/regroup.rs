//! The same elements in another shape: which dimensions hold the factors of which.

use smallvec::SmallVec;

use super::{Factor, Form};

/// The size of a dimension, as far as it is known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size<'f> {
    pub is: i64,
    pub form: Option<&'f Form>,
}

/// A reshape: elements keep their order, and so do the factors of sizes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Regroup {
    /// What grows, where it is as it was.
    pub from: i64,
    /// Whether what is not known of a size that grows is taken to be fixed.
    pub lenient: bool,
    /// The dimension whose size is what is left for it.
    pub open: Option<usize>,
}

/// A factor with its size as it was.
#[derive(Debug, Clone, Copy)]
struct Atom {
    size: i64,
    /// `None` where it is not known whether it grows.
    factor: Option<Factor>,
    /// The dimension that it comes from.
    of: usize,
}

impl Atom {
    fn grows(self) -> bool {
        self.factor.is_some_and(Factor::grows)
    }
}

impl Regroup {
    /// The forms of the sizes that a shape becomes; none where they do not follow.
    pub fn forms(self, from: &[Size<'_>], to: &[i64]) -> Vec<Option<Form>> {
        let mut atoms = self.atoms(from);
        atoms.reverse();
        let mut forms: Vec<Option<Form>> = Vec::with_capacity(to.len());
        for (at, &size) in to.iter().enumerate() {
            let next = to.get(at + 1).copied();
            let Some(own) = self.take(&mut atoms, (at, size), next, from) else { break };
            forms.push(self.form(&own));
        }
        forms.resize(to.len(), None);
        forms
    }

    /// The factors of a shape, the outermost first. Fixed ones of size one are left out.
    fn atoms(self, from: &[Size<'_>]) -> Vec<Atom> {
        let mut atoms = Vec::new();
        for (of, size) in from.iter().enumerate() {
            match size.form {
                Some(form) => atoms.extend(form.factors().iter().filter_map(|&factor| {
                    Some(Atom { size: factor.size(self.from)?, factor: Some(factor), of })
                })),
                None if size.is != 1 => atoms.push(Atom { size: size.is, factor: None, of }),
                None => {}
            }
        }
        atoms
    }

    /// The factors of one dimension, from those that are left, the outermost last. `None` where they do not fit.
    fn take(
        self,
        atoms: &mut Vec<Atom>,
        (at, size): (usize, i64),
        next: Option<i64>,
        from: &[Size<'_>],
    ) -> Option<SmallVec<[Atom; 4]>> {
        let mut own: SmallVec<[Atom; 4]> = SmallVec::new();
        let mut left = size;
        let one = |atom: &Atom| atom.size == 1 && atom.grows();
        if size == 1 {
            own.extend(atoms.pop_if(|atom| one(atom)));
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
                // Sizes that do not grow are one for this.
                let inner = atoms.pop_if(|inner| !inner.grows() && !atom.grows())?;
                let size = atom.size.checked_mul(inner.size)?;
                let factor = atom.factor.and(inner.factor).map(|_| Factor::constant(size));
                atoms.push(Atom { size, factor, of: inner.of });
            }
        }
        // What grows from one stands between two dimensions: it goes with the one that is not as it was.
        let unchanged = own.len() == 1 || own.iter().all(|atom| atom.of == own[0].of);
        let follows = |atom: &Atom| {
            let inner = from.get(atom.of + 1).map(|size| size.is);
            match next {
                None => true,
                Some(1) => false,
                Some(next) => !unchanged || inner == Some(next),
            }
        };
        own.extend(atoms.pop_if(|atom| one(atom) && follows(atom)));
        Some(own)
    }

    /// A factor as two, the outer one of a size.
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
            // Either may grow: the one of the very size of what grows, else the outer one.
            (Some(grown), Some(_))
                if outer == self.from || (inner != self.from && outer % self.from == 0) =>
            {
                both(Some(grown), fixed(inner))
            }
            (_, Some(grown)) => both(fixed(outer), Some(grown)),
            (Some(grown), None) => both(Some(grown), fixed(inner)),
            // Parts of what grows: the size that was left open says how many.
            (None, None) if self.open.is_some_and(|open| open > at) => both(fixed(outer), inner_grows),
            (None, None) => both(outer_grows, fixed(inner)),
        }
    }

    /// The form of a dimension; `None` where it is not known.
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
        let regroup = Regroup { from, lenient: false, open };
        let all = regroup.forms(&sizes, to);
        all.into_iter().map(|form| form?.size(4 * from)).collect()
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
        // Heads that are split from what comes after the batch.
        let heads: &[&[Factor]] = &[&[fixed(16)], &[BATCH], &[fixed(64)]];
        assert_eq!(regrouped(16, heads, &[16, 64, 16]), [Some(16), Some(256), Some(16)]);
    }

    #[test]
    fn a_batch_of_one_is_followed() {
        let tokens: &[&[Factor]] = &[&[BATCH], &[fixed(128)], &[fixed(64)]];
        assert_eq!(regrouped(1, tokens, &[128, 64]), [Some(512), Some(64)]);
        assert_eq!(regrouped(1, tokens, &[1, 128, 8, 8]), [Some(4), Some(128), Some(8), Some(8)]);
        // Positions first: the batch goes with the heads.
        let second: &[&[Factor]] = &[&[fixed(128)], &[BATCH], &[fixed(64)]];
        assert_eq!(regrouped(1, second, &[128, 4, 16]), [Some(128), Some(16), Some(16)]);
        assert_eq!(regrouped(1, second, &[128, 64]), [Some(512), Some(64)]);
        assert_eq!(regrouped(1, second, &[128, 1, 64]), [Some(128), Some(4), Some(64)]);
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
        let batch = Form::of(BATCH);
        let from = [Size { is: 16, form: Some(&batch) }, Size { is: 8, form: None }];
        let strict = Regroup { from: 16, lenient: false, open: None };
        assert_eq!(strict.forms(&from, &[16, 2, 4]), [Some(batch.clone()), None, None]);
        assert_eq!(strict.forms(&from, &[128]), [None]);
        let lenient = Regroup { lenient: true, ..strict };
        assert_eq!(lenient.forms(&from, &[128])[0].as_ref().and_then(|form| form.size(32)), Some(256));
    }
}

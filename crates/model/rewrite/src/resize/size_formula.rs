//! Sizes as functions of the growing size.

mod regroup;

use smallvec::{SmallVec, smallvec};

pub(super) use self::regroup::{Regroup, Size};

/// A factor of a size: `fixed + times * n / over`, where `n` is the growing size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Factor {
    fixed: i64,
    times: i64,
    over: i64,
}

/// A size as the product of its factors, the outermost first: elements of the last one are adjacent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Form(SmallVec<[Factor; 2]>);

impl Factor {
    pub const fn constant(size: i64) -> Factor {
        Factor { fixed: size, times: 0, over: 1 }
    }

    /// A multiple of the growing size.
    pub const fn times(times: i64) -> Factor {
        Factor { fixed: 0, times, over: 1 }
    }

    pub const fn grows(self) -> bool {
        self.times != 0
    }

    /// The size for a growing size of `n`, rounded up. `None` where it overflows.
    pub fn size(self, n: i64) -> Option<i64> {
        let grown = i128::from(self.times) * i128::from(n);
        let over = i128::from(self.over);
        let grown = (grown + over - 1).div_euclid(over);
        i64::try_from(grown + i128::from(self.fixed)).ok()
    }

    /// The factor in lowest terms.
    fn reduced(self) -> Factor {
        let common = gcd(self.times, self.over).max(1);
        Factor { times: self.times / common, over: self.over / common, ..self }
    }

    /// The sum of two factors.
    fn plus(self, other: Factor) -> Option<Factor> {
        let over = self.over.checked_mul(other.over)?;
        let times = self.times.checked_mul(other.over)?.checked_add(other.times.checked_mul(self.over)?)?;
        Some(Factor { fixed: self.fixed.checked_add(other.fixed)?, times, over }.reduced())
    }

    /// A multiple of the factor.
    fn by(self, times: i64) -> Option<Factor> {
        let fixed = self.fixed.checked_mul(times)?;
        Some(Factor { fixed, times: self.times.checked_mul(times)?, ..self }.reduced())
    }

    /// One of `parts` equal parts; `None` where the fixed number is not divisible.
    fn part(self, parts: i64) -> Option<Factor> {
        if parts < 1 || self.fixed % parts != 0 {
            return None;
        }
        let over = if self.times == 0 { 1 } else { self.over.checked_mul(parts)? };
        Some(Factor { fixed: self.fixed / parts, times: self.times, over }.reduced())
    }
}

impl Form {
    pub fn constant(size: i64) -> Form {
        Form::from_factor(Factor::constant(size))
    }

    pub fn from_factor(factor: Factor) -> Form {
        Form::product(&[factor])
    }

    /// A size that is a multiple of the growing size; for offsets with the end of the last bag, the size minus one is. `None` where neither is a
    /// multiple.
    pub fn from_size(shape: &[i64], at: usize, from: i64) -> Option<Form> {
        let times = |size: i64| {
            (from > 0 && size > 0 && size % from == 0).then(|| Form::from_factor(Factor::times(size / from)))
        };
        let ends = || if shape.len() == 1 && from > 1 { times(shape[at] - 1)?.plus(1) } else { None };
        times(*shape.get(at)?).or_else(ends)
    }

    /// The product of factors; adjacent fixed ones are merged.
    pub fn product(factors: &[Factor]) -> Form {
        let mut all: SmallVec<[Factor; 2]> = SmallVec::new();
        for &factor in factors.iter().filter(|factor| **factor != Factor::constant(1)) {
            match all.last_mut() {
                Some(last) if !last.grows() && !factor.grows() => {
                    last.fixed = last.fixed.saturating_mul(factor.fixed);
                }
                _ => all.push(factor),
            }
        }
        Form(all)
    }

    pub fn grows(&self) -> bool {
        self.0.iter().any(|factor| factor.grows())
    }

    pub fn factors(&self) -> &[Factor] {
        &self.0
    }

    /// The size for a growing size of `n`; `None` where it overflows.
    pub fn size(&self, n: i64) -> Option<i64> {
        self.0.iter().try_fold(1_i64, |all, factor| all.checked_mul(factor.size(n)?))
    }

    /// The product as a single factor; `None` where several factors grow.
    fn linear(&self) -> Option<Factor> {
        let (mut grown, mut fixed) = (None, 1_i64);
        for &factor in &self.0 {
            if !factor.grows() {
                fixed = fixed.checked_mul(factor.fixed)?;
            } else if grown.replace(factor).is_some() {
                return None;
            }
        }
        grown.map_or(Some(Factor::constant(fixed)), |grown| grown.by(fixed))
    }

    /// Whether two sizes of one dimension grow alike, independent of their factors.
    pub fn is_as_large(&self, other: &Form) -> bool {
        self == other || (self.grows() == other.grows() && self.linear() == other.linear())
    }

    /// The size of concatenated dimensions; `None` where it is not linear.
    pub fn sum(parts: &[&Form]) -> Option<Form> {
        let (first, rest) = parts.split_first()?;
        if rest.iter().all(|part| part == first) && first.grows() {
            let mut factors: SmallVec<[Factor; 4]> = smallvec![Factor::constant(parts.len() as i64)];
            factors.extend_from_slice(&first.0);
            return Some(Form::product(&factors));
        }
        let each = parts.iter().map(|part| part.linear());
        let sum = each.reduce(|sum, part| sum?.plus(part?))??;
        Some(Form::from_factor(sum))
    }

    /// The size plus a fixed number.
    pub fn plus(&self, more: i64) -> Option<Form> {
        Form::sum(&[self, &Form::constant(more)])
    }

    /// The difference of two sizes.
    pub fn minus(&self, other: &Form) -> Option<Form> {
        let other = other.linear()?.by(-1)?;
        Some(Form::from_factor(self.linear()?.plus(other)?))
    }

    /// The size of a number of concatenated copies.
    pub fn repeated(&self, times: i64) -> Form {
        let mut factors: SmallVec<[Factor; 4]> = smallvec![Factor::constant(times)];
        factors.extend_from_slice(&self.0);
        Form::product(&factors)
    }

    /// A size in proportion to this one: `size` where this one is `of`. `None` where this one is not a pure multiple.
    pub fn share(&self, size: i64, of: i64) -> Option<Form> {
        let whole = self.linear()?;
        if whole.fixed != 0 || of < 1 {
            return None;
        }
        let common = gcd(size, of).max(1);
        let share = whole.by(size / common)?;
        Some(Form::from_factor(share.part(of / common)?))
    }
}

pub(super) fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_what_grows() {
        let samples = Form::from_factor(Factor::times(1));
        let tokens = Form::product(&[Factor::times(1), Factor::constant(4), Factor::constant(32)]);
        assert_eq!((samples.size(16), tokens.size(16), tokens.size(64)), (Some(16), Some(2048), Some(8192)));
        let joined = Form::sum(&[&samples, &Form::constant(3)]).unwrap();
        assert_eq!((joined.size(16), joined.size(1)), (Some(19), Some(4)));
        assert_eq!(joined.minus(&samples), Some(Form::constant(3)));
        let twice = Form::sum(&[&samples, &samples]).unwrap();
        assert_eq!(twice.size(5), Some(10));
        // 700 nodes of 32 graphs: a part of a node counts as one.
        let nodes = samples.share(700, 32).unwrap();
        assert_eq!((nodes.size(32), nodes.size(64), nodes.size(1)), (Some(700), Some(1400), Some(22)));
        assert_eq!(tokens.size(i64::MAX), None);
    }
}

//! Exact summation of doubles.

/// Bits of a limb that are part of the sum; the others of its `i64` hold carries.
const LIMB_BITS: u32 = 32;
/// Limbs for every bit from 2^-1074, the smallest double, to 2^1023, and for carries above.
const LIMBS: usize = 68;
/// Additions until carries are passed on: each adds less than 2^32 to a limb of 63 bits.
const DEFERRED: u32 = 1 << 30;

/// Sum of any number of doubles, rounded once, when it is read: equal for every order and grouping of the terms.
///
/// A fixed-point number that covers all finite doubles (Kulisch's long accumulator). Infinite terms are counted apart.
#[derive(Debug, Clone)]
pub struct ExactSum {
    limbs: [i64; LIMBS],
    deferred: u32,
    plus: u64,
    minus: u64,
    nan: bool,
}

impl Default for ExactSum {
    fn default() -> Self {
        ExactSum { limbs: [0; LIMBS], deferred: 0, plus: 0, minus: 0, nan: false }
    }
}

impl ExactSum {
    /// The empty sum, 0.
    #[must_use]
    pub fn new() -> Self {
        ExactSum::default()
    }

    /// Adds one term.
    pub fn add(&mut self, term: f64) {
        let bits = term.to_bits();
        let (exponent, fraction) = ((bits >> 52 & 0x7ff) as u32, bits & ((1 << 52) - 1));
        if exponent == 0x7ff {
            self.nan |= term.is_nan();
            self.plus += u64::from(term == f64::INFINITY);
            self.minus += u64::from(term == f64::NEG_INFINITY);
            return;
        }
        // A subnormal has no hidden bit and the exponent of the smallest normal number.
        let mantissa = if exponent == 0 { fraction } else { fraction | 1 << 52 };
        let shift = exponent.max(1) - 1;
        let (limb, parts) = ((shift / LIMB_BITS) as usize, u128::from(mantissa) << (shift % LIMB_BITS));
        let negative = term.is_sign_negative();
        for (part, limb) in self.limbs[limb..limb + 3].iter_mut().enumerate() {
            let value = i64::from((parts >> (part as u32 * LIMB_BITS)) as u32);
            *limb += if negative { -value } else { value };
        }
        self.deferred += 1;
        if self.deferred == DEFERRED {
            self.carry();
        }
    }

    /// Adds all terms of another sum.
    pub fn merge(&mut self, other: &ExactSum) {
        let mut other = other.clone();
        other.carry();
        self.carry();
        for (limb, more) in self.limbs.iter_mut().zip(other.limbs) {
            *limb += more;
        }
        self.deferred = 1;
        self.plus += other.plus;
        self.minus += other.minus;
        self.nan |= other.nan;
    }

    /// The sum, rounded to the nearest double; infinite if a term is, NaN if a term is or infinite terms cancel.
    #[must_use]
    pub fn value(&self) -> f64 {
        match (self.nan || self.plus > 0 && self.minus > 0, self.plus > 0, self.minus > 0) {
            (true, ..) => f64::NAN,
            (_, true, _) => f64::INFINITY,
            (_, _, true) => f64::NEG_INFINITY,
            _ => self.finite(),
        }
    }

    fn finite(&self) -> f64 {
        let mut sum = self.clone();
        sum.carry();
        let negative = sum.limbs[LIMBS - 1] < 0;
        if negative {
            sum.limbs.iter_mut().for_each(|limb| *limb = -*limb);
            sum.carry();
        }
        let Some(top) = sum.limbs.iter().rposition(|&limb| limb != 0) else { return 0.0 };
        // The four highest limbs hold 97 to 128 bits; a bit below them only decides ties, as if it were the last one.
        let low = top.saturating_sub(3);
        let mut head =
            sum.limbs[low..=top].iter().rev().fold(0u128, |head, &limb| head << LIMB_BITS | limb as u128);
        head |= u128::from(sum.limbs[..low].iter().any(|&limb| limb != 0));
        let exponent = (low as u32 * LIMB_BITS) as i32 - 1074;
        // In two steps, because 2^-1074 and 2^1006 times the head are outside of the normal range.
        let value = head as f64 * 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2);
        if negative { -value } else { value }
    }

    /// Passes carries on, so that every limb but the last is from 0 to 2^32 - 1.
    fn carry(&mut self) {
        let mut carry = 0;
        for limb in &mut self.limbs[..LIMBS - 1] {
            let value = *limb + carry;
            carry = value >> LIMB_BITS;
            *limb = value & ((1 << LIMB_BITS) - 1);
        }
        self.limbs[LIMBS - 1] += carry;
        self.deferred = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(terms: &[f64]) -> f64 {
        let mut sum = ExactSum::new();
        terms.iter().for_each(|&term| sum.add(term));
        sum.value()
    }

    #[test]
    fn one_term_is_itself() {
        for term in [
            0.0,
            1.0,
            -1.5,
            0.1,
            f64::MAX,
            f64::MIN,
            f64::MIN_POSITIVE,
            5e-324,
            -5e-324,
            1e-310,
            2f64.powi(1000),
        ] {
            assert_eq!(sum(&[term]), term, "{term:e}");
        }
    }

    #[test]
    fn small_terms_survive_large_ones() {
        assert_eq!(sum(&[1e300, 1.0, -1e300, 1e-300, -1.0]), 1e-300);
        assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX, 3.0, -f64::MAX]), 3.0);
    }

    #[test]
    fn a_tie_is_broken_by_the_last_bit_of_any_term() {
        let half = 2f64.powi(-53);
        assert_eq!(sum(&[1.0, half]), 1.0);
        assert_eq!(sum(&[1.0, half, 5e-324]), 1.0 + f64::EPSILON);
        assert_eq!(sum(&[1.0, half, -5e-324]), 1.0);
    }

    #[test]
    fn overflow_is_infinite() {
        assert_eq!(sum(&[f64::MAX, f64::MAX]), f64::INFINITY);
        assert_eq!(sum(&[f64::MIN, f64::MIN]), f64::NEG_INFINITY);
    }

    #[test]
    fn terms_that_are_not_finite_decide() {
        assert_eq!(sum(&[1.0, f64::INFINITY]), f64::INFINITY);
        assert_eq!(sum(&[1.0, f64::NEG_INFINITY]), f64::NEG_INFINITY);
        assert!(sum(&[f64::INFINITY, f64::NEG_INFINITY]).is_nan());
        assert!(sum(&[f64::NAN, 1.0]).is_nan());
    }
}

//! Unit types: times in whole nanoseconds, sizes in bytes.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

/// Time or duration in nanoseconds.
///
/// Traces print microseconds with three decimals. They are parsed from the digits: at today's
/// epoch a double would lose about a hundred nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub i64);

impl Nanos {
    /// Zero time.
    pub const ZERO: Nanos = Nanos(0);
    /// Latest time, some 292 years.
    pub const MAX: Nanos = Nanos(i64::MAX);

    /// Converts whole microseconds, saturating.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Nanos {
        Nanos(micros.saturating_mul(1_000))
    }

    /// Converts microseconds, rounded to the nearest nanosecond, saturating; not-a-number gives zero.
    #[must_use]
    pub fn from_micros_f64(micros: f64) -> Nanos {
        Nanos((micros * 1e3).round() as i64)
    }

    /// Converts milliseconds, rounded to the nearest nanosecond, saturating; not-a-number gives zero.
    #[must_use]
    pub fn from_millis_f64(millis: f64) -> Nanos {
        Nanos((millis * 1e6).round() as i64)
    }

    /// Converts the digits of a number of microseconds, exactly: `12`, `12.345`, `-1.2e3`.
    ///
    /// Digits past the nanosecond are rounded half away from zero. `None` if the text is not a
    /// number or the time does not fit.
    #[must_use]
    pub fn from_micros_digits(text: &[u8]) -> Option<Nanos> {
        crate::number::scaled(text, 3).map(Nanos)
    }

    /// Returns the time in microseconds.
    #[must_use]
    pub fn as_micros(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// Returns the time in milliseconds.
    #[must_use]
    pub fn as_millis(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

/// Prints with the unit that fits: `812 ns`, `4.20 µs`, `3.38 ms`, `1.25 s`.
impl fmt::Display for Nanos {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0 as f64;
        let (scaled, unit) = match self.0.unsigned_abs() {
            0..1_000 => return out.pad(&format!("{} ns", self.0)),
            1_000..1_000_000 => (value / 1e3, "µs"),
            1_000_000..1_000_000_000 => (value / 1e6, "ms"),
            _ => (value / 1e9, "s"),
        };
        let decimals = match scaled.abs() {
            x if x < 10.0 => 2,
            x if x < 100.0 => 1,
            _ => 0,
        };
        out.pad(&format!("{scaled:.decimals$} {unit}"))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

impl Neg for Nanos {
    type Output = Nanos;
    fn neg(self) -> Nanos {
        Nanos(self.0.saturating_neg())
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        *self = *self + other;
    }
}

impl SubAssign for Nanos {
    fn sub_assign(&mut self, other: Nanos) {
        *self = *self - other;
    }
}

impl Mul<i64> for Nanos {
    type Output = Nanos;
    fn mul(self, times: i64) -> Nanos {
        Nanos(self.0.saturating_mul(times))
    }
}

/// Whole-number division; dividing by zero gives [`Nanos::ZERO`].
impl Div<i64> for Nanos {
    type Output = Nanos;
    fn div(self, parts: i64) -> Nanos {
        Nanos(self.0.checked_div(parts).unwrap_or(0))
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Nanos>>(times: I) -> Nanos {
        times.fold(Nanos::ZERO, Add::add)
    }
}

/// Size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// Prints in powers of 1024: `640 B`, `4.00 MiB`.
impl fmt::Display for Bytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if self.0 < 1024 {
            return out.pad(&format!("{} B", self.0));
        }
        let power = (self.0.ilog2() / 10).min(6);
        let value = self.0 as f64 / 1024f64.powi(power as i32);
        out.pad(&format!("{value:.2} {}", UNITS[power as usize - 1]))
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_add(other.0))
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(sizes: I) -> Bytes {
        sizes.fold(Bytes(0), Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_the_unit_that_fits() {
        let check = |nanos, expect: &str| assert_eq!(Nanos(nanos).to_string(), expect);
        check(812, "812 ns");
        check(-5, "-5 ns");
        check(4_200, "4.20 µs");
        check(3_380_987, "3.38 ms");
        check(33_809_870, "33.8 ms");
        check(1_250_000_000, "1.25 s");
        assert_eq!(format!("{:>9}", Nanos(812)), "   812 ns");
        assert_eq!(Bytes(640).to_string(), "640 B");
        assert_eq!(Bytes(4 << 20).to_string(), "4.00 MiB");
        assert_eq!(Bytes(u64::MAX).to_string(), "16.00 EiB");
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Nanos::MAX + Nanos(1), Nanos::MAX);
        assert_eq!(-Nanos(i64::MIN), Nanos::MAX);
        assert_eq!(Nanos(7) / 0, Nanos::ZERO);
        assert_eq!(Nanos::from_micros_f64(f64::NAN), Nanos::ZERO);
        assert_eq!([Nanos(1), Nanos(2)].into_iter().sum::<Nanos>(), Nanos(3));
    }
}

//! Zipf's law over the rows of a table, cut at its end: frequent ranks one by one, the others as integrals
//! between the midpoints around them.

/// Ranks that are counted one by one.
pub(crate) const SINGLE_RANKS: u32 = 8;

/// End of "endless" ranks: the limit of 64 bits, as in numpy.
pub(crate) const ENDLESS: f64 = 9e18;

/// Ranks that are counted one by one in a table of `rows` rows.
pub(crate) fn single_ranks(rows: f64) -> u32 {
    f64::from(SINGLE_RANKS).min(rows) as u32
}

/// Weight of one rank.
pub(crate) fn weight(rank: u32, power: f64) -> f64 {
    f64::from(rank).powf(-power)
}

/// Integral of `x^-power`.
pub(crate) fn integral(from: f64, to: f64, power: f64) -> f64 {
    if is_one(power) {
        (to / from).ln()
    } else {
        (to.powf(1.0 - power) - from.powf(1.0 - power)) / (1.0 - power)
    }
}

/// Upper limit at which the integral from `from` reaches `area`.
pub(crate) fn end(from: f64, area: f64, power: f64) -> f64 {
    if is_one(power) {
        from * area.exp()
    } else {
        (from.powf(1.0 - power) + area * (1.0 - power)).powf(1.0 / (1.0 - power))
    }
}

fn is_one(power: f64) -> bool {
    (power - 1.0).abs() < 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_an_integral_is_found_again() {
        for power in [0.0, 0.6, 1.0, 1.05, 1.2, 3.0] {
            let area = integral(8.5, 123.5, power);
            assert!((end(8.5, area, power) / 123.5 - 1.0).abs() < 1e-9, "{power}");
        }
    }
}

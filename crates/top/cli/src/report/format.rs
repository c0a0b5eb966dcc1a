//! Numbers as text.

pub use steptime_predict::format::{counted, digits as factor, grouped, kernel, op, percent, times};

/// Formats milliseconds, to the microsecond; coarser from a second on.
pub fn ms(value: f64) -> String {
    if value.abs() < 1000.0 { format!("{value:.3}") } else { format!("{value:.1}") }
}

/// Formats microseconds, to ten nanoseconds; coarser from a tenth of a second on.
pub fn us(value: f64) -> String {
    if value.abs() < 1e5 { format!("{value:.2}") } else { format!("{value:.0}") }
}

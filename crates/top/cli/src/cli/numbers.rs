//! Numbers within limits.

/// Reads a number above zero.
pub fn positive(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    if number.is_finite() && number > 0.0 { Ok(number) } else { Err("give a number above zero".into()) }
}

pub fn times_as_long(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(times) if times.is_finite() && (0.05..=50.0).contains(&times) => Ok(times),
        _ => Err("it is a factor between 0.05 and 50: 1.7 for a host 1.7 times as slow".into()),
    }
}

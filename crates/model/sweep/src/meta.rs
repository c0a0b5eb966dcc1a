//! Metadata of a sweep.

use std::collections::BTreeMap;

/// Version of sweeps that this crate reads.
pub const VERSION: &str = "1";

/// Metadata of a sweep: names and values as the measuring program wrote them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SweepMeta {
    pub entries: BTreeMap<String, String>,
}

impl SweepMeta {
    /// Returns a value as text; `None` if it is empty.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.entries.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns a value as a positive number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<f64> {
        self.get(name)?.trim().parse().ok().filter(|value: &f64| value.is_finite() && *value > 0.0)
    }

    /// Returns the measured GPU: name, compute capability, multiprocessors.
    #[must_use]
    pub fn device(&self) -> String {
        let part = |name| self.get(name).unwrap_or("?");
        format!(
            "{} (compute capability {}, {} multiprocessors)",
            part("device"),
            part("compute_capability"),
            part("sm_count")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_positive_or_absent() {
        let entries = [("a", "2.5"), ("b", ""), ("c", "-1"), ("d", "nan"), ("device", "X")];
        let meta = SweepMeta { entries: entries.map(|(k, v)| (k.to_owned(), v.to_owned())).into() };
        assert_eq!(meta.number("a"), Some(2.5));
        assert_eq!([meta.number("b"), meta.number("c"), meta.number("d"), meta.number("e")], [None; 4]);
        assert_eq!(meta.device(), "X (compute capability ?, ? multiprocessors)");
    }
}

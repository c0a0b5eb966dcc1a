//! Words in messages of rules.

/// A number with its noun: `1 op`, `3 ops`.
pub(crate) fn counted(number: usize, one: &str, several: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}

//! Words of what rules say.

/// So many of something.
pub(crate) fn counted(number: usize, one: &str, several: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}

//! The name that was probably meant.

/// Returns the known name that is most similar to an unknown one, if it is close.
pub fn nearest<'n>(unknown: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let distance = |name: &str| strsim::damerau_levenshtein(unknown, name);
    known.min_by_key(|name| distance(name)).filter(|name| distance(name) <= 1 + name.len() / 3)
}

//! Interned strings: each distinct text once, identified by a small number.

use hashbrown::HashTable;
use rustc_hash::FxHasher;
use std::hash::Hasher;

crate::ids! {
    /// String of one [`Strings`] table.
    NameId;
}

/// Distinct strings in order of first appearance.
#[derive(Clone, Debug, Default)]
pub struct Strings {
    text: String,
    /// End of each string in `text`; it starts where the one before ends.
    ends: Vec<usize>,
    table: HashTable<u32>,
}

impl PartialEq for Strings {
    fn eq(&self, other: &Strings) -> bool {
        (&self.text, &self.ends) == (&other.text, &other.ends)
    }
}

impl Strings {
    /// Returns the id of `text`, new or known.
    pub fn intern(&mut self, text: &str) -> NameId {
        let hash = hash(text.as_bytes());
        match self.lookup(hash, text.as_bytes()) {
            Some(id) => id,
            None => self.insert(hash, text),
        }
    }

    /// Interns bytes like [`Strings::intern`], even if they are not UTF-8: invalid bytes are replaced, and the
    /// second value is then `true`. A known string is not checked again.
    pub(crate) fn intern_bytes(&mut self, bytes: &[u8]) -> (NameId, bool) {
        let hash = hash(bytes);
        if let Some(id) = self.lookup(hash, bytes) {
            return (id, false);
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => (self.insert(hash, text), false),
            Err(_) => (self.intern(&String::from_utf8_lossy(bytes)), true),
        }
    }

    /// Returns the string of an id; empty for an out-of-range id of another table.
    #[must_use]
    pub fn get(&self, id: NameId) -> &str {
        let index = id.index();
        let start = match index {
            0 => 0,
            _ => self.ends.get(index - 1).copied().unwrap_or(self.text.len()),
        };
        let end = self.ends.get(index).copied().unwrap_or(start);
        &self.text[start..end]
    }

    /// Returns the id of `text` if it is known.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<NameId> {
        self.lookup(hash(text.as_bytes()), text.as_bytes())
    }

    /// Returns the number of distinct strings.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no strings.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns ids and strings, in order of first appearance.
    pub fn iter(&self) -> impl Iterator<Item = (NameId, &str)> {
        (0..self.ends.len() as u32).map(|id| (NameId(id), self.get(NameId(id))))
    }

    /// Adds another table's strings; returns the new id of each of them.
    pub(crate) fn absorb(&mut self, other: &Strings) -> Vec<NameId> {
        other.iter().map(|(_, text)| self.intern(text)).collect()
    }

    fn lookup(&self, hash: u64, bytes: &[u8]) -> Option<NameId> {
        let same = |&id: &u32| self.get(NameId(id)).as_bytes() == bytes;
        self.table.find(hash, same).map(|&id| NameId(id))
    }

    fn insert(&mut self, hash_of_text: u64, text: &str) -> NameId {
        let id = NameId(self.ends.len() as u32);
        self.text.push_str(text);
        self.ends.push(self.text.len());
        let Strings { text, ends, table } = self;
        table.insert_unique(hash_of_text, id.0, |&other| {
            let start = other.checked_sub(1).map_or(0, |before| ends[before as usize]);
            hash(&text.as_bytes()[start..ends[other as usize]])
        });
        id
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_once_in_order() {
        let mut strings = Strings::default();
        let ids: Vec<_> = ["a", "", "bc", "a", ""].map(|text| strings.intern(text)).into();
        assert_eq!(ids, [0, 1, 2, 0, 1].map(NameId));
        assert_eq!(strings.get(NameId(2)), "bc");
        assert_eq!(strings.get(NameId(9)), "");
        assert_eq!(strings.find("bc"), Some(NameId(2)));
        assert_eq!(strings.find("b"), None);
        assert_eq!(strings.len(), 3);
    }

    #[test]
    fn many_survive_growth() {
        let mut strings = Strings::default();
        for round in 0..2 {
            for n in 0..10_000u32 {
                assert_eq!(strings.intern(&format!("name {n}")), NameId(n), "round {round}");
            }
        }
    }

    #[test]
    fn bytes_that_are_not_text_are_replaced() {
        let mut strings = Strings::default();
        assert_eq!(strings.intern_bytes(b"a\xff"), (NameId(0), true));
        assert_eq!(strings.get(NameId(0)), "a\u{fffd}");
        assert_eq!(strings.intern_bytes(b"plain"), (NameId(1), false));
    }
}

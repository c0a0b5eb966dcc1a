//! A hash table of tokens with a small number each: a count, or an id.

use steptime_launch::mix;

/// Token of a missing value; it is in no table.
pub(crate) const MISSING: u64 = u64::MAX;

/// A token and its number, 12 bytes. Number 0 marks a free place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Entry {
    low: u32,
    high: u32,
    pub(crate) number: u32,
}

/// Bytes of an entry.
pub(crate) const ENTRY: usize = 12;

impl Entry {
    pub(crate) fn new(token: u64, number: u32) -> Entry {
        Entry { low: token as u32, high: (token >> 32) as u32, number }
    }

    pub(crate) fn token(&self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low)
    }

    pub(crate) fn to_bytes(self) -> [u8; ENTRY] {
        let mut bytes = [0; ENTRY];
        bytes[..8].copy_from_slice(&self.token().to_le_bytes());
        bytes[8..].copy_from_slice(&self.number.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8; ENTRY]) -> Entry {
        let part = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Entry { low: part(0), high: part(4), number: part(8) }
    }
}

/// Open addressing with linear probing, at most three quarters full.
#[derive(Debug)]
pub(crate) struct Table {
    entries: Vec<Entry>,
    used: usize,
}

impl Table {
    pub(crate) fn new(places: usize) -> Table {
        Table { entries: vec![Entry::default(); places.max(4)], used: 0 }
    }

    /// Number of places that `used` tokens need.
    pub(crate) fn places_for(used: usize) -> usize {
        used / 3 * 4 + 8
    }

    pub(crate) fn places(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn bytes(&self) -> u64 {
        (self.entries.len() * ENTRY) as u64
    }

    /// Whether another token has no room.
    pub(crate) fn is_full(&self) -> bool {
        self.used >= self.entries.len() / 4 * 3
    }

    /// Place of a token, or the free place for it.
    fn place(&self, token: u64) -> usize {
        let places = self.entries.len();
        let mut place = ((u128::from(mix(token)) * places as u128) >> 64) as usize;
        loop {
            let entry = &self.entries[place];
            if entry.number == 0 || entry.token() == token {
                return place;
            }
            place = if place + 1 == places { 0 } else { place + 1 };
        }
    }

    /// Adds to a token's number, without overflow. The table must not be full.
    pub(crate) fn add(&mut self, token: u64, number: u32) {
        let place = self.place(token);
        let entry = &mut self.entries[place];
        self.used += usize::from(entry.number == 0);
        *entry = Entry::new(token, entry.number.saturating_add(number));
    }

    /// The token's number, or 0.
    pub(crate) fn get(&self, token: u64) -> u32 {
        self.entries[self.place(token)].number
    }

    /// Moves the entries into a table of another size.
    pub(crate) fn resize(&mut self, places: usize) {
        let mut resized = Table::new(places);
        for entry in self.entries.iter().filter(|entry| entry.number > 0) {
            let place = resized.place(entry.token());
            resized.entries[place] = *entry;
        }
        resized.used = self.used;
        *self = resized;
    }

    /// Copies of the entries, in the order of tokens; the table is empty afterwards.
    pub(crate) fn drain_sorted(&mut self) -> Vec<Entry> {
        let mut entries: Vec<Entry> = self.entries.iter().copied().filter(|entry| entry.number > 0).collect();
        entries.sort_unstable_by_key(Entry::token);
        self.entries.fill(Entry::default());
        self.used = 0;
        entries
    }

    /// The entries in any order, in the memory of the table.
    pub(crate) fn into_entries(self) -> Vec<Entry> {
        let mut entries = self.entries;
        entries.retain(|entry| entry.number > 0);
        entries
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_table_counts_as_a_map_does(tokens in proptest::collection::vec((0_u64..200, 1_u32..5), 0..600)) {
            let (mut table, mut map) = (Table::new(4), BTreeMap::new());
            for (token, count) in tokens {
                let token = token.wrapping_mul(0x1_0000_0001);
                if table.is_full() {
                    table.resize(2 * table.places());
                }
                table.add(token, count);
                *map.entry(token).or_insert(0) += count;
            }
            for (&token, &count) in &map {
                prop_assert_eq!(table.get(token), count);
            }
            prop_assert_eq!(table.get(12_345_678_901), 0);
            let entries: Vec<_> = table.drain_sorted().iter().map(|entry| (entry.token(), entry.number)).collect();
            prop_assert_eq!(entries, map.into_iter().collect::<Vec<_>>());
            prop_assert_eq!(table.into_entries().len(), 0);
        }

        #[test]
        fn entries_survive_as_bytes(token: u64, number: u32) {
            let entry = Entry::new(token, number);
            prop_assert_eq!(Entry::from_bytes(&entry.to_bytes()), entry);
            prop_assert_eq!(entry.token(), token);
        }
    }
}

//! The gaps of a profile, and their look-up.

use std::ops::Deref;
use std::sync::OnceLock;

use rustc_hash::FxHashMap;
use steptime_trace::NameId;

use super::gap_key::{EdgeKey, Edges, LEVELS, class, turn};

/// One kind of gap.
#[derive(Debug, Clone, PartialEq)]
pub struct Gap {
    /// Narrowest key.
    pub key: EdgeKey,
    /// Time with warm caches, microseconds.
    pub us: f64,
    /// Weight: the sum of the warmth factors of its measurements.
    pub weight: f64,
}

/// The gaps of a profile, sorted by key, with a table for look-ups.
#[derive(Debug, Default)]
pub struct Gaps {
    rows: Vec<Gap>,
    table: OnceLock<GapTable>,
}

impl Gaps {
    /// Creates the gaps from rows that are sorted by key.
    #[must_use]
    pub fn new(rows: Vec<Gap>) -> Gaps {
        Gaps { rows, table: OnceLock::new() }
    }

    /// Returns the gaps by key at every level; the table is made on the first call.
    pub fn table(&self) -> &GapTable {
        self.table.get_or_init(|| GapTable::new(&self.rows))
    }
}

impl Deref for Gaps {
    type Target = [Gap];

    fn deref(&self) -> &[Gap] {
        &self.rows
    }
}

impl PartialEq for Gaps {
    fn eq(&self, other: &Gaps) -> bool {
        self.rows == other.rows
    }
}

/// Time of a gap on a profile's host, and its source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Usual {
    /// Time, microseconds: with warm caches as [`GapTable::find_all`] returns it, then scaled to the warmth of this
    /// step.
    pub us: f64,
    /// Level of context at which the profile has the gap: an index into [`super::gap_key::LEVEL_NAMES`].
    pub level: usize,
}

/// Index of a text in a table; [`Texts::NONE`] if the table does not have the text.
type Text = u32;

/// Gaps of a profile by key at every level: sums of time and of weight.
#[derive(Debug, Clone, Default)]
pub struct GapTable {
    texts: Texts,
    levels: [FxHashMap<[Text; 5], (f64, f64)>; LEVELS],
}

/// Texts of a table's keys.
#[derive(Debug, Clone, Default)]
struct Texts(FxHashMap<String, Text>);

impl Texts {
    const NONE: Text = Text::MAX;

    fn add(&mut self, text: &str) -> Text {
        if let Some(&known) = self.0.get(text) {
            return known;
        }
        let next = self.0.len() as Text;
        self.0.insert(text.to_owned(), next);
        next
    }

    fn find(&self, text: &str) -> Text {
        self.0.get(text).copied().unwrap_or(Texts::NONE)
    }
}

impl GapTable {
    /// Creates the table of a profile's gaps.
    fn new(gaps: &[Gap]) -> GapTable {
        let mut table = GapTable::default();
        for gap in gaps {
            for (level, sums) in table.levels.iter_mut().enumerate() {
                let key = gap.key.at_level(level).map(|text| table.texts.add(text));
                let sum = sums.entry(key).or_default();
                sum.0 += gap.us * gap.weight;
                sum.1 += gap.weight;
            }
        }
        table
    }

    /// Returns for each distinct gap of a graph its time with warm caches, by the narrowest known key.
    pub(super) fn find_all(&self, edges: &Edges) -> Vec<Option<Usual>> {
        let (keys, names) = edges.named();
        let empty = self.texts.find("");
        // For each name: itself, its class, and its sign of another thread or step.
        let texts: Vec<[Text; 3]> = (0..names.len())
            .map(|at| names.get(NameId::from(at)))
            .map(|name| [name, class(name), turn(name)].map(|text| self.texts.find(text)))
            .collect();
        let find = |key: &[NameId; 5]| {
            let [before_that, before, left, right, within] = key.map(|name| texts[usize::from(name)]);
            let at_level = |level: usize| match level {
                0 => [before_that[0], before[0], left[0], right[0], within[0]],
                1 => [empty, before[0], left[0], right[0], within[0]],
                2 => [empty, empty, left[0], right[0], within[2]],
                3 => [empty, empty, left[0], right[1], within[2]],
                4 => [empty, empty, left[1], right[0], within[2]],
                _ => [empty, empty, left[1], right[1], within[2]],
            };
            self.levels.iter().enumerate().find_map(|(level, sums)| {
                let &(sum, weight) = sums.get(&at_level(level))?;
                (weight > 0.0).then(|| Usual { us: sum / weight, level })
            })
        };
        keys.iter().map(find).collect()
    }
}

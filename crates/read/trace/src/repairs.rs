//! Counts of repairs and omissions while reading.

use std::collections::BTreeMap;

/// Kind of a repair or omission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Note {
    /// The file ends in the middle; everything before the cut was read.
    Truncated,
    /// Compressed data was damaged; everything before the damage was read.
    DamagedCompression,
    /// An unreadable item was dropped.
    SkippedItem,
    /// A comma was missing.
    MissingComma,
    /// A comma was surplus.
    SurplusComma,
    /// A string contained a bare control character.
    ControlCharacter,
    /// A string was not UTF-8; the invalid bytes were replaced.
    InvalidUtf8,
    /// `NaN` or `Infinity` was in the place of a number.
    NotANumber,
    /// A field had a value of another type and was treated as absent.
    WrongType,
    /// A string was longer than any name, and was treated as absent.
    LongString,
    /// An event or node lacked a required field and was dropped.
    MissingField,
    /// An event had no duration; zero was assumed.
    MissingDuration,
    /// A negative duration was replaced by zero.
    NegativeDuration,
    /// Device work was linked to its call by a flow arrow, as correlations are missing.
    LinkedByFlow,
    /// An activity that ends after the end of the next one on its stream was cut to the start of the next one.
    Overlap,
    /// There was data after the end of the document.
    TrailingData,
    /// The end of the document was unreadable.
    BrokenTail,
    /// The schema is unknown to this reader, but its nodes were readable.
    UnknownSchema,
    /// Two nodes had the same id; both were kept.
    DuplicateId,
    /// A value did not fit its declared type.
    OddValue,
    /// Events of a phase that is not read.
    UnknownPhase,
    /// Events of a category that is not read.
    UnknownCategory,
    /// Flow arrows, which the correlation ids make superfluous.
    FlowEvents,
    /// Instant events: memory reports and marks.
    Instants,
    /// Counter samples.
    Counters,
    /// Python stack frames.
    PythonFunctions,
    /// The profiler's own span.
    Spans,
}

/// All kinds with their messages, repairs first.
const KINDS: [(Note, &str); 27] = [
    (Note::Truncated, "the file ends in the middle; the part before the cut was read"),
    (Note::DamagedCompression, "compressed data is damaged; the part before the damage was read"),
    (Note::SkippedItem, "unreadable events left out"),
    (Note::MissingComma, "missing commas supplied"),
    (Note::SurplusComma, "surplus commas ignored"),
    (Note::ControlCharacter, "bare control characters in strings accepted"),
    (Note::InvalidUtf8, "strings that are not UTF-8 repaired"),
    (Note::NotANumber, "not-a-number values taken as absent"),
    (Note::WrongType, "fields of an unexpected type taken as absent"),
    (Note::LongString, "strings longer than 16 MiB taken as absent"),
    (Note::MissingField, "events without a required field left out"),
    (Note::MissingDuration, "events without a duration taken as instantaneous"),
    (Note::NegativeDuration, "negative durations taken as zero"),
    (Note::LinkedByFlow, "kernels and copies without a correlation linked to their calls by flow arrows"),
    (Note::Overlap, "kernels and copies that overlap the next on their stream shortened"),
    (Note::TrailingData, "data after the end of the document ignored"),
    (Note::BrokenTail, "unreadable end of the document ignored"),
    (Note::UnknownSchema, "schema not known to this reader, read as the nearest known one"),
    (Note::DuplicateId, "nodes that share an id kept"),
    (Note::OddValue, "values that do not fit their declared type kept as unknown"),
    (Note::UnknownPhase, "events of an unknown phase left out"),
    (Note::UnknownCategory, "events of an unknown category left out"),
    (Note::FlowEvents, "flow events left out"),
    (Note::Instants, "instant events left out"),
    (Note::Counters, "counter samples left out"),
    (Note::PythonFunctions, "Python function events left out"),
    (Note::Spans, "profiler spans left out"),
];

impl Note {
    /// Whether this repairs the input, and does not just drop unused events.
    #[must_use]
    pub fn is_repair(self) -> bool {
        self < Note::UnknownPhase
    }

    /// Returns the message for users.
    #[must_use]
    pub fn message(self) -> &'static str {
        KINDS[self as usize].1
    }
}

/// Number of occurrences, and position of the first one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of occurrences.
    pub count: u64,
    /// Byte offset of the first occurrence in the decompressed file.
    pub first: u64,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        if other.count == 0 {
            return;
        }
        self.first = if self.count == 0 { other.first } else { self.first.min(other.first) };
        self.count += other.count;
    }
}

/// Counts of all repairs and omissions while reading one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    tallies: [Tally; KINDS.len()],
    categories: BTreeMap<String, Tally>,
}

impl Notes {
    /// Returns the number of occurrences of a kind, and the position of the first.
    #[must_use]
    pub fn tally(&self, note: Note) -> Tally {
        self.tallies[note as usize]
    }

    /// Returns the number of occurrences of a kind.
    #[must_use]
    pub fn count(&self, note: Note) -> u64 {
        self.tally(note).count
    }

    /// Returns the total number of repairs.
    #[must_use]
    pub fn repairs(&self) -> u64 {
        KINDS.iter().filter(|(note, _)| note.is_repair()).map(|(note, _)| self.count(*note)).sum()
    }

    /// Whether no repair was needed.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.repairs() == 0
    }

    /// Returns messages with their counts, repairs first, and the names of unknown categories.
    pub fn iter(&self) -> impl Iterator<Item = (String, u64)> {
        let kinds = KINDS.iter().filter_map(|&(note, message)| {
            let Tally { count, first } = self.tally(note);
            let message = match note {
                _ if count == 0 || note == Note::UnknownCategory => return None,
                // 0 if it was found after all was read.
                _ if note.is_repair() && first > 0 => format!("{message} (first at byte {first})"),
                _ => message.to_owned(),
            };
            Some((message, count))
        });
        let categories = self
            .categories
            .iter()
            .map(|(name, tally)| (format!("events of category `{name}` left out"), tally.count));
        kinds.chain(categories)
    }

    /// Returns the categories that are not read, by name.
    pub fn unknown_categories(&self) -> impl Iterator<Item = (&str, Tally)> {
        self.categories.iter().map(|(name, tally)| (name.as_str(), *tally))
    }

    pub(crate) fn add(&mut self, note: Note, at: u64) {
        self.tallies[note as usize].add(Tally { count: 1, first: at });
    }

    pub(crate) fn add_category(&mut self, name: &str, at: u64) {
        self.add(Note::UnknownCategory, at);
        if let Some(tally) = self.categories.get_mut(name) {
            tally.add(Tally { count: 1, first: at });
        } else {
            self.categories.insert(name.to_owned(), Tally { count: 1, first: at });
        }
    }

    pub(crate) fn absorb(&mut self, other: Notes) {
        for (mine, theirs) in self.tallies.iter_mut().zip(other.tallies) {
            mine.add(theirs);
        }
        for (name, tally) in other.categories {
            self.categories.entry(name).or_default().add(tally);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order() {
        for (index, (note, _)) in KINDS.iter().enumerate() {
            assert_eq!(*note as usize, index);
        }
    }

    #[test]
    fn counts_and_first_places_add_up() {
        let mut one = Notes::default();
        one.add(Note::MissingComma, 70);
        one.add(Note::FlowEvents, 5);
        assert!(!one.is_clean());
        let mut two = Notes::default();
        two.add(Note::MissingComma, 30);
        two.add_category("mtia_runtime", 9);
        one.absorb(two);
        assert_eq!(one.tally(Note::MissingComma), Tally { count: 2, first: 30 });
        assert_eq!(one.repairs(), 2);
        let lines: Vec<_> = one.iter().collect();
        assert_eq!(lines[0], ("missing commas supplied (first at byte 30)".into(), 2));
        assert_eq!(lines[2], ("events of category `mtia_runtime` left out".into(), 1));
    }
}

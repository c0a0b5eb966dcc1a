//! Checks that offsets increase and indices are in range.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{BadLookup, Bounds, EmbeddingError, Ints, Lookups, Report, Tables};
use crate::Cpu;

impl Lookups<'_> {
    /// Checks that the offsets fit the tables and never decrease, and checks all indices.
    ///
    /// # Errors
    ///
    /// Offsets that do not fit or decrease; with [`Bounds::Error`], the first index that is out of range.
    pub fn check(&self, cpu: &Cpu, tables: &Tables<'_>, bounds: Bounds) -> Result<Report, EmbeddingError> {
        self.check_shape(tables)?;
        let per_table = self.bags().div_ceil(1024);
        let parts = tables.len() * per_table;
        let bags = |part: usize| {
            let first = part % per_table * 1024;
            (part / per_table, first..(first + 1024).min(self.bags()))
        };
        // Wrong parts are rare: the earliest is found first, and its errors afterwards.
        let wrong = AtomicUsize::new(usize::MAX);
        cpu.run(parts, |part| {
            let (table, bags) = bags(part);
            let good = self.rising(table, &bags) && self.in_range(tables, table, self.span(table, &bags));
            if !good {
                wrong.fetch_min(part, Ordering::Relaxed);
            }
        });
        let mut report = Report::default();
        for part in wrong.into_inner().min(parts)..parts {
            let (table, bags) = bags(part);
            self.report(tables, table, bags, bounds, &mut report)?;
        }
        Ok(report)
    }

    /// Checks that there are T x B + 1 offsets, and that those at the beginning of each table increase.
    pub(super) fn check_shape(&self, tables: &Tables<'_>) -> Result<(), EmbeddingError> {
        let needed = Lookups::offset_count(tables.len(), self.bags())?;
        if self.offsets().len() != needed {
            let (found, tables, bags) = (self.offsets().len(), tables.len(), self.bags());
            return Err(EmbeddingError::OffsetCount { found, tables, bags, needed });
        }
        let mut before = 0;
        for at in (0..needed).step_by(self.bags().max(1)) {
            let value = self.offsets().at(at);
            if value < before || value > self.indices().len() as i64 {
                return Err(EmbeddingError::Offset { at, value, before, indices: self.indices().len() });
            }
            before = value;
        }
        Ok(())
    }

    /// Whether the offsets of these bags increase, within the table's.
    pub(super) fn rising(&self, table: usize, bags: &Range<usize>) -> bool {
        let first = table * self.bags();
        let ends = self.offsets().at(first)..=self.offsets().at(first + self.bags());
        let places = first + bags.start..first + bags.end + 1;
        // Without a branch for each pair, so that it is vectorized.
        let rises = match self.offsets().slice(places.clone()) {
            Ints::I32(all) => all.iter().zip(&all[1..]).fold(true, |good, (a, b)| good & (a <= b)),
            Ints::I64(all) => all.iter().zip(&all[1..]).fold(true, |good, (a, b)| good & (a <= b)),
        };
        rises
            && ends.contains(&self.offsets().at(places.start))
            && ends.contains(&self.offsets().at(places.end - 1))
    }

    /// The places of the indices of these bags, whose offsets increase; empty where they do not.
    fn span(&self, table: usize, bags: &Range<usize>) -> Range<usize> {
        let at = table * self.bags();
        self.offsets().at(at + bags.start) as usize..self.offsets().at(at + bags.end) as usize
    }

    fn in_range(&self, tables: &Tables<'_>, table: usize, places: Range<usize>) -> bool {
        let rows = tables.table(table).rows() as u64;
        match self.indices().slice(places) {
            Ints::I32(all) => all.iter().fold(true, |good, &index| good & ((index as i64 as u64) < rows)),
            Ints::I64(all) => all.iter().fold(true, |good, &index| good & ((index as u64) < rows)),
        }
    }

    /// Adds the errors in these bags to the report, or fails with the first.
    pub(super) fn report(
        &self,
        tables: &Tables<'_>,
        table: usize,
        bags: Range<usize>,
        bounds: Bounds,
        report: &mut Report,
    ) -> Result<(), EmbeddingError> {
        let first = table * self.bags();
        let ends = self.offsets().at(first)..=self.offsets().at(first + self.bags());
        let rows = tables.table(table).rows();
        for bag in bags {
            let (before, value) = (self.offsets().at(first + bag), self.offsets().at(first + bag + 1));
            for (at, value, before) in
                [(first + bag, before, *ends.start()), (first + bag + 1, value, before)]
            {
                if value < before || !ends.contains(&value) {
                    return Err(EmbeddingError::Offset { at, value, before, indices: self.indices().len() });
                }
            }
            for lookup in before as usize..value as usize {
                let index = self.indices().at(lookup);
                if (index as u64) < rows as u64 {
                    continue;
                }
                if bounds == Bounds::Error {
                    let name = tables.table(table).name().to_owned();
                    return Err(EmbeddingError::Index { table, name, bag, lookup, index, rows });
                }
                report.add(BadLookup { table, bag, lookup, index });
            }
        }
        Ok(())
    }
}

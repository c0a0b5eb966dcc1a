//! Columns from rows.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, UInt16Builder, UInt32Builder};
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    UInt32Array, UInt64Array,
};
use parquet::errors::ParquetError;
use rustc_hash::FxHashMap;
use steptime_trace::{NameId, Nanos, Trace};

use crate::sketch::Sketch;

/// Named columns of equal length, made from rows one after the other.
pub(super) struct Columns<'a, R> {
    rows: &'a [R],
    trace: &'a Trace,
    made: Vec<(&'static str, ArrayRef, bool)>,
}

impl<'a, R> Columns<'a, R> {
    pub(super) fn new(rows: &'a [R], trace: &'a Trace) -> Columns<'a, R> {
        Columns { rows, trace, made: Vec::new() }
    }

    fn put(mut self, name: &'static str, array: ArrayRef, may_lack: bool) -> Self {
        self.made.push((name, array, may_lack));
        self
    }

    /// Adds a column of counts.
    pub(super) fn count(self, name: &'static str, of: impl Fn(&R) -> u64) -> Self {
        let array = UInt64Array::from_iter_values(self.rows.iter().map(of));
        self.put(name, Arc::new(array), false)
    }

    /// Adds a column of counts, null if unknown.
    pub(super) fn maybe_count(self, name: &'static str, of: impl Fn(&R) -> Option<u64>) -> Self {
        let array: UInt64Array = self.rows.iter().map(of).collect();
        self.put(name, Arc::new(array), true)
    }

    /// Adds a column of 32-bit numbers, null if unknown.
    pub(super) fn maybe_number(self, name: &'static str, of: impl Fn(&R) -> Option<u32>) -> Self {
        let array: UInt32Array = self.rows.iter().map(of).collect();
        self.put(name, Arc::new(array), true)
    }

    /// Adds a column of whole numbers, null if unknown.
    pub(super) fn maybe_integer(self, name: &'static str, of: impl Fn(&R) -> Option<i64>) -> Self {
        let array: Int64Array = self.rows.iter().map(of).collect();
        self.put(name, Arc::new(array), true)
    }

    /// Adds a column of durations, nanoseconds.
    pub(super) fn time(self, name: &'static str, of: impl Fn(&R) -> Nanos) -> Self {
        let array = Int64Array::from_iter_values(self.rows.iter().map(|row| of(row).0));
        self.put(name, Arc::new(array), false)
    }

    /// Adds a column of durations, null if unknown.
    pub(super) fn maybe_time(self, name: &'static str, of: impl Fn(&R) -> Option<Nanos>) -> Self {
        self.maybe_integer(name, |row| of(row).map(|time| time.0))
    }

    /// Adds a column of points in time, nanoseconds since 1970.
    pub(super) fn moment(self, name: &'static str, of: impl Fn(&R) -> Nanos) -> Self {
        let base = self.trace.base_time;
        self.time(name, |row| base + of(row))
    }

    /// Adds a column of points in time, null if unknown.
    pub(super) fn maybe_moment(self, name: &'static str, of: impl Fn(&R) -> Option<Nanos>) -> Self {
        let base = self.trace.base_time;
        self.maybe_time(name, |row| of(row).map(|time| base + time))
    }

    /// Adds a column of names of the trace.
    pub(super) fn name(self, name: &'static str, of: impl Fn(&R) -> NameId) -> Self {
        let array = self.dictionary(self.rows.iter().map(|row| Some(of(row))));
        self.put(name, array, false)
    }

    /// Adds a column of names of the trace, null if unknown.
    pub(super) fn maybe_name(self, name: &'static str, of: impl Fn(&R) -> Option<NameId>) -> Self {
        let array = self.dictionary(self.rows.iter().map(of));
        self.put(name, array, true)
    }

    /// Encodes names as indices of a list without repetitions: four bytes per row.
    fn dictionary(&self, names: impl Iterator<Item = Option<NameId>>) -> ArrayRef {
        let mut places: FxHashMap<NameId, i32> = FxHashMap::default();
        let mut values: Vec<&str> = Vec::new();
        let mut key = |name: NameId| {
            *places.entry(name).or_insert_with(|| {
                values.push(self.trace.name(name));
                values.len() as i32 - 1
            })
        };
        let keys: Int32Array = names.map(|name| name.map(&mut key)).collect();
        let values: StringArray = values.into_iter().map(Some).collect();
        // Every key is the index of a value.
        Arc::new(DictionaryArray::new(keys, Arc::new(values)))
    }

    /// Adds a column of words.
    pub(super) fn word(self, name: &'static str, of: impl Fn(&R) -> &'static str) -> Self {
        let array = StringArray::from_iter_values(self.rows.iter().map(of));
        self.put(name, Arc::new(array), false)
    }

    /// Adds a column of booleans.
    pub(super) fn flag(self, name: &'static str, of: impl Fn(&R) -> bool) -> Self {
        let array: BooleanArray = self.rows.iter().map(|row| Some(of(row))).collect();
        self.put(name, Arc::new(array), false)
    }

    /// Adds the columns of a sketch: count, sum_ns, min_ns, max_ns, sum_squares, and two lists, bins and bin_counts.
    pub(super) fn sketch(self, of: impl Fn(&R) -> &Sketch) -> Self {
        let rows = self.rows;
        let squares = Float64Array::from_iter_values(rows.iter().map(|row| of(row).sum_squares));
        let mut bins = ListBuilder::new(UInt16Builder::new());
        let mut counts = ListBuilder::new(UInt32Builder::new());
        for row in rows {
            bins.append_value(of(row).bins.iter().map(|(bin, _)| Some(*bin)));
            counts.append_value(of(row).bins.iter().map(|(_, count)| Some(*count)));
        }
        self.count("count", |row| of(row).count)
            .time("sum_ns", |row| Nanos(of(row).sum))
            .time("min_ns", |row| Nanos(of(row).min))
            .time("max_ns", |row| Nanos(of(row).max))
            .put("sum_squares", Arc::new(squares), false)
            .put("bins", Arc::new(bins.finish()), false)
            .put("bin_counts", Arc::new(counts.finish()), false)
    }

    /// Returns the table.
    pub(super) fn batch(self) -> Result<RecordBatch, ParquetError> {
        RecordBatch::try_from_iter_with_nullable(self.made)
            .map_err(|error| ParquetError::General(error.to_string()))
    }
}

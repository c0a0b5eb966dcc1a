//! Several tables that are looked up together.

use super::EmbeddingError;

/// Pooling of the rows of a bag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pooling {
    /// The sum of the rows, in the order of the lookups; an empty bag gives 0.
    Sum,
    /// The sum of the rows times `1 / L`, with L lookups in the bag; an empty bag gives 0.
    Mean,
    /// The largest in each column; an empty bag gives 0. Takes no per-sample weights.
    Max,
    /// No pooling: one row of the output for each lookup, and bags are ignored.
    None,
}

/// A table of D columns, wherever its rows are stored.
pub trait Columns {
    /// The mutable part of a table: its values, never its shape, since the set has placed columns by it.
    type Values<'t>
    where
        Self: 't;

    /// Number of columns, D.
    fn dim(&self) -> usize;

    /// Returns the mutable values.
    fn values_mut(&mut self) -> Self::Values<'_>;
}

/// Tables with the pooling of each, whose columns are adjacent in the output.
///
/// The set stores the first column of each table, and threads write there without further checks. So no table can be
/// replaced by another: only its values can be changed.
///
/// ```compile_fail,E0594
/// use steptime_ops::embedding::{Pooling, Table, Tables};
///
/// let (narrow, wide) = ([1.0_f32; 16], [2.0_f32; 32]);
/// let mut set = Tables::new(vec![Table::borrow("narrow", &narrow, 16).unwrap()], Pooling::Sum);
/// *set.values_mut(0) = Table::borrow("wide", &wide, 32).unwrap();
/// ```
///
/// ```compile_fail,E0594
/// use steptime_ops::embedding::{Pooling, Table, Tables};
///
/// let (narrow, wide) = ([1.0_f32; 16], [2.0_f32; 32]);
/// let mut set = Tables::new(vec![Table::borrow("narrow", &narrow, 16).unwrap()], Pooling::Sum);
/// for mut table in set.all_values_mut() {
///     *table = Table::borrow("wide", &wide, 32).unwrap();
/// }
/// ```
#[derive(Debug)]
pub struct TableSet<T> {
    tables: Vec<T>,
    pooling: Vec<Pooling>,
    columns: Vec<usize>,
}

impl<T: Columns> TableSet<T> {
    /// Tables that all have the same pooling.
    #[must_use]
    pub fn new(tables: Vec<T>, pooling: Pooling) -> TableSet<T> {
        let mut columns = vec![0];
        // Tables may share memory, so their total number of columns may overflow: no output can hold these.
        columns.extend(tables.iter().scan(0_usize, |end, table| {
            *end = end.saturating_add(table.dim());
            Some(*end)
        }));
        TableSet { pooling: vec![pooling; tables.len()], tables, columns }
    }

    /// Converts each table, and keeps the pooling, for example for copies on a device.
    ///
    /// # Errors
    ///
    /// The first error of `other`.
    pub fn try_map<U: Columns, E>(&self, other: impl FnMut(&T) -> Result<U, E>) -> Result<TableSet<U>, E> {
        let tables = self.tables.iter().map(other).collect::<Result<_, _>>()?;
        Ok(TableSet { pooling: self.pooling.clone(), ..TableSet::new(tables, Pooling::Sum) })
    }

    /// The values of a table, for changes.
    ///
    /// # Panics
    ///
    /// The table does not exist.
    #[must_use]
    pub fn values_mut(&mut self, table: usize) -> T::Values<'_> {
        self.tables[table].values_mut()
    }

    /// The values of all tables, for changes.
    pub fn all_values_mut(&mut self) -> impl Iterator<Item = T::Values<'_>> {
        self.tables.iter_mut().map(T::values_mut)
    }
}

impl<T> TableSet<T> {
    /// Sets the pooling of one table.
    ///
    /// # Errors
    ///
    /// The table does not exist.
    pub fn with_pooling(mut self, table: usize, pooling: Pooling) -> Result<TableSet<T>, EmbeddingError> {
        let tables = self.tables.len();
        *self.pooling.get_mut(table).ok_or(EmbeddingError::NoTable { table, tables })? = pooling;
        Ok(self)
    }

    /// Number of tables, T.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tables.len()
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Returns a table.
    ///
    /// # Panics
    ///
    /// The table does not exist.
    #[must_use]
    pub fn table(&self, table: usize) -> &T {
        &self.tables[table]
    }

    /// All tables.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.tables.iter()
    }

    /// The pooling of a table.
    ///
    /// # Panics
    ///
    /// The table does not exist.
    #[must_use]
    pub fn pooling(&self, table: usize) -> Pooling {
        self.pooling[table]
    }

    /// The first column of a table in the pooled output.
    ///
    /// # Panics
    ///
    /// The table does not exist.
    #[must_use]
    pub fn column(&self, table: usize) -> usize {
        self.columns[table]
    }

    /// Number of columns of the pooled output: the sum of all D.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns[self.tables.len()]
    }
}

impl<'t, T> IntoIterator for &'t TableSet<T> {
    type Item = &'t T;
    type IntoIter = std::slice::Iter<'t, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Columns for usize {
        type Values<'t> = ();

        fn dim(&self) -> usize {
            *self
        }

        fn values_mut(&mut self) {}
    }

    #[test]
    fn columns_lie_side_by_side() {
        let tables = TableSet::new(vec![3, 5], Pooling::Sum).with_pooling(1, Pooling::Max).unwrap();
        assert_eq!((tables.column(0), tables.column(1), tables.columns()), (0, 3, 8));
        let others = tables.try_map(|dim| Ok::<_, ()>(dim + 1)).unwrap();
        assert_eq!(
            (others.columns(), others.pooling(0), others.pooling(1)),
            (10, Pooling::Sum, Pooling::Max)
        );
        assert!(tables.try_map(|_| Err::<usize, _>(())).is_err());
        assert!(tables.with_pooling(2, Pooling::Sum).is_err());
    }

    #[test]
    fn columns_without_number_do_not_begin_anew() {
        let tables = TableSet::new(vec![usize::MAX, 1, 1], Pooling::Sum);
        assert_eq!((tables.column(2), tables.columns()), (usize::MAX, usize::MAX));
    }
}

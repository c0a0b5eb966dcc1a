//! Several tables that are looked up together.

use super::{EmbeddingError, Table};

/// What becomes of the rows of a bag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pooling {
    /// Their sum, in the order of the lookups; an empty bag gives 0.
    Sum,
    /// Their sum times `1 / L`, L being the lookups of the bag; an empty bag gives 0.
    Mean,
    /// The largest in each column; an empty bag gives 0. Takes no per-sample weights.
    Max,
    /// They stay apart: one row of the output for each lookup, bags are of no account.
    None,
}

/// Tables with the pooling of each, side by side in the output.
#[derive(Debug)]
pub struct Tables<'a> {
    tables: Vec<Table<'a>>,
    pooling: Vec<Pooling>,
    columns: Vec<usize>,
}

impl<'a> Tables<'a> {
    /// Tables that all pool alike.
    #[must_use]
    pub fn new(tables: Vec<Table<'a>>, pooling: Pooling) -> Tables<'a> {
        let mut columns = vec![0];
        columns.extend(tables.iter().scan(0, |end, table| {
            *end += table.dim();
            Some(*end)
        }));
        Tables { pooling: vec![pooling; tables.len()], tables, columns }
    }

    /// With another pooling for one table.
    ///
    /// # Errors
    ///
    /// There is no such table.
    pub fn with_pooling(mut self, table: usize, pooling: Pooling) -> Result<Tables<'a>, EmbeddingError> {
        let tables = self.tables.len();
        *self.pooling.get_mut(table).ok_or(EmbeddingError::NoTable { table, tables })? = pooling;
        Ok(self)
    }

    /// T.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tables.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// A table.
    ///
    /// # Panics
    ///
    /// There is no such table.
    #[must_use]
    pub fn table(&self, table: usize) -> &Table<'a> {
        &self.tables[table]
    }

    /// A table, to be changed.
    ///
    /// # Panics
    ///
    /// There is no such table.
    #[must_use]
    pub fn table_mut(&mut self, table: usize) -> &mut Table<'a> {
        &mut self.tables[table]
    }

    /// All tables.
    pub fn iter(&self) -> std::slice::Iter<'_, Table<'a>> {
        self.tables.iter()
    }

    /// All tables, to be changed.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Table<'a>> {
        self.tables.iter_mut()
    }

    /// The pooling of a table.
    ///
    /// # Panics
    ///
    /// There is no such table.
    #[must_use]
    pub fn pooling(&self, table: usize) -> Pooling {
        self.pooling[table]
    }

    /// The column of the pooled output where a table begins.
    ///
    /// # Panics
    ///
    /// There is no such table.
    #[must_use]
    pub fn column(&self, table: usize) -> usize {
        self.columns[table]
    }

    /// Columns of the pooled output: the sum of all D.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns[self.tables.len()]
    }
}

impl<'t, 'a> IntoIterator for &'t Tables<'a> {
    type Item = &'t Table<'a>;
    type IntoIter = std::slice::Iter<'t, Table<'a>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

//! Features of many calls, one row each.

/// Value of a missing feature: below every real one, so that a split can separate it.
pub const MISSING: f32 = -1e30;

/// Rows of features, all of one length.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    columns: usize,
    values: Vec<f32>,
}

impl Table {
    /// Creates a table without rows.
    #[must_use]
    pub fn new(columns: usize) -> Table {
        Table { columns, values: Vec::new() }
    }

    /// Adds the row that `fill` appends. Too few values are filled up with missing ones, too many are cut off;
    /// not-a-number and infinities become finite.
    pub fn push(&mut self, fill: impl FnOnce(&mut Vec<f32>)) {
        let start = self.values.len();
        fill(&mut self.values);
        self.values.resize(start + self.columns, MISSING);
        for value in &mut self.values[start..] {
            *value = if value.is_nan() { MISSING } else { value.clamp(MISSING, -MISSING) };
        }
    }

    /// Returns the number of features.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.values.len().checked_div(self.columns).unwrap_or(0)
    }

    /// Returns one row.
    #[must_use]
    pub fn row(&self, at: usize) -> &[f32] {
        &self.values[at * self.columns..(at + 1) * self.columns]
    }

    /// Returns the rows at these indices, in their order.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Table {
        let values = rows.iter().flat_map(|&at| self.row(at)).copied().collect();
        Table { columns: self.columns, values }
    }

    /// Returns all values of a feature.
    pub fn column(&self, at: usize) -> impl Iterator<Item = f32> {
        self.values.iter().skip(at).step_by(self.columns.max(1)).copied()
    }

    /// Returns the least and the greatest value of each feature; missing ones do not count. A feature that always misses
    /// has a range from zero to zero.
    #[must_use]
    pub fn ranges(&self) -> Vec<[f32; 2]> {
        let mut ranges = vec![[f32::INFINITY, f32::NEG_INFINITY]; self.columns];
        for row in self.values.chunks_exact(self.columns.max(1)) {
            for (range, &value) in ranges.iter_mut().zip(row).filter(|&(_, &value)| value != MISSING) {
                *range = [range[0].min(value), range[1].max(value)];
            }
        }
        ranges.iter_mut().filter(|range| range[0] > range[1]).for_each(|range| *range = [0.0, 0.0]);
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_made_finite_and_of_one_length() {
        let mut table = Table::new(2);
        table.push(|out| out.extend([f32::NAN, f32::INFINITY]));
        table.push(|out| out.push(1.0));
        table.push(|out| out.extend([3.0, 4.0, 5.0]));
        assert_eq!(table.rows(), 3);
        assert_eq!(table.row(0), [MISSING, -MISSING]);
        assert_eq!(table.row(1), [1.0, MISSING]);
        assert_eq!(table.row(2), [3.0, 4.0]);
        assert_eq!(table.ranges(), [[1.0, 3.0], [4.0, -MISSING]]);
        assert_eq!(table.select(&[2]).row(0), [3.0, 4.0]);
        assert_eq!(table.column(0).collect::<Vec<_>>(), [MISSING, 1.0, 3.0]);
    }
}

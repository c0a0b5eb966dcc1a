//! A few rows of tables that are too large to be copied, with the lookups that refer to them.

use steptime_ops::embedding::backward::{Decay, Gradient, RowRule, gradients_reference};
use steptime_ops::embedding::{Bounds, Lookups, Pooling, Table, Tables, forward_reference};

use super::batch::Shape;
use crate::Error;
use crate::difference::largest_error;
use crate::random::values;

/// Number of bags that are checked.
const BAGS: usize = 8;

/// The rows that some bags of a batch look up, with values of their own, and all lookups of the batch.
pub struct Excerpt<'a> {
    tables: Tables<'static>,
    /// The rows of each table, ascending: row `i` of a table here is row `rows[table][i]` of the whole table.
    rows: Vec<Vec<usize>>,
    /// The bags that look up these rows.
    bags: Vec<usize>,
    shape: &'a Shape,
    /// `[T, B, L]`.
    indices: &'a [i64],
}

impl<'a> Excerpt<'a> {
    /// Takes the rows of a few bags, spread evenly over a batch of `[T, B, L]` indices.
    pub fn new(shape: &'a Shape, indices: &'a [i64]) -> Result<Excerpt<'a>, Error> {
        let count = BAGS.min(shape.bags);
        let bags: Vec<usize> = (0..count).map(|at| at * shape.bags / count).collect();
        let mut rows = Vec::with_capacity(shape.rows.len());
        let mut tables = Vec::with_capacity(shape.rows.len());
        for table in 0..shape.rows.len() {
            let of_bag = |&bag: &usize| shape.bag(indices, table, bag).iter().map(|&index| index as usize);
            let mut wanted: Vec<usize> = bags.iter().flat_map(of_bag).collect();
            wanted.sort_unstable();
            wanted.dedup();
            // A table has at least one row.
            let mut cut = Table::zeros("excerpt", [wanted.len().max(1), shape.dim], shape.element)?;
            for (row, values) in values(wanted.len() * shape.dim, table as u64).chunks(shape.dim).enumerate()
            {
                cut.write_row(row, values);
            }
            tables.push(cut);
            rows.push(wanted);
        }
        Ok(Excerpt { tables: Tables::new(tables, Pooling::Sum), rows, bags, shape, indices })
    }

    /// Writes the rows to their places in the whole tables: `put` gets table, row and bytes.
    pub fn put(&self, mut put: impl FnMut(usize, usize, &[u8]) -> Result<(), Error>) -> Result<(), Error> {
        for (table, rows) in self.rows.iter().enumerate() {
            for (place, &row) in rows.iter().enumerate() {
                put(table, row, self.tables.table(table).row(place))?;
            }
        }
        Ok(())
    }

    /// Difference of the pooled output from the reference: `read` returns the row of a bag, `[D_0 + D_1 + ...]`.
    pub fn pooled_error(&self, mut read: impl FnMut(usize) -> Result<Vec<f32>, Error>) -> Result<f64, Error> {
        let (indices, offsets) = self.lookups(&self.bags);
        let columns = self.tables.columns();
        let mut expected = vec![0.0; self.bags.len() * columns];
        let lookups = Lookups::new(self.bags.len(), &indices[..], &offsets[..])?;
        forward_reference(&self.tables, &lookups, Bounds::Error, &mut expected, columns)?;
        let mut largest = 0.0_f64;
        for (&bag, expected) in self.bags.iter().zip(expected.chunks(columns)) {
            let found = read(bag)?;
            largest = largest.max(compared(&found, expected.iter().map(|&value| f64::from(value))));
        }
        Ok(largest)
    }

    /// Difference of rows from the reference after the first step of a rule, with the gradient `[B, D_0 + D_1 + ...]`
    /// of the pooled output: `read` returns a row of a table of floats.
    pub fn stepped_error(
        &self,
        (rule, lr): (RowRule, f32),
        gradient: &[f32],
        mut read: impl FnMut(usize, usize) -> Result<Vec<f32>, Error>,
    ) -> Result<f64, Error> {
        let (indices, offsets) = self.lookups(&(0..self.shape.bags).collect::<Vec<_>>());
        let lookups = Lookups::new(self.shape.bags, &indices[..], &offsets[..])?;
        let gradient = Gradient::new(gradient, self.tables.columns());
        let sums = gradients_reference(&self.tables, &lookups, Bounds::Error, &gradient)?;
        let mut largest = 0.0_f64;
        for (table, sums) in sums.iter().enumerate() {
            for (&place, sum) in sums {
                let mut row = vec![0.0; self.shape.dim];
                self.tables.table(table).read_row(place, &mut row);
                let mut row: Vec<f64> = row.into_iter().map(f64::from).collect();
                let mut state = vec![0.0; rule.state_width(row.len())];
                rule.reference(1, f64::from(lr), Decay::None, &mut row, &mut state, sum);
                let found = read(table, self.rows[table][place])?;
                largest = largest.max(compared(&found, row.into_iter()));
            }
        }
        Ok(largest)
    }

    /// The lookups of these bags that refer to rows here, and their offsets.
    fn lookups(&self, bags: &[usize]) -> (Vec<i64>, Vec<i64>) {
        let (mut indices, mut offsets) = (Vec::new(), vec![0]);
        for table in 0..self.rows.len() {
            for &bag in bags {
                let named = self.shape.bag(self.indices, table, bag).iter();
                indices.extend(named.filter_map(|&index| self.place(table, index)));
                offsets.push(indices.len() as i64);
            }
        }
        (indices, offsets)
    }

    /// Returns the row here for an index of the whole table, if it is in the excerpt.
    fn place(&self, table: usize, index: i64) -> Option<i64> {
        self.rows[table].binary_search(&(index as usize)).ok().map(|place| place as i64)
    }
}

/// The largest difference; infinite where the lengths differ.
fn compared(found: &[f32], expected: impl ExactSizeIterator<Item = f64>) -> f64 {
    if found.len() != expected.len() {
        return f64::INFINITY;
    }
    largest_error(found.iter().copied().zip(expected))
}

#[cfg(test)]
mod tests {
    use steptime_ops::Cpu;
    use steptime_ops::embedding::backward::RowOptimizer;
    use steptime_ops::embedding::group::Grouping;
    use steptime_ops::embedding::{Element, forward};

    use super::*;
    use crate::random::Random;

    /// Three tables of 60 rows and bags of 4 lookups, as in a GPU's memory; and a batch.
    struct Whole {
        shape: Shape,
        tables: Tables<'static>,
        indices: Vec<i64>,
        offsets: Vec<i64>,
        cpu: Cpu,
    }

    impl Whole {
        fn new(element: Element) -> Whole {
            let shape = Shape::new("", [3, 60, 10], 4, 21, element);
            let table = |at: u64| {
                let mut table = Table::zeros("whole", [60, 10], element).unwrap();
                (0..60).for_each(|row| _ = table.write_row(row, &values(10, 100 * at + row as u64)));
                table
            };
            let tables = Tables::new((0..3).map(table).collect(), Pooling::Sum);
            let mut random = Random::new(3);
            let indices = (0..3 * 21 * 4).map(|_| (random.bits() % 60) as i64).collect();
            let offsets = (0..=3 * 21).map(|bag| 4 * bag).collect();
            Whole { shape, tables, indices, offsets, cpu: Cpu::new(2).unwrap() }
        }

        fn put(&mut self, excerpt: &Excerpt<'_>) {
            let put = |table: usize, row: usize, bytes: &[u8]| {
                self.tables.values_mut(table).row_mut(row).unwrap().copy_from_slice(bytes);
                Ok(())
            };
            excerpt.put(put).unwrap();
        }
    }

    #[test]
    fn bags_of_the_whole_are_those_of_the_excerpt() {
        for element in Element::ALL {
            let mut whole = Whole::new(element);
            let (shape, indices) = (whole.shape.clone(), whole.indices.clone());
            let excerpt = Excerpt::new(&shape, &indices).unwrap();
            whole.put(&excerpt);
            let lookups = Lookups::new(21, &whole.indices[..], &whole.offsets[..]).unwrap();
            let mut out = vec![0.0; 21 * 30];
            forward(&whole.cpu, &whole.tables, &lookups, Bounds::Error, &mut out, 30).unwrap();
            let row = |out: &[f32], bag: usize| Ok(out[bag * 30..][..30].to_vec());
            let error = excerpt.pooled_error(|bag| row(&out, bag)).unwrap();
            assert!(error < 1e-5, "{element}: {error}");
            // The last bag that is checked, wrong in the last column of the last table.
            out[excerpt.bags[BAGS - 1] * 30 + 29] += 0.01;
            let error = excerpt.pooled_error(|bag| row(&out, bag)).unwrap();
            assert!(error > 1e-3, "{element}: {error}");
            assert_eq!(excerpt.pooled_error(|_| Ok(Vec::new())).unwrap(), f64::INFINITY);
        }
    }

    #[test]
    fn rows_of_the_whole_take_the_step_of_the_excerpt() {
        for rule in [RowRule::SGD, RowRule::ROW_WISE_ADAGRAD, RowRule::ADAM] {
            let mut whole = Whole::new(Element::F32);
            let (shape, indices) = (whole.shape.clone(), whole.indices.clone());
            let excerpt = Excerpt::new(&shape, &indices).unwrap();
            whole.put(&excerpt);
            let Whole { cpu, mut tables, offsets, .. } = whole;
            let lookups = Lookups::new(21, &indices[..], &offsets[..]).unwrap();
            let gradient = values(21 * 30, 9);
            let read = |tables: &Tables<'_>, table: usize, row: usize| {
                let mut values = vec![0.0; 10];
                tables.table(table).read_row(row, &mut values);
                Ok(values)
            };
            let step = (rule, 0.01);
            let before =
                excerpt.stepped_error(step, &gradient, |table, row| read(&tables, table, row)).unwrap();
            assert!(before > 1e-3, "a step that was not taken is seen: {before}");
            let mut optimizer = RowOptimizer::new(rule, 0.01, &tables).unwrap();
            let mut grouping = Grouping::new();
            grouping.group(&cpu, &tables, &lookups, Bounds::Error).unwrap();
            let of = Gradient::new(&gradient, 30);
            optimizer.step(&cpu, &mut tables, &lookups, &grouping, Bounds::Error, &of).unwrap();
            let after =
                excerpt.stepped_error(step, &gradient, |table, row| read(&tables, table, row)).unwrap();
            assert!(after < 1e-5, "{rule:?}: {after}");
        }
    }
}

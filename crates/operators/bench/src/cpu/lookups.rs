//! Tables and fresh lookups, for gather, bags and their gradients.

use steptime_ops::embedding::{Element, EmbeddingError, Lookups, Table, WeightsMut};

use crate::Error;
use crate::Init;
use crate::random::{Random, fill};
use crate::sizes::{Sizes, check_memory};

/// Tables of one D with bags of one length.
pub struct Shape {
    /// Rows of each table, E.
    pub rows: Vec<usize>,
    /// Columns, D.
    pub dim: usize,
    /// Bags of each table, B.
    pub bags: usize,
    /// Lookups of each bag, L.
    pub lookups: usize,
}

impl Shape {
    /// Reads `T`, `E`, `D`, `B`, `L`. Fails where they do not fit memory. The check comes before the list of tables is
    /// made, which may itself be too long.
    pub fn read(sizes: &Sizes) -> Result<Shape, Error> {
        let [tables, rows, dim, bags, lookups] = ["T", "E", "D", "B", "L"].map(|key| sizes.get(key));
        check_room_for(&[tables, rows], tables, [dim, bags, lookups], 0)?;
        Ok(Shape { rows: vec![rows; tables], dim, bags, lookups })
    }

    /// Returns the sizes by letter; E is that of the largest table.
    pub fn sizes(&self) -> Sizes {
        let rows = self.rows.iter().copied().max().unwrap_or(0);
        let (tables, Shape { dim, bags, lookups, .. }) = (self.rows.len(), self);
        Sizes::new([("T", tables), ("E", rows), ("D", *dim), ("B", *bags), ("L", *lookups)])
    }

    /// Number of lookups of all tables, N.
    pub fn count(&self) -> usize {
        self.rows.len() * self.bags * self.lookups
    }

    /// Bytes of all tables.
    pub fn table_bytes(&self) -> usize {
        self.rows.iter().sum::<usize>() * Element::F32.pitch(self.dim)
    }

    /// Returns the filled tables; `state` is the number of floats that an optimizer keeps for each row.
    pub fn tables(&self, state: usize) -> Result<Vec<Table<'static>>, Error> {
        let rows = self.rows.iter().fold(0, |sum: usize, &rows| sum.saturating_add(rows));
        check_room_for(&[rows], self.rows.len(), [self.dim, self.bags, self.lookups], state)?;
        let one = |(at, &rows): (usize, &usize)| table(&format!("table {at}"), rows, self.dim);
        self.rows.iter().enumerate().map(one).collect()
    }
}

/// Floats of a memory page, the least that a table takes.
const PAGE: usize = 1024;

/// Fails unless memory has room for tables, given as factors of their rows, with `state` floats of state for each row,
/// and for a batch: offsets, two copies of the indices, and two outputs.
fn check_room_for(
    rows: &[usize],
    tables: usize,
    [dim, bags, lookups]: [usize; 3],
    state: usize,
) -> Result<(), Error> {
    let floats = [rows, &[dim.saturating_add(state)]].concat();
    let (pages, row) = ([tables, PAGE], [dim]);
    let (offsets, indices) = ([tables, bags, 2], [tables, bags, lookups, 4]);
    check_memory(&[&floats, &pages, &row, &offsets, &indices, &[tables, bags, dim, 2]])
}

/// A filled table.
pub fn table(name: &str, rows: usize, dim: usize) -> Result<Table<'static>, Error> {
    let mut table = Table::zeros(name, [rows, dim], Element::F32)?;
    if let (WeightsMut::F32(values), _) = table.weights_mut()? {
        fill(values, rows as u64 ^ ((name.len() as u64) << 40));
    }
    Ok(table)
}

/// Lookups of all tables, drawn again for each call.
pub struct Batch {
    init: Init,
    random: Random,
    bags: usize,
    indices: Vec<i64>,
    offsets: Vec<i64>,
}

impl Batch {
    /// Draws the first lookups.
    pub fn new(init: Init, shape: &Shape) -> Batch {
        let step = shape.lookups as i64;
        let offsets = (0..=(shape.rows.len() * shape.bags) as i64).map(|bag| bag * step).collect();
        let mut batch = Batch {
            init,
            random: Random::new(42),
            bags: shape.bags,
            indices: vec![0; shape.count()],
            offsets,
        };
        batch.draw(shape);
        batch
    }

    /// Draws the next lookups.
    pub fn draw(&mut self, shape: &Shape) {
        let each = (shape.bags * shape.lookups).max(1);
        for (indices, &rows) in self.indices.chunks_mut(each).zip(&shape.rows) {
            indices.fill_with(|| self.random.index(self.init, rows) as i64);
        }
    }

    /// The indices.
    pub fn indices(&self) -> &[i64] {
        &self.indices
    }

    /// Converts to the lookups of the operators.
    pub fn lookups(&self) -> Result<Lookups<'_>, EmbeddingError> {
        Lookups::new(self.bags, &self.indices[..], &self.offsets[..])
    }

    /// Number of distinct rows of all tables, U.
    pub fn distinct(&self, shape: &Shape) -> u64 {
        let each = (shape.bags * shape.lookups).max(1);
        let count = |indices: &[i64]| {
            let mut indices = indices.to_vec();
            indices.sort_unstable();
            indices.dedup();
            indices.len() as u64
        };
        self.indices.chunks(each).map(count).sum()
    }

    /// Bytes of indices and offsets.
    pub fn bytes(&self) -> u64 {
        8 * (self.indices.len() + self.offsets.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_memory_holds_is_refused_before_it_is_asked_for() {
        let most = u32::MAX as usize;
        let of = |sizes: [usize; 5]| {
            let [tables, rows, dim, bags, lookups] = sizes;
            Shape::read(&Sizes::new([("T", tables), ("E", rows), ("D", dim), ("B", bags), ("L", lookups)]))
        };
        assert_eq!(of([3, 10, 2, 4, 5]).unwrap_or_else(|_| panic!("it fits")).rows, [10; 3]);
        // Products of these sizes wrap around in 64 bits.
        for sizes in [
            [most, 1, 1, 1, 1],
            [1, most, most, 1, 1],
            [2, 1, 1, 1 << 31, 1 << 31],
            [1 << 31, 1, 1, 1 << 31, 4],
        ] {
            let error = of(sizes).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains("make it smaller"), "{sizes:?}: {error}");
        }
    }
}

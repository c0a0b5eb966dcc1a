//! Placement of a model on GPUs: the rows of its tables.

use serde::Deserialize;

/// The GPUs of a job, in the layout of the file. Dense layers are replicated on all of them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parallel {
    /// Number of GPUs, with one rank on each.
    pub(super) gpus: i64,
    /// For each GPU the indices of its tables. A table on several GPUs is cut by columns.
    pub(super) placement: Option<Vec<Vec<i64>>>,
    /// Tables whose rows are cut over all GPUs.
    #[serde(default)]
    pub(super) row_wise: Vec<i64>,
    /// Tables that every GPU has.
    #[serde(default)]
    pub(super) data_parallel: Vec<i64>,
    /// Tables cut into groups of columns, with the rows of each group cut over some GPUs.
    #[serde(default)]
    pub(super) grid: Vec<Grid>,
    /// Number of nodes, each with the same number of GPUs.
    pub(super) nodes: Option<i64>,
    /// Placement of all tables, where it is given directly.
    #[serde(skip)]
    pub(super) homes: Option<Vec<TableLayout>>,
}

/// A table, with the GPUs of each group of its columns, over which their rows are cut.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Grid {
    pub(super) table: i64,
    pub(super) gpus: Vec<Vec<i64>>,
}

/// Placement of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableLayout {
    /// The whole table on every GPU.
    Everywhere,
    /// Cut into parts.
    Parts(Vec<TableShard>),
}

/// Kind of placement of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharding {
    /// The whole table on every GPU.
    Copies,
    /// The whole table on one GPU.
    Whole,
    /// Cut by columns.
    Columns,
    /// Cut by rows over all GPUs.
    Rows,
    /// Cut by rows over some GPUs; with several groups of GPUs, first by columns.
    Grid,
}

/// A part of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableShard {
    /// GPU of the part.
    pub gpu: u32,
    /// First row and first column.
    pub offset: [i64; 2],
    /// Number of rows and columns.
    pub size: [i64; 2],
    /// Cache on the GPU, where all rows are in host memory; `None` where the GPU has the rows.
    pub cache: Option<Cache>,
    /// Lookups per step in its rows, of all ranks together; `None`: in proportion to its rows, as for equally popular rows, or scattered popular
    /// ones.
    pub wanted: Option<i64>,
}

/// Rows of a part cached on the GPU, with all rows in host memory: the recently looked-up ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cache {
    /// Number of cached rows.
    pub rows: i64,
    /// Looked-up rows per step that are not cached: they are loaded from the host, and the same number of changed rows is written back.
    pub misses: i64,
}

impl TableShard {
    /// Lookups per step in the part, given `all` lookups in a table of `rows` rows.
    #[must_use]
    pub fn lookups(&self, all: i64, rows: i64) -> i64 {
        let in_proportion = i128::from(all) * i128::from(self.size[0]) / i128::from(rows.max(1));
        self.wanted.unwrap_or_else(|| i64::try_from(in_proportion).unwrap_or(all)).clamp(0, all)
    }

    /// Number of its rows in the GPU's memory.
    #[must_use]
    pub fn rows_on_gpu(&self) -> i64 {
        self.cache.map_or(self.size[0], |cache| cache.rows)
    }
}

impl Parallel {
    /// A placement on this number of GPUs; settings of tables stay where they can.
    pub(super) fn new(gpus: u32, old: Option<Parallel>) -> Parallel {
        let (row_wise, data_parallel, nodes) = match old {
            Some(old) => {
                let same = old.gpus == i64::from(gpus);
                (old.row_wise, old.data_parallel, old.nodes.filter(|_| same))
            }
            None => Default::default(),
        };
        let gpus = i64::from(gpus);
        Parallel { gpus, placement: None, row_wise, data_parallel, grid: Vec::new(), nodes, homes: None }
    }
}

impl TableLayout {
    /// The whole table on one GPU.
    #[must_use]
    pub fn whole(gpu: u32, rows: i64, columns: i64) -> TableLayout {
        TableLayout::Parts(vec![TableShard {
            gpu,
            offset: [0, 0],
            size: [rows, columns],
            cache: None,
            wanted: None,
        }])
    }

    /// Columns cut as evenly as possible, in multiples of four where every GPU then gets some.
    #[must_use]
    pub fn by_columns(gpus: &[u32], rows: i64, columns: i64) -> TableLayout {
        let grain = if columns / 4 >= gpus.len() as i64 { 4 } else { 1 };
        let cuts = cuts(columns / grain, gpus.len());
        let part = |(&gpu, (first, count)): (&u32, (i64, i64))| {
            let count =
                if (first + count) == columns / grain { columns - first * grain } else { count * grain };
            TableShard { gpu, offset: [0, first * grain], size: [rows, count], cache: None, wanted: None }
        };
        TableLayout::Parts(gpus.iter().zip(cuts).map(part).collect())
    }

    /// Rows cut over all GPUs, with the same number on each except the last ones.
    #[must_use]
    pub fn by_rows(gpus: u32, rows: i64, columns: i64) -> TableLayout {
        TableLayout::by_grid(&[(0..gpus).collect()], rows, columns)
    }

    /// Columns cut over groups of GPUs, with the rows of each group cut over its GPUs.
    #[must_use]
    pub fn by_grid(groups: &[Vec<u32>], rows: i64, columns: i64) -> TableLayout {
        let firsts: Vec<u32> = (0..).take(groups.len()).collect();
        let TableLayout::Parts(bands) = TableLayout::by_columns(&firsts, rows, columns) else {
            return TableLayout::Everywhere;
        };
        let band = |(band, gpus): (&TableShard, &Vec<u32>)| {
            let each = (rows + gpus.len() as i64 - 1) / (gpus.len() as i64).max(1);
            let (column, width) = (band.offset[1], band.size[1]);
            let part = move |(at, &gpu): (usize, &u32)| {
                let first = (at as i64 * each).min(rows);
                TableShard {
                    gpu,
                    offset: [first, column],
                    size: [each.min(rows - first), width],
                    cache: None,
                    wanted: None,
                }
            };
            gpus.iter().enumerate().map(part).collect::<Vec<TableShard>>()
        };
        TableLayout::Parts(bands.iter().zip(groups).flat_map(band).collect())
    }

    /// The same placement, with the cache that `of` returns for each part; `None` for a part on the GPU. Replicated tables stay.
    #[must_use]
    pub fn cached(self, of: impl Fn(&TableShard) -> Option<Cache>) -> TableLayout {
        match self {
            TableLayout::Everywhere => TableLayout::Everywhere,
            TableLayout::Parts(parts) => TableLayout::Parts(
                parts.into_iter().map(|part| TableShard { cache: of(&part), ..part }).collect(),
            ),
        }
    }

    /// The parts in host memory, each with its cache.
    pub fn caches(&self) -> impl Iterator<Item = (&TableShard, Cache)> {
        let parts = match self {
            TableLayout::Everywhere => &[][..],
            TableLayout::Parts(parts) => parts,
        };
        parts.iter().filter_map(|part| Some((part, part.cache?)))
    }

    /// The same placement, with the lookups per step of each part. Replicated tables stay.
    #[must_use]
    pub fn wanted(self, of: impl Fn(&TableShard) -> Option<i64>) -> TableLayout {
        match self {
            TableLayout::Everywhere => TableLayout::Everywhere,
            TableLayout::Parts(parts) => TableLayout::Parts(
                parts.into_iter().map(|part| TableShard { wanted: of(&part), ..part }).collect(),
            ),
        }
    }

    /// Kind of placement, in a job of this number of GPUs.
    #[must_use]
    pub fn cutting(&self, gpus: u32) -> Sharding {
        let TableLayout::Parts(parts) = self else { return Sharding::Copies };
        let by_rows = parts.iter().any(|part| part.offset[0] > 0);
        let of_one_band = parts.iter().all(|part| part.offset[1] == 0);
        match parts.len() {
            0 | 1 => Sharding::Whole,
            all if by_rows && of_one_band && all == gpus as usize => Sharding::Rows,
            _ if by_rows => Sharding::Grid,
            _ => Sharding::Columns,
        }
    }

    /// Number of parts into which the rows of a part's columns are cut.
    #[must_use]
    pub fn over(&self, of: &TableShard) -> i64 {
        match self {
            TableLayout::Everywhere => 1,
            TableLayout::Parts(parts) => {
                parts.iter().filter(|part| part.offset[1] == of.offset[1]).count() as i64
            }
        }
    }
}

/// Begins and lengths of a number of even pieces.
fn cuts(length: i64, pieces: usize) -> impl Iterator<Item = (i64, i64)> {
    let pieces = pieces.max(1) as i64;
    (0..pieces).map(move |at| {
        let (first, next) = (at * length / pieces, (at + 1) * length / pieces);
        (first, next - first)
    })
}

//! How a model is spread over GPUs: where the rows of its tables are.

use serde::Deserialize;

/// The GPUs of a job, as they stand in the file. Dense layers are on all of them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parallel {
    /// How many, one rank on each.
    pub(super) gpus: i64,
    /// For each GPU the tables that lie on it, by their numbers. A table that lies on several is cut into columns.
    pub(super) placement: Option<Vec<Vec<i64>>>,
    /// Tables whose rows are cut into as many parts as there are GPUs.
    #[serde(default)]
    pub(super) row_wise: Vec<i64>,
    /// Tables that every GPU has.
    #[serde(default)]
    pub(super) data_parallel: Vec<i64>,
    /// Tables cut into groups of columns, the rows of each over some GPUs.
    #[serde(default)]
    pub(super) grid: Vec<Grid>,
    /// How many machines they are in, as many in each.
    pub(super) nodes: Option<i64>,
    /// Where tables are, however that was found.
    #[serde(skip)]
    pub(super) homes: Option<Vec<Home>>,
}

/// A table, and for each group of its columns the GPUs over which their rows are cut.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Grid {
    pub(super) table: i64,
    pub(super) gpus: Vec<Vec<i64>>,
}

/// Where the rows of a table are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Home {
    /// On every GPU, all of them.
    Everywhere,
    /// In parts.
    Parts(Vec<Part>),
}

/// How a table is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cutting {
    /// Every GPU has all of it.
    Copies,
    /// It lies whole on one GPU.
    Whole,
    /// Into columns.
    Columns,
    /// Into rows over all GPUs.
    Rows,
    /// Into rows over some GPUs; into columns before that, where there are several groups of GPUs.
    Grid,
}

/// A part of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The GPU that it lies on.
    pub gpu: u32,
    /// Its first row and its first column.
    pub offset: [i64; 2],
    /// How many rows and columns it has.
    pub size: [i64; 2],
    /// What of its rows the GPU holds, where all lie in its host's memory; `None` where the GPU has them.
    pub cache: Option<Cache>,
    /// Lookups of a step in its rows, all ranks together; `None`: in proportion to its rows, as where all rows are equally popular, or
    /// popular ones are scattered.
    pub wanted: Option<i64>,
}

/// Rows of a part in the GPU's memory, where all lie in the host's: those that batches wanted of late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cache {
    /// How many rows it holds.
    pub rows: i64,
    /// How many rows a step wants that it does not hold: they come from the host, and as many that were changed go back.
    pub misses: i64,
}

impl Part {
    /// Lookups of a step in it, of `all` in a table of `rows` rows.
    #[must_use]
    pub fn lookups(&self, all: i64, rows: i64) -> i64 {
        let in_proportion = i128::from(all) * i128::from(self.size[0]) / i128::from(rows.max(1));
        self.wanted.unwrap_or_else(|| i64::try_from(in_proportion).unwrap_or(all)).clamp(0, all)
    }

    /// How many rows of it are in the GPU's memory.
    #[must_use]
    pub fn held(&self) -> i64 {
        self.cache.map_or(self.size[0], |cache| cache.rows)
    }
}

impl Parallel {
    /// So many GPUs; what is said of tables stays where it can.
    pub(super) fn of(gpus: u32, old: Option<Parallel>) -> Parallel {
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

impl Home {
    /// On one GPU.
    #[must_use]
    pub fn whole(gpu: u32, rows: i64, columns: i64) -> Home {
        Home::Parts(vec![Part { gpu, offset: [0, 0], size: [rows, columns], cache: None, wanted: None }])
    }

    /// Columns cut as evenly as they go, in multiples of four where that leaves something to each.
    #[must_use]
    pub fn by_columns(gpus: &[u32], rows: i64, columns: i64) -> Home {
        let grain = if columns / 4 >= gpus.len() as i64 { 4 } else { 1 };
        let cuts = cuts(columns / grain, gpus.len());
        let part = |(&gpu, (first, count)): (&u32, (i64, i64))| {
            let count =
                if (first + count) == columns / grain { columns - first * grain } else { count * grain };
            Part { gpu, offset: [0, first * grain], size: [rows, count], cache: None, wanted: None }
        };
        Home::Parts(gpus.iter().zip(cuts).map(part).collect())
    }

    /// Rows cut over all GPUs, each having as many but the last.
    #[must_use]
    pub fn by_rows(gpus: u32, rows: i64, columns: i64) -> Home {
        Home::by_grid(&[(0..gpus).collect()], rows, columns)
    }

    /// Columns cut over groups of GPUs, the rows of each over the GPUs of its group.
    #[must_use]
    pub fn by_grid(groups: &[Vec<u32>], rows: i64, columns: i64) -> Home {
        let firsts: Vec<u32> = (0..).take(groups.len()).collect();
        let Home::Parts(bands) = Home::by_columns(&firsts, rows, columns) else { return Home::Everywhere };
        let band = |(band, gpus): (&Part, &Vec<u32>)| {
            let each = (rows + gpus.len() as i64 - 1) / (gpus.len() as i64).max(1);
            let (column, width) = (band.offset[1], band.size[1]);
            let part = move |(at, &gpu): (usize, &u32)| {
                let first = (at as i64 * each).min(rows);
                Part {
                    gpu,
                    offset: [first, column],
                    size: [each.min(rows - first), width],
                    cache: None,
                    wanted: None,
                }
            };
            gpus.iter().enumerate().map(part).collect::<Vec<Part>>()
        };
        Home::Parts(bands.iter().zip(groups).flat_map(band).collect())
    }

    /// The same, each part in its host's memory behind a cache, as it is told of it; none where it is told of none. Copies stay.
    #[must_use]
    pub fn cached(self, of: impl Fn(&Part) -> Option<Cache>) -> Home {
        match self {
            Home::Everywhere => Home::Everywhere,
            Home::Parts(parts) => {
                Home::Parts(parts.into_iter().map(|part| Part { cache: of(&part), ..part }).collect())
            }
        }
    }

    /// Its parts that lie in hosts' memory, each with its cache.
    pub fn caches(&self) -> impl Iterator<Item = (&Part, Cache)> {
        let parts = match self {
            Home::Everywhere => &[][..],
            Home::Parts(parts) => parts,
        };
        parts.iter().filter_map(|part| Some((part, part.cache?)))
    }

    /// The same, with the lookups of a step in each part. Copies stay.
    #[must_use]
    pub fn wanted(self, of: impl Fn(&Part) -> Option<i64>) -> Home {
        match self {
            Home::Everywhere => Home::Everywhere,
            Home::Parts(parts) => {
                Home::Parts(parts.into_iter().map(|part| Part { wanted: of(&part), ..part }).collect())
            }
        }
    }

    /// How it is cut, in a job of so many GPUs.
    #[must_use]
    pub fn cutting(&self, gpus: u32) -> Cutting {
        let Home::Parts(parts) = self else { return Cutting::Copies };
        let by_rows = parts.iter().any(|part| part.offset[0] > 0);
        let of_one_band = parts.iter().all(|part| part.offset[1] == 0);
        match parts.len() {
            0 | 1 => Cutting::Whole,
            all if by_rows && of_one_band && all == gpus as usize => Cutting::Rows,
            _ if by_rows => Cutting::Grid,
            _ => Cutting::Columns,
        }
    }

    /// Into how many parts the rows of a part's columns are cut.
    #[must_use]
    pub fn over(&self, of: &Part) -> i64 {
        match self {
            Home::Everywhere => 1,
            Home::Parts(parts) => parts.iter().filter(|part| part.offset[1] == of.offset[1]).count() as i64,
        }
    }
}

/// Where each of so many even pieces begins, and how long it is.
fn cuts(length: i64, pieces: usize) -> impl Iterator<Item = (i64, i64)> {
    let pieces = pieces.max(1) as i64;
    (0..pieces).map(move |at| {
        let (first, next) = (at * length / pieces, (at + 1) * length / pieces);
        (first, next - first)
    })
}

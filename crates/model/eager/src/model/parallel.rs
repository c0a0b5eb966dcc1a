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
    /// Where tables are, however that was found.
    #[serde(skip)]
    pub(super) homes: Option<Vec<Home>>,
}

/// Where the rows of a table are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Home {
    /// On every GPU, all of them.
    Everywhere,
    /// In parts.
    Parts(Vec<Part>),
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
}

impl Parallel {
    /// So many GPUs; what is said of tables stays where it can.
    pub(super) fn of(gpus: u32, old: Option<Parallel>) -> Parallel {
        let (row_wise, data_parallel) =
            old.map_or_else(Default::default, |old| (old.row_wise, old.data_parallel));
        Parallel { gpus: i64::from(gpus), placement: None, row_wise, data_parallel, homes: None }
    }
}

impl Home {
    /// On one GPU.
    #[must_use]
    pub fn whole(gpu: u32, rows: i64, columns: i64) -> Home {
        Home::Parts(vec![Part { gpu, offset: [0, 0], size: [rows, columns] }])
    }

    /// Columns cut as evenly as they go, in multiples of four where that leaves something to each.
    #[must_use]
    pub fn by_columns(gpus: &[u32], rows: i64, columns: i64) -> Home {
        let grain = if columns / 4 >= gpus.len() as i64 { 4 } else { 1 };
        let cuts = cuts(columns / grain, gpus.len());
        let part = |(&gpu, (first, count)): (&u32, (i64, i64))| {
            let count =
                if (first + count) == columns / grain { columns - first * grain } else { count * grain };
            Part { gpu, offset: [0, first * grain], size: [rows, count] }
        };
        Home::Parts(gpus.iter().zip(cuts).map(part).collect())
    }

    /// Rows cut over all GPUs, each having as many but the last.
    #[must_use]
    pub fn by_rows(gpus: u32, rows: i64, columns: i64) -> Home {
        let each = (rows + i64::from(gpus) - 1) / i64::from(gpus).max(1);
        let part = |gpu: u32| {
            let first = (i64::from(gpu) * each).min(rows);
            Part { gpu, offset: [first, 0], size: [each.min(rows - first), columns] }
        };
        Home::Parts((0..gpus).map(part).collect())
    }

    /// Whether its rows are cut.
    #[must_use]
    pub fn is_by_rows(&self) -> bool {
        match self {
            Home::Everywhere => false,
            Home::Parts(parts) => parts.iter().any(|part| part.offset[0] > 0),
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

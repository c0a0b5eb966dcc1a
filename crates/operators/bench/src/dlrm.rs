//! The sizes of three DLRMs: the default of the benchmark, MLPerf's, and that of its distributed version.

/// A model.
pub struct Dlrm {
    /// Name of the model.
    pub name: &'static str,
    /// Rows of each table, E.
    pub rows: &'static [usize],
    /// Columns of all tables, D.
    pub dim: usize,
    /// Lookups of each bag, L.
    pub lookups: usize,
    /// K and N of each linear layer; the last ends in a sigmoid, the others in a rectifier.
    pub layers: &'static [(usize, usize)],
}

/// Number of samples of a batch.
pub const BATCH: usize = 2048;

/// Rows of Criteo Kaggle's tables.
pub const CRITEO: [usize; 26] = [
    1460, 583, 10_131_227, 2_202_608, 305, 24, 12_517, 633, 3, 93_145, 5683, 8_351_593, 3194, 27, 14_992,
    5_461_306, 10, 5652, 2173, 4, 7_046_547, 18, 15, 286_181, 105, 142_572,
];

/// All three.
pub const ALL: [Dlrm; 3] = [
    Dlrm {
        name: "default",
        rows: &[1_000_000; 8],
        dim: 64,
        lookups: 10,
        layers: &[(512, 512), (512, 64), (100, 1024), (1024, 1024), (1024, 1024), (1024, 1)],
    },
    Dlrm {
        name: "MLPerf",
        rows: &CRITEO,
        dim: 128,
        lookups: 1,
        layers: &[
            (13, 512),
            (512, 256),
            (256, 128),
            (479, 1024),
            (1024, 1024),
            (1024, 512),
            (512, 256),
            (256, 1),
        ],
    },
    Dlrm {
        name: "DDP",
        rows: &[80_000; 8],
        dim: 128,
        lookups: 20,
        layers: &[
            (128, 128),
            (128, 128),
            (128, 128),
            (164, 512),
            (512, 512),
            (512, 512),
            (512, 256),
            (256, 1),
        ],
    },
];

impl Dlrm {
    /// Rows of each table, E, limited to `most`.
    pub fn rows_up_to(&self, most: usize) -> Vec<usize> {
        self.rows.iter().map(|&rows| rows.min(most)).collect()
    }

    /// Name, with the row limit if that shortens any table.
    pub fn name_up_to(&self, most: usize) -> String {
        match self.rows.iter().any(|&rows| rows > most) {
            true => format!("{}, E <= {most}", self.name),
            false => self.name.to_owned(),
        }
    }

    /// Number of vectors that interact, F.
    pub fn features(&self) -> usize {
        self.rows.len() + 1
    }
}

//! Pseudo-random rows with all kinds of columns, and their expected batches.

use std::path::Path;
use std::sync::Arc;

use steptime_dataset::{
    Batch, Block, Categorical, Column, Dataset, Dense, DenseType, Error, Features, Hotness, IdRule, Rows,
    Selection, Slots, Source, Splits, Writer,
};

/// Rows in memory: dense values exact in 16 bits, indices of `u8`, `u16`, `i32`, three-hot and ragged columns.
pub struct Drawn {
    pub features: Features,
    pub label: Vec<f32>,
    pub dense: Vec<f32>,
    pub values: Vec<Vec<i32>>,
    pub lengths: Vec<Option<Vec<u32>>>,
}

/// One row: label, dense values, indices of each column.
pub type Row = (f32, Vec<f32>, Vec<Vec<i32>>);

/// `SplitMix64`.
pub fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |below| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % below
    }
}

impl Drawn {
    pub fn new(rows: usize, dense: usize, r#type: DenseType, seed: u64) -> Drawn {
        let mut random = random(seed);
        let dense_columns = Dense {
            columns: (0..dense).map(|column| format!("d{column}")).collect(),
            r#type,
            file: "dense.bin".to_owned(),
            ..Dense::default()
        };
        let kinds = [
            (200, Hotness::Fixed(1)),
            (60_000, Hotness::Fixed(1)),
            (1 << 30, Hotness::Fixed(1)),
            (256, Hotness::Fixed(3)),
            (70_000, Hotness::Ragged),
            (9, Hotness::Ragged),
        ];
        let column = |(place, &(cardinality, hotness)): (usize, &(u32, Hotness))| {
            Categorical::new(&format!("c/{place} ü"), cardinality, hotness, place)
        };
        let categorical: Vec<_> = kinds.iter().enumerate().map(column).collect();
        let (mut values, mut lengths) = (Vec::new(), Vec::new());
        for (cardinality, hotness) in kinds {
            let own: Option<Vec<u32>> =
                (hotness == Hotness::Ragged).then(|| (0..rows).map(|_| random(5) as u32).collect());
            let count = match (hotness, &own) {
                (Hotness::Fixed(hotness), _) => rows * hotness as usize,
                (_, lengths) => lengths.iter().flatten().sum::<u32>() as usize,
            };
            values.push((0..count).map(|_| random(cardinality.into()) as i32).collect());
            lengths.push(own);
        }
        Drawn {
            features: Features::new(IdRule::Stored, "click", dense_columns, categorical),
            label: (0..rows).map(|_| random(2) as f32).collect(),
            dense: (0..rows * dense).map(|_| random(2048) as f32 / 16.0).collect(),
            values,
            lengths,
        }
    }

    /// Writes rows in blocks of any length; the last `validation` rows are for validation.
    pub fn write(&self, place: &Path, blocks: usize, validation: usize) -> Dataset {
        let (rows, dense) = (self.label.len(), self.features.dense.columns.len());
        let mut writer = Writer::create(place, self.features.clone()).expect("a new folder");
        let mut starts = vec![0; self.values.len()];
        for from in (0..rows).step_by(blocks) {
            let to = rows.min(from + blocks);
            let mut ends = starts.clone();
            let mut categorical = Vec::new();
            for (column, values) in self.values.iter().enumerate() {
                let lengths = self.lengths[column].as_ref().map(|lengths| &lengths[from..to]);
                ends[column] += match (self.features.categorical[column].hotness, lengths) {
                    (Hotness::Fixed(hotness), _) => (to - from) * hotness as usize,
                    (_, lengths) => lengths.into_iter().flatten().sum::<u32>() as usize,
                };
                categorical.push(Column { values: &values[starts[column]..ends[column]], lengths });
            }
            let label = &self.label[from..to];
            let dense = &self.dense[from * dense..to * dense];
            let block = Block::encode(&self.features, &Rows { label, dense, categorical }).expect("rows");
            writer.append(&block).expect("written");
            starts = ends;
        }
        let train = (rows - validation) as u64;
        writer.finish(Splits { train: [0, train], validation: [train, rows as u64] }).expect("complete");
        Dataset::open(place).expect("a dataset")
    }

    /// Rows with these columns as a source.
    pub fn source(&self, rows: Vec<Row>) -> Arc<InMemory> {
        Arc::new(InMemory { features: self.features.clone(), rows })
    }

    pub fn rows(&self) -> Vec<Row> {
        let dense = self.features.dense.columns.len();
        let mut starts = vec![0; self.values.len()];
        let row = |row: usize| {
            let indices = |column: usize| {
                let length = match (self.features.categorical[column].hotness, &self.lengths[column]) {
                    (Hotness::Fixed(hotness), _) => hotness as usize,
                    (_, lengths) => lengths.as_ref().expect("lengths")[row] as usize,
                };
                starts[column] += length;
                self.values[column][starts[column] - length..starts[column]].to_vec()
            };
            let indices = (0..self.values.len()).map(indices).collect();
            (self.label[row], self.dense[row * dense..][..dense].to_vec(), indices)
        };
        (0..self.label.len()).map(row).collect()
    }
}

/// The rows of a batch.
pub fn of_batch(batch: &Batch) -> Vec<Row> {
    let rows = batch.rows();
    let dense = batch.dense().len() / rows;
    let row = |row: usize| {
        let indices = |column: usize| {
            let indices = batch.categorical(column);
            match indices.offsets {
                Some(offsets) => {
                    assert_eq!((offsets.len(), offsets[0]), (rows + 1, 0));
                    indices.values[offsets[row] as usize..offsets[row + 1] as usize].to_vec()
                }
                None => {
                    let hotness = indices.values.len() / rows;
                    indices.values[row * hotness..][..hotness].to_vec()
                }
            }
        };
        let indices = (0..batch.columns()).map(indices).collect();
        (batch.label()[row], batch.dense()[row * dense..][..dense].to_vec(), indices)
    };
    (0..rows).map(row).collect()
}

/// Rows in memory as a source.
pub struct InMemory {
    features: Features,
    rows: Vec<Row>,
}

impl InMemory {
    pub fn new(rows: usize, seed: u64) -> Arc<InMemory> {
        let drawn = Drawn::new(rows, 3, DenseType::F32, seed);
        drawn.source(drawn.rows())
    }

    pub fn all(&self) -> &[Row] {
        &self.rows
    }
}

impl Source for InMemory {
    fn features(&self) -> &Features {
        &self.features
    }

    fn rows(&self) -> u64 {
        self.rows.len() as u64
    }

    fn values(&self, rows: &Selection<'_>, column: usize) -> Result<u64, Error> {
        let row = |place| &self.rows[rows.row(place) as usize];
        Ok((0..rows.len()).map(|place| row(place).2[column].len() as u64).sum())
    }

    fn fill(&self, rows: &Selection<'_>, mut slots: Slots<'_>) -> Result<(), Error> {
        let mut ends = vec![0; slots.categorical.len()];
        for place in 0..rows.len() {
            let (label, dense, indices) = &self.rows[rows.row(place) as usize];
            slots.label[place] = *label;
            slots.dense[place * dense.len()..][..dense.len()].copy_from_slice(dense);
            for ((slot, end), indices) in slots.categorical.iter_mut().zip(&mut ends).zip(indices) {
                slot.values[*end..][..indices.len()].copy_from_slice(indices);
                *end += indices.len();
                if let Some(offsets) = &mut slot.offsets {
                    offsets[0] = 0;
                    offsets[place + 1] = *end as i32;
                }
            }
        }
        Ok(())
    }
}

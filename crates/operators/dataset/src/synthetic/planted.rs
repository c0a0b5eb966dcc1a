//! Planted rows as a source.

use steptime_launch::{Indices, Sampler, SplitMix, mix};

use super::KAGGLE_CARDINALITIES;
use super::model::Model;
use crate::{
    Categorical, Dense, Error, Features, Hotness, IdRule, Selection, Slots, Source, Splits, Transform,
};

/// Options of planted data.
#[derive(Debug, Clone, PartialEq)]
pub struct PlantedOptions {
    /// Seed of the rows and of the model.
    pub seed: u64,
    /// Number of rows.
    pub rows: u64,
    /// Zipf exponent of the indices, 0 to 8; 0 is the uniform distribution.
    pub zipf: f64,
    /// Number of dense columns.
    pub dense: usize,
    /// Number of categories of each categorical column.
    pub cardinalities: Vec<u32>,
}

impl PlantedOptions {
    /// Rows like those of Criteo's Kaggle challenge: 13 dense columns, 26 categorical ones, uniform indices.
    #[must_use]
    pub fn new(seed: u64, rows: u64) -> PlantedOptions {
        PlantedOptions { seed, rows, zipf: 0.0, dense: 13, cardinalities: KAGGLE_CARDINALITIES.to_vec() }
    }
}

/// Rows whose labels are drawn with the probabilities of a fixed small model: a factorization machine over hashed
/// categories and dense values.
///
/// A row depends on the options and its number alone, so any batch is made without state. Dense values have mean 0 and
/// variance 1. Columns with more than some thousand categories have less influence on the label, the more categories they
/// have, so that a model can learn nearly everything in one epoch.
#[derive(Debug)]
pub struct Planted {
    features: Features,
    options: PlantedOptions,
    samplers: Vec<Sampler>,
    model: Model,
}

/// A planted row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PlantedRow {
    /// 0 or 1.
    pub label: f32,
    /// True probability that the label is 1.
    pub probability: f64,
    /// Dense values.
    pub dense: Vec<f32>,
    /// Index in each categorical column.
    pub indices: Vec<i32>,
}

impl Planted {
    /// Planted data.
    ///
    /// # Errors
    ///
    /// If a cardinality or the exponent is out of range.
    pub fn new(options: PlantedOptions) -> Result<Planted, Error> {
        for &cardinality in &options.cardinalities {
            Error::option("cardinality", cardinality.into(), 1..1 << 31, "choose from 1 to 2^31 - 1")?;
        }
        if !(0.0..=8.0).contains(&options.zipf) {
            let reason = format!("{} is not possible; choose from 0 to 8, mostly near 1", options.zipf);
            return Err(Error::Option { option: "Zipf exponent", reason });
        }
        let PlantedOptions { seed, rows, zipf, dense, ref cardinalities } = options;
        let law = if zipf > 0.0 { Indices::Zipf(zipf) } else { Indices::Uniform };
        let dense_columns = Dense {
            columns: (1..=dense).map(|column| format!("I{column}")).collect(),
            transform: Transform::None,
            file: "dense.bin".to_owned(),
            ..Dense::default()
        };
        let column = |(place, &cardinality): (usize, &u32)| {
            Categorical::new(&format!("C{}", place + 1), cardinality, Hotness::Fixed(1), place)
        };
        let columns = cardinalities.iter().enumerate().map(column).collect();
        let features = Features::new(IdRule::Planted { seed, zipf }, "label", dense_columns, columns);
        let features =
            Features { rows, splits: Splits { train: [0, rows], validation: [rows, rows] }, ..features };
        Ok(Planted {
            features,
            samplers: cardinalities.iter().map(|&rows| Sampler::new(&law, rows.into())).collect(),
            model: Model::new(seed, cardinalities, dense),
            options,
        })
    }

    /// The options.
    #[must_use]
    pub fn options(&self) -> &PlantedOptions {
        &self.options
    }

    /// A row by its number, also beyond the number of rows.
    #[must_use]
    pub fn row(&self, number: u64) -> PlantedRow {
        let mut row = PlantedRow::default();
        self.draw(number, &mut row);
        row
    }

    /// Draws a row into the memory of another.
    pub(super) fn draw(&self, number: u64, row: &mut PlantedRow) {
        let mut random = SplitMix::new(mix(self.options.seed ^ mix(number.wrapping_add(1))));
        let mut bits = || random.bits();
        row.dense.clear();
        row.dense.extend((0..self.options.dense).map(|_| normal(bits())));
        row.indices.clear();
        row.indices.extend(self.samplers.iter().map(|sampler| sampler.row(&mut bits) as i32));
        let logit = f64::from(self.model.logit(&row.dense, &row.indices));
        row.probability = 1.0 / (1.0 + (-logit).exp());
        let drawn = (bits() >> 11) as f64 / (1_u64 << 53) as f64;
        row.label = if drawn < row.probability { 1.0 } else { 0.0 };
    }
}

/// A number of nearly normal distribution: the sum of four uniform ones, with mean 0 and variance 1.
fn normal(bits: u64) -> f32 {
    let sum: u64 = (0..4).map(|lane| bits >> (16 * lane) & 0xffff).sum();
    (sum as f32 - 131_070.0) / (65_536.0 * 0.577_350_3)
}

impl Source for Planted {
    fn features(&self) -> &Features {
        &self.features
    }

    fn rows(&self) -> u64 {
        self.options.rows
    }

    fn values(&self, _rows: &Selection<'_>, _column: usize) -> Result<u64, Error> {
        Ok(0)
    }

    fn fill(&self, rows: &Selection<'_>, mut slots: Slots<'_>) -> Result<(), Error> {
        let mut row = PlantedRow::default();
        let dense = self.options.dense;
        for place in 0..rows.len() {
            self.draw(rows.row(place), &mut row);
            slots.label[place] = row.label;
            slots.dense[place * dense..][..dense].copy_from_slice(&row.dense);
            for (slot, index) in slots.categorical.iter_mut().zip(&row.indices) {
                slot.values[place] = *index;
            }
        }
        Ok(())
    }
}

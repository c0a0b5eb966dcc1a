//! The published kind of model for matrix products, convolutions, transposes and extraction by index: a network
//! over the logarithms of sizes (Lin et al., "Building a Performance Model for Deep Learning Recommendation Model
//! Training on GPUs", arXiv 2201.07821, Table II).

use crate::device::learn::cross_validation::{Folds, mix};
use crate::device::learn::descent::{Network, Optimizer, Training};
use crate::device::learn::error::LearnError;
use crate::device::learn::score::Score;
use crate::device::learn::sizes::SIZES;
use crate::device::learn::table::Table;

/// Least number of rows for a network.
const LEAST_ROWS: usize = 200;
/// Number of rows above which they are thinned out: more cost time and hardly improve accuracy.
const MOST_ROWS: usize = 6000;

/// Networks to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Search {
    /// Three layers of 128 neurons, Adam at two learning rates: the part of the table that ends in minutes.
    #[default]
    Shipped,
    /// All of Table II: 3 to 7 layers, 128 to 1024 neurons, Adam and SGD, seven learning rates (SGD's tenfold). Days.
    Full,
}

/// The best network, and its predictions of held-out rows.
pub struct NetworkFit {
    pub training: Training,
    pub network: Network,
    pub rows: Vec<usize>,
    pub held_out: Vec<f64>,
}

/// Trains on rows that have sizes. `None` if there are too few.
pub fn fit(
    sizes: &[Option<[f32; SIZES]>],
    measured: &[f64],
    folds: &Folds,
    search: Search,
    seed: u64,
) -> Result<Option<NetworkFit>, LearnError> {
    let rows: Vec<usize> = (0..sizes.len()).filter(|&row| sizes[row].is_some()).collect();
    if rows.len() < LEAST_ROWS {
        return Ok(None);
    }
    let mut table = Table::new(SIZES);
    rows.iter().for_each(|&row| table.push(|out| out.extend(sizes[row].iter().flatten())));
    // Indices within `table` from here on.
    let target: Vec<f64> = rows.iter().map(|&row| measured[row]).collect();
    let train = |learn: &[usize], training: &Training| {
        let learn = thin(learn, seed);
        let target: Vec<f64> = learn.iter().map(|&at| target[at]).collect();
        Network::train(&table.select(&learn), &target, training, seed)
    };
    let fold_of: Vec<u32> = rows.iter().map(|&row| u32::from(folds.fold(row))).collect();
    let folds = Folds::new(&fold_of, folds.count(), seed);
    let (learn, held_out) = folds.split(0);
    let mut best: Option<(f64, Training)> = None;
    let trainings = search.trainings();
    let single = trainings.len() == 1;
    for training in trainings {
        let error = if single {
            0.0
        } else {
            let network = train(&learn, &training);
            let residuals: Vec<f64> =
                held_out.iter().map(|&at| target[at] - network.predict(table.row(at))).collect();
            Score::from_residuals(&residuals).map_or(f64::INFINITY, |score| score.mean)
        };
        if best.is_none_or(|(least, _)| error < least) {
            best = Some((error, training));
        }
    }
    let Some((_, training)) = best else { return Ok(None) };
    let held_out = folds.out_of_fold(|learn, held_out| {
        let network = train(learn, &training);
        Ok::<_, LearnError>(held_out.iter().map(|&at| network.predict(table.row(at))).collect())
    })?;
    let all: Vec<usize> = (0..rows.len()).collect();
    let network = train(&all, &training);
    Ok(Some(NetworkFit { training, network, rows, held_out }))
}

/// At most [`MOST_ROWS`] rows, chosen by hash.
fn thin(rows: &[usize], seed: u64) -> Vec<usize> {
    let mut chosen = rows.to_vec();
    if chosen.len() > MOST_ROWS {
        chosen.sort_by_cached_key(|&row| mix(row as u64, seed));
        chosen.truncate(MOST_ROWS);
        chosen.sort_unstable();
    }
    chosen
}

impl Search {
    /// Returns the networks of this search.
    #[must_use]
    pub fn trainings(self) -> Vec<Training> {
        let adam = Training {
            layers: 3,
            neurons: 128,
            optimizer: Optimizer::Adam,
            rate: 1e-3,
            epochs: 30,
            batch: 32,
        };
        match self {
            Search::Shipped => vec![adam, Training { rate: 2e-3, ..adam }],
            Search::Full => {
                let mut all = Vec::new();
                for layers in 3..=7 {
                    for neurons in [128, 256, 512, 1024] {
                        for rate in [1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2] {
                            for (optimizer, rate) in [(Optimizer::Adam, rate), (Optimizer::Sgd, rate * 10.0)]
                            {
                                all.push(Training {
                                    layers,
                                    neurons,
                                    optimizer,
                                    rate,
                                    epochs: 100,
                                    batch: 16,
                                });
                            }
                        }
                    }
                }
                all
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_search_space_is_offered_in_full() {
        let all = Search::Full.trainings();
        assert_eq!(all.len(), 5 * 4 * 7 * 2);
        assert!(all.iter().any(|t| t.layers == 7 && t.neurons == 1024 && t.optimizer == Optimizer::Sgd));
    }

    #[test]
    fn few_rows_train_nothing() {
        let sizes = vec![Some([0.0; SIZES]); 20];
        let folds = Folds::new(&(0..20).collect::<Vec<u32>>(), 5, 0);
        assert!(fit(&sizes, &[0.0; 20], &folds, Search::Shipped, 0).unwrap().is_none());
    }
}

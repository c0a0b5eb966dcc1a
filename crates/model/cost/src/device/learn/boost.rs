//! Gradient boosting.

use forust_ml::constraints::ConstraintMap;
use forust_ml::gradientbooster::{GradientBooster, GrowPolicy};
use forust_ml::objective::ObjectiveType;
use forust_ml::tree::Tree;

use super::error::LearnError;
use super::table::Table;
use super::trees::{GrownNode, Trees};

/// Options of boosting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoostOptions {
    /// Number of trees.
    pub trees: usize,
    /// Share of each tree's output that is added.
    pub rate: f32,
    /// Greatest depth of a tree.
    pub depth: usize,
    /// Most leaves of a tree.
    pub leaves: usize,
    /// Fewest rows of a leaf.
    pub rows: f32,
    /// L2 regularisation, which shrinks leaves of few rows.
    pub shrink: f32,
    /// Share of the features that each tree may use.
    pub columns: f64,
    /// Share of the rows that each tree sees.
    pub sample: f32,
    /// Number of rounds. After the first, no row pulls harder than one that is 10 % off: a good part of the way from
    /// the least squared to the least absolute error.
    pub rounds: usize,
    /// Seed of the choice of features and rows.
    pub seed: u64,
}

/// Errors of logarithms of times up to this size count in full.
const NEAR: f64 = 0.1;

impl Default for BoostOptions {
    fn default() -> BoostOptions {
        BoostOptions {
            trees: 400,
            rate: 0.1,
            depth: 8,
            leaves: 80,
            rows: 3.0,
            shrink: 1.0,
            columns: 0.8,
            sample: 1.0,
            rounds: 1,
            seed: 0,
        }
    }
}

/// Learns `target` from the rows of a table, by squared error with a weight for each row. In later rounds the residual
/// of a row is cut off at 10 %, so that rows far from all others do not bend the rest.
///
/// The same rows in the same order give the same trees.
///
/// # Errors
///
/// Targets or weights that are not numbers, or not one for each row.
pub fn boost(
    table: &Table,
    target: &[f64],
    weights: &[f64],
    options: &BoostOptions,
) -> Result<Trees, LearnError> {
    let rows = table.rows();
    if target.len() != rows || weights.len() != rows {
        return Err(LearnError::Lengths { targets: target.len(), weights: weights.len(), rows });
    }
    if rows == 0 {
        return Err(LearnError::NoRows);
    }
    let values: Vec<f64> = (0..table.columns()).flat_map(|at| table.column(at).map(f64::from)).collect();
    let data = forust_ml::Matrix::new(&values, rows, table.columns());
    let mut left = target.to_vec();
    let (mut base, mut grown) = (0.0, Vec::new());
    let rounds = options.rounds.max(1);
    for round in 0..rounds {
        let mut booster = booster(table, options);
        booster.iterations = options.trees * (round + 1) / rounds - options.trees * round / rounds;
        let pull = if round == 0 { f64::INFINITY } else { NEAR };
        let cut: Vec<f64> = left.iter().map(|left| left.clamp(-pull, pull)).collect();
        booster.fit(&data, &cut, weights, None).map_err(Box::new)?;
        base += booster.base_score;
        grown.extend(booster.trees.iter().map(nodes));
        if round + 1 < rounds {
            let learnt = booster.predict(&data, false);
            left.iter_mut().zip(learnt).for_each(|(left, learnt)| *left -= learnt);
        }
    }
    Ok(Trees::new(base as f32, table.columns(), &grown)?)
}

fn booster(table: &Table, options: &BoostOptions) -> GradientBooster {
    // A share of few features may be empty.
    let columns = if table.columns() < 8 { 1.0 } else { options.columns };
    let mut booster = GradientBooster::default()
        .set_objective_type(ObjectiveType::SquaredLoss)
        .set_learning_rate(options.rate)
        .set_max_depth(options.depth)
        .set_max_leaves(options.leaves)
        .set_min_leaf_weight(options.rows)
        .set_l2(options.shrink)
        .set_subsample(options.sample)
        .set_colsample_bytree(columns)
        .set_seed(options.seed)
        .set_initialize_base_score(true)
        .set_parallel(false)
        .set_allow_missing_splits(false)
        .set_monotone_constraints(None::<ConstraintMap>);
    booster.grow_policy = GrowPolicy::LossGuide;
    booster
}

fn nodes(tree: &Tree) -> Vec<GrownNode> {
    let nodes = tree.nodes.iter().map(|node| {
        if node.is_leaf {
            GrownNode::Leaf(node.weight_value)
        } else {
            GrownNode::Split {
                feature: node.split_feature as u16,
                threshold: node.split_value as f32,
                children: [node.left_child, node.right_child],
            }
        }
    });
    nodes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(rows: usize) -> (Table, Vec<f64>) {
        let mut table = Table::new(3);
        let mut target = Vec::new();
        let mut state = 1u64;
        for at in 0..rows {
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 40) as f32 / (1u64 << 24) as f32
            };
            let [a, b, c] = [next(), next(), next()];
            table.push(|out| out.extend([if at % 7 == 0 { f32::NAN } else { a }, b, c]));
            target.push(f64::from(if at % 7 == 0 { 0.3 } else { a * a } + if b > 0.5 { 0.2 } else { 0.0 }));
        }
        (table, target)
    }

    #[test]
    fn it_learns_what_is_there_and_the_same_every_time() {
        let (table, target) = example(2000);
        let weights = vec![1.0; 2000];
        let options = BoostOptions { trees: 120, rate: 0.1, ..BoostOptions::default() };
        let trees = boost(&table, &target, &weights, &options).unwrap();
        let learnt = trees.predict(&table);
        let error = target.iter().zip(&learnt).map(|(t, &l)| (t - f64::from(l)).abs()).sum::<f64>() / 2000.0;
        assert!(error < 0.01, "mean error {error}");
        assert_eq!(boost(&table, &target, &weights, &options).unwrap(), trees);
    }

    #[test]
    fn several_rounds_go_by_the_middle_of_rows_and_not_by_their_mean() {
        let mut table = Table::new(1);
        let mut target = Vec::new();
        for at in 0..1000u16 {
            table.push(|out| out.push(f32::from(at % 2)));
            target.push(if at % 10 < 7 { 0.1 } else { 2.0 });
        }
        let options = BoostOptions { trees: 200, ..BoostOptions::default() };
        let of = |rounds| {
            boost(&table, &target, &vec![1.0; 1000], &BoostOptions { rounds, ..options })
                .unwrap()
                .predict(&table)[0]
        };
        assert!((of(1) - 0.48).abs() < 0.02, "mean {}", of(1));
        assert!((of(10) - 0.1).abs() < 0.1, "median {}", of(10));
    }

    #[test]
    fn what_cannot_be_learnt_from_is_refused() {
        let (table, mut target) = example(50);
        let weights = vec![1.0; 50];
        assert!(boost(&table, &target[..49], &weights, &BoostOptions::default()).is_err());
        target[3] = f64::NAN;
        assert!(boost(&table, &target, &weights, &BoostOptions::default()).is_err());
        assert!(boost(&Table::new(2), &[], &[], &BoostOptions::default()).is_err());
    }
}

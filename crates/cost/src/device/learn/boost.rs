//! Gradient boosting.

use forust_ml::constraints::ConstraintMap;
use forust_ml::gradientbooster::{GradientBooster, GrowPolicy};
use forust_ml::objective::ObjectiveType;

use super::table::Table;
use super::trees::{Grown, Trees};

/// How to boost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoostOptions {
    /// Trees.
    pub trees: usize,
    /// Share of each tree's answer that is taken.
    pub rate: f32,
    /// Greatest depth.
    pub depth: usize,
    /// Most leaves of a tree.
    pub leaves: usize,
    /// Fewest rows of a leaf.
    pub rows: f32,
    /// Shrinks leaves of few rows.
    pub shrink: f32,
    /// Share of the features that each tree may use.
    pub columns: f64,
    /// Share of the rows that each tree sees.
    pub sample: f32,
    /// Of the choice of features and rows.
    pub seed: u64,
}

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
            seed: 0,
        }
    }
}

/// Learns `target` from the rows of a table, by squared error with a weight for each row.
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
) -> Result<Trees, String> {
    let rows = table.rows();
    if target.len() != rows || weights.len() != rows {
        return Err(format!("{} targets and {} weights for {rows} rows", target.len(), weights.len()));
    }
    if rows == 0 {
        return Err("no rows".into());
    }
    // A share of few features may be none at all.
    let columns = if table.columns() < 8 { 1.0 } else { options.columns };
    let values: Vec<f64> = (0..table.columns()).flat_map(|at| table.column(at).map(f64::from)).collect();
    let data = forust_ml::Matrix::new(&values, rows, table.columns());
    let mut booster = GradientBooster::default()
        .set_objective_type(ObjectiveType::SquaredLoss)
        .set_iterations(options.trees)
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
    booster.fit(&data, target, weights, None).map_err(|error| error.to_string())?;
    let grown: Vec<Vec<Grown>> = booster
        .trees
        .iter()
        .map(|tree| {
            let nodes = tree.nodes.iter().map(|node| {
                if node.is_leaf {
                    Grown::Leaf(node.weight_value)
                } else {
                    Grown::Split {
                        feature: node.split_feature as u16,
                        threshold: node.split_value as f32,
                        children: [node.left_child, node.right_child],
                    }
                }
            });
            nodes.collect()
        })
        .collect();
    Trees::new(booster.base_score as f32, table.columns(), &grown).map_err(String::from)
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
    fn what_cannot_be_learnt_from_is_refused() {
        let (table, mut target) = example(50);
        let weights = vec![1.0; 50];
        assert!(boost(&table, &target[..49], &weights, &BoostOptions::default()).is_err());
        target[3] = f64::NAN;
        assert!(boost(&table, &target, &weights, &BoostOptions::default()).is_err());
        assert!(boost(&Table::new(2), &[], &[], &BoostOptions::default()).is_err());
    }
}

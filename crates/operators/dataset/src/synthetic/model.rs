//! The planted model.

use steptime_launch::mix;

/// Numbers of a vector whose products are the interactions.
const RANK: usize = 4;
/// Logit without any input: about a quarter of the labels are 1.
const BIAS: f32 = -1.35;
/// Greatest weight of a category alone, and of a number of its vector.
const CATEGORY: [f32; 2] = [0.4, 0.3];
/// Greatest weight of a dense value alone, and of a number of its vector.
const DENSE: [f32; 2] = [0.25, 0.04];
/// Number of categories from which on a column has less influence: of its categories few rows are seen.
const LARGE: f32 = 2000.0;

/// A factorization machine with fixed weights:
/// `logit = bias + sum_i w_i + sum_{i<j} <v_i, v_j>` over the 26 categories and the sum of the dense vectors.
#[derive(Debug, Clone)]
pub(super) struct Model {
    seed: u64,
    /// Weight and vector of each dense column.
    dense: Vec<Effect>,
    /// Scale of each categorical column's numbers.
    scales: Vec<f32>,
}

/// Weight and vector of one input.
#[derive(Debug, Clone, Copy)]
struct Effect {
    weight: f32,
    vector: [f32; RANK],
}

impl Effect {
    /// Numbers in `-1..1` of 64 random bits, scaled.
    fn new(bits: u64, [weight, vector]: [f32; 2]) -> Effect {
        let number = |place: u32| ((bits >> (12 * place) & 0xfff) as f32 - 2047.5) / 2048.0;
        Effect { weight: weight * number(4), vector: std::array::from_fn(|k| vector * number(k as u32)) }
    }
}

impl Model {
    pub(super) fn new(seed: u64, cardinalities: &[u32], dense: usize) -> Model {
        let seed = mix(seed ^ 0x5eed);
        let bits = |column: usize| mix(seed ^ mix(column as u64 + 1));
        Model {
            seed,
            dense: (0..dense).map(|column| Effect::new(bits(column), DENSE)).collect(),
            scales: cardinalities.iter().map(|&rows| 1.0 / (1.0 + rows as f32 / LARGE).sqrt()).collect(),
        }
    }

    /// Logit of a row.
    pub(super) fn logit(&self, dense: &[f32], indices: &[i32]) -> f32 {
        let mut logit = BIAS;
        let mut of_dense = [0.0; RANK];
        for (effect, value) in self.dense.iter().zip(dense) {
            logit += effect.weight * value;
            of_dense.iter_mut().zip(effect.vector).for_each(|(sum, v)| *sum += v * value);
        }
        let mut sums = of_dense;
        let mut squares = of_dense.map(|v| v * v);
        for (column, (&index, &scale)) in indices.iter().zip(&self.scales).enumerate() {
            let bits = mix(self.seed ^ mix((column as u64 + 1) << 32 | u64::from(index.cast_unsigned())));
            let effect = Effect::new(bits, CATEGORY.map(|greatest| greatest * scale));
            logit += effect.weight;
            for (k, v) in effect.vector.into_iter().enumerate() {
                sums[k] += v;
                squares[k] += v * v;
            }
        }
        // The sum over pairs is half of the square of the sum without the squares.
        let pairs: f32 = sums.iter().zip(squares).map(|(sum, square)| sum * sum - square).sum();
        logit + 0.5 * pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The logit against the definition, pair by pair, in double precision.
    #[test]
    fn the_logit_is_the_sum_over_pairs() {
        let cardinalities = [10, 100_000, 7];
        let model = Model::new(3, &cardinalities, 2);
        for row in 0..100_i32 {
            let (dense, indices) = ([row as f32 / 10.0 - 3.0, 1.5], [row % 10, row * 997, row % 7]);
            let mut effects: Vec<(f64, Vec<f64>)> = Vec::new();
            let wide = |effect: &Effect, by: f64| {
                let vector = effect.vector.iter().map(|&v| f64::from(v) * by).collect();
                (f64::from(effect.weight) * by, vector)
            };
            let each: Vec<_> =
                model.dense.iter().zip(dense).map(|(e, value)| wide(e, value.into())).collect();
            let sum = |k: usize| each.iter().map(|(_, vector): &(f64, Vec<f64>)| vector[k]).sum::<f64>();
            effects.push((each.iter().map(|(weight, _)| weight).sum(), (0..RANK).map(sum).collect()));
            for (column, &index) in indices.iter().enumerate() {
                let bits = mix(model.seed ^ mix((column as u64 + 1) << 32 | index as u64));
                let scale = model.scales[column];
                effects.push(wide(&Effect::new(bits, CATEGORY.map(|greatest| greatest * scale)), 1.0));
            }
            let mut logit = f64::from(BIAS) + effects.iter().map(|(weight, _)| weight).sum::<f64>();
            for (place, (_, one)) in effects.iter().enumerate() {
                for (_, other) in &effects[..place] {
                    logit += one.iter().zip(other).map(|(a, b)| a * b).sum::<f64>();
                }
            }
            let found = f64::from(model.logit(&dense, &indices));
            assert!((found - logit).abs() < 1e-5, "{found} for {logit}");
        }
    }
}

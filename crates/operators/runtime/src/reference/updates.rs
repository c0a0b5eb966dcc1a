//! Plain versions of optimizers.

use steptime_step::TensorId;

use super::Operands;
use super::tables::{gradient, split};
use super::tensor::Plain;
use crate::slices::Access;

/// Updated tensors.
type Updated = Vec<(TensorId, Plain)>;

/// Results of optimizers, and of backward passes with an update.
pub(super) fn results(of: &Operands<'_>) -> Option<Updated> {
    let rate = of.numbers.rate;
    if let Some(rule) = of.name.strip_prefix("steptime::embedding_bag_backward_") {
        let tables = of.call?.inputs[1].tensors();
        let (grad, mean) = (of.at(0), of.number(5) == 1.0);
        let mut column = 0;
        let mut updated = Vec::new();
        for ((indices, bag_of, size), &table) in split(of, tables, of.at(2), of.at(3)).iter().zip(tables) {
            let old = of.value(table);
            let sizes: Vec<f64> =
                (0..*size).map(|bag| bag_of.iter().filter(|&&own| own == bag).count() as f64).collect();
            let g = gradient(grad, column, old.shape[0], old.shape[1], indices, bag_of, &sizes, mean);
            column += old.shape[1];
            let states = &of.states[updated.len()];
            // Rows that are not looked up keep their elements.
            let moves = |at: &[usize]| indices.contains(&(at[0] as f64));
            let change = match rule {
                "sgd" => g.map(|g| rate * g),
                "adagrad" => zip(&g, &states[0], |g, h| rate * g / ((h + g * g).sqrt() + of.numbers.eps)),
                _ => adam(of, &states[0], &states[1], &g).2,
            };
            let plain = |at: &[usize]| old.at(at) - if moves(at) { change.at(at) } else { 0.0 };
            updated.push((table, Plain::new(&old.shape, plain)));
        }
        return Some(updated);
    }
    let class = of.name.strip_prefix("Optimizer.step#")?.split('.').next()?;
    let mut updated = Vec::new();
    for (changed, read) in groups(of) {
        let old = of.value(changed[0]);
        let gradient = match read[..] {
            [gradient] => of.value(gradient).clone(),
            [indices, values] => {
                let (indices, values) = (of.value(indices), of.value(values));
                let each: Vec<usize> = (0..indices.values.len()).collect();
                let values = Plain { shape: vec![each.len(), old.shape[1]], values: values.values.clone() };
                gradient(&values, 0, old.shape[0], old.shape[1], &indices.values, &each, &[], false)
            }
            _ => return None,
        };
        let state = |at: usize| of.value(changed[at]).clone();
        match class {
            "SGD" => updated.push((changed[0], zip(old, &gradient, |p, g| p - rate * g))),
            "Adagrad" => {
                let sum = zip(&state(1), &gradient, |h, g| h + g * g);
                let change = zip(&gradient, &sum, |g, h| rate * g / (h.sqrt() + of.numbers.eps));
                updated.push((changed[0], zip(old, &change, |p, change| p - change)));
                updated.push((changed[1], sum));
            }
            _ => {
                let (first, second, change) = adam(of, &state(1), &state(2), &gradient);
                let keep = if class == "AdamW" { 1.0 - rate * of.numbers.decay } else { 1.0 };
                updated.push((changed[0], zip(old, &change, |p, change| p * keep - change)));
                updated.extend([(changed[1], first), (changed[2], second)]);
            }
        }
    }
    Some(updated)
}

/// Both moments after a step of Adam, and the change of the parameter.
fn adam(of: &Operands<'_>, first: &Plain, second: &Plain, gradient: &Plain) -> (Plain, Plain, Plain) {
    let numbers = of.numbers;
    let first = zip(first, gradient, |m, g| m + (1.0 - numbers.beta1) * (g - m));
    let second = zip(second, gradient, |v, g| numbers.beta2 * v + (1.0 - numbers.beta2) * g * g);
    let own = numbers.rate / (1.0 - numbers.beta1.powi(of.number_of_step));
    let root = (1.0 - numbers.beta2.powi(of.number_of_step)).sqrt();
    let change = zip(&first, &second, |m, v| own * m / (v.sqrt() / root + numbers.eps));
    (first, second, change)
}

fn zip(a: &Plain, b: &Plain, function: impl Fn(f64, f64) -> f64) -> Plain {
    Plain::new(&a.shape, |at| function(a.at(at), b.at(at)))
}

/// For each parameter the changed tensors, itself first, and its gradient.
fn groups(of: &Operands<'_>) -> Vec<(Vec<TensorId>, Vec<TensorId>)> {
    let mut groups: Vec<(Vec<TensorId>, Vec<TensorId>)> = Vec::new();
    for &(tensor, access) in &of.uses {
        let starts = groups.last().is_none_or(|(_, read)| !read.is_empty());
        match (access, groups.last_mut()) {
            (Access::Read, Some((_, read))) => read.push(tensor),
            (_, Some((changed, _))) if !starts => changed.push(tensor),
            _ => groups.push((vec![tensor], Vec::new())),
        }
    }
    groups
}

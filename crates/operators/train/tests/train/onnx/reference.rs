//! The recommender's forward pass in double precision, loop by loop.

use super::model::{COLUMNS, DENSE, FEATURES, HIDDEN, Indices, JOINED, Recommender};

fn linear(recommender: &Recommender, layer: &str, outputs: usize, x: &[f64]) -> Vec<f64> {
    let weight = recommender.weight(&format!("{layer}.weight"));
    let bias = recommender.weight(&format!("{layer}.bias"));
    let row = |n: usize| {
        let products = x.iter().zip(&weight[n * x.len()..]).map(|(x, &w)| x * f64::from(w));
        products.sum::<f64>() + f64::from(bias[n])
    };
    (0..outputs).map(row).collect()
}

fn unit(x: &[f64]) -> Vec<f64> {
    let norm = x.iter().map(|x| x * x).sum::<f64>().sqrt().max(1e-12);
    x.iter().map(|x| x / norm).collect()
}

/// Every output by name, row by row.
pub fn outputs(
    recommender: &Recommender,
    dense: &[f32],
    indices: &[Indices],
) -> Vec<(&'static str, Vec<f64>)> {
    let names = ["probability", "cross", "machine", "similarity", "part", "half", "again", "same_dense"];
    let mut outputs = names.map(|name| (name, Vec::new()));
    let batch = dense.len() / DENSE;
    // Columns 2 to 4 of every feature, column first.
    let mut part = vec![0.0; 3 * batch * FEATURES];
    for sample in 0..batch {
        let x: Vec<f64> = dense[sample * DENSE..][..DENSE].iter().map(|&x| f64::from(x)).collect();
        let bottom: Vec<f64> =
            linear(recommender, "bottom", COLUMNS, &x).iter().map(|x| x.max(0.0)).collect();
        let mut features = vec![bottom.clone()];
        for (table, (_, lookups, indices)) in indices.iter().enumerate() {
            let weight = recommender.weight(&format!("embeddings.{table}.weight"));
            let mut bag = vec![0.0; COLUMNS];
            for &index in &indices[sample * lookups..][..*lookups] {
                for (sum, &x) in bag.iter_mut().zip(&weight[index as usize * COLUMNS..]) {
                    *sum += f64::from(x);
                }
            }
            features.push(bag);
        }
        let mut joined = bottom;
        for a in 0..FEATURES {
            for b in 0..a {
                joined.push(features[a].iter().zip(&features[b]).map(|(x, y)| x * y).sum());
            }
        }
        let hidden: Vec<f64> =
            linear(recommender, "hidden", HIDDEN, &joined).iter().map(|x| x.max(0.0)).collect();
        let logit = linear(recommender, "top", 1, &hidden)[0];
        outputs[0].1.push(1.0 / (1.0 + (-logit).exp()));
        let crossed = linear(recommender, "cross", JOINED, &joined);
        outputs[1].1.extend(joined.iter().zip(&crossed).map(|(x, w)| x * w + x));
        let mut machine = 0.0;
        for a in 0..FEATURES {
            for b in 0..a {
                machine += features[a].iter().zip(&features[b]).map(|(x, y)| x * y).sum::<f64>();
            }
        }
        outputs[2].1.push(machine);
        outputs[3].1.push(unit(&features[1]).iter().zip(unit(&features[3])).map(|(x, y)| x * y).sum());
        for (feature, values) in features.iter().enumerate() {
            for column in 0..3 {
                part[(column * batch + sample) * FEATURES + feature] = values[2 + column];
            }
        }
        let index = indices[0].2[sample] as usize;
        let row = recommender.half[index * COLUMNS..][..COLUMNS].iter().map(|x| x.to_f64());
        outputs[5].1.extend(row.clone());
        outputs[6].1.extend(row);
        outputs[7].1.extend(x);
    }
    outputs[4].1 = part;
    outputs.into()
}

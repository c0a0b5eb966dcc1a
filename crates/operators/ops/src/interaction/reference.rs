//! The definition of the interaction, in double precision.

use super::Interaction;

/// Computes the output, `B x (D + P)`, of contiguous features `B x F x D`.
///
/// # Panics
///
/// The length of `features` is not `samples F D`.
#[must_use]
pub fn forward(of: &Interaction, samples: usize, features: &[f64]) -> Vec<f64> {
    let (f, d) = (of.features(), of.dim());
    assert_eq!(features.len(), samples * f * d);
    let mut out = Vec::with_capacity(samples * of.columns());
    for sample in features.chunks_exact(f * d) {
        let row = |i: usize| &sample[i * d..][..d];
        out.extend_from_slice(row(0));
        for i in 0..f {
            for j in 0..i + usize::from(of.self_interaction()) {
                out.push(row(i).iter().zip(row(j)).map(|(a, b)| a * b).sum());
            }
        }
    }
    out
}

/// Computes the gradient of the features, `B x F x D`, from that of the output, `B x (D + P)`.
///
/// # Panics
///
/// The lengths of the operands do not match.
#[must_use]
pub fn backward(of: &Interaction, samples: usize, features: &[f64], gradient: &[f64]) -> Vec<f64> {
    let (f, d) = (of.features(), of.dim());
    assert_eq!((features.len(), gradient.len()), (samples * f * d, samples * of.columns()));
    let mut out = vec![0.0; features.len()];
    let samples = features.chunks_exact(f * d).zip(gradient.chunks_exact(of.columns()));
    for ((sample, gradient), out) in samples.zip(out.chunks_exact_mut(f * d)) {
        let (dense, mut pairs) = (&gradient[..d], gradient[d..].iter());
        out[..d].copy_from_slice(dense);
        for i in 0..f {
            for j in 0..i + usize::from(of.self_interaction()) {
                let pair = pairs.next().copied().unwrap_or(0.0);
                for c in 0..d {
                    out[i * d + c] += pair * sample[j * d + c];
                    out[j * d + c] += pair * sample[i * d + c];
                }
            }
        }
    }
    out
}

//! The step of one row.

use super::{Decay, RowRule};
use crate::simd::{LANES, Simd, update};

/// Numbers of a rule in a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers {
    rule: RowRule,
    lr: f32,
    /// Factor of `p` that is added to `g`.
    decay: f32,
    /// Share of `p` that is kept.
    keep: f32,
    /// `lr / (1 - beta1^step)`.
    rate: f32,
    /// `sqrt(1 - beta2^step)`.
    root: f32,
}

impl Numbers {
    /// The numbers of step `step`, from 1.
    pub(super) fn new(rule: RowRule, lr: f32, decay: Decay, step: u64) -> Numbers {
        let (beta1, beta2) = match rule {
            RowRule::Adam { beta1, beta2, .. } | RowRule::PartialRowWiseAdam { beta1, beta2, .. } => {
                (beta1, beta2)
            }
            _ => (0.0, 0.0),
        };
        let power = |beta: f32| f64::from(beta).powi(i32::try_from(step).unwrap_or(i32::MAX));
        Numbers {
            rule,
            lr,
            decay: if let Decay::Gradient(decay) = decay { decay } else { 0.0 },
            keep: if let Decay::Weights(decay) = decay { 1.0 - lr * decay } else { 1.0 },
            rate: (f64::from(lr) / (1.0 - power(beta1))) as f32,
            root: (1.0 - power(beta2)).sqrt() as f32,
        }
    }

    /// Applies the step to a row `p` with the gradient `factor x g`.
    #[inline(always)]
    pub(super) fn change<S: Simd>(&self, s: S, p: &mut [f32], state: &mut [f32], g: &[f32], factor: f32) {
        let dim = p.len();
        let with = UpdateFactors { factor: s.splat(factor), decay: s.splat(self.decay) };
        let (lr, keep) = (s.splat(self.lr), s.splat(self.keep));
        match self.rule {
            RowRule::Sgd { momentum: 0.0 } => {
                update!(s, [p], g, [s.sub(s.mul(p, keep), s.mul(lr, with.decay(s, p, g)))]);
            }
            RowRule::Sgd { momentum } => {
                let momentum = s.splat(momentum);
                update!(s, [p, state], g, {
                    let m = s.add(s.mul(momentum, state), with.decay(s, p, g));
                    [s.sub(s.mul(p, keep), s.mul(lr, m)), m]
                });
            }
            RowRule::Adagrad { eps } => {
                let eps = s.splat(eps);
                update!(s, [p, state], g, {
                    let g = with.decay(s, p, g);
                    let h = s.add(state, s.mul(g, g));
                    [s.sub(s.mul(p, keep), s.mul(lr, s.div(g, s.add(s.sqrt(h), eps)))), h]
                });
            }
            RowRule::RowWiseAdagrad { eps } => {
                state[0] += with.squares(s, p, g) / dim as f32;
                let rate = s.splat(self.lr / (state[0].sqrt() + eps));
                update!(s, [p], g, [s.sub(s.mul(p, keep), s.mul(rate, with.decay(s, p, g)))]);
            }
            RowRule::Adam { beta1, beta2, eps } => {
                let (take1, keep2, take2) = (s.splat(1.0 - beta1), s.splat(beta2), s.splat(1.0 - beta2));
                let (rate, root, eps) = (s.splat(self.rate), s.splat(self.root), s.splat(eps));
                let (m, v) = state.split_at_mut(dim);
                update!(s, [p, m, v], g, {
                    let g = with.decay(s, p, g);
                    let m = s.add(m, s.mul(take1, s.sub(g, m)));
                    let v = s.add(s.mul(keep2, v), s.mul(take2, s.mul(g, g)));
                    let step = s.div(m, s.add(s.div(s.sqrt(v), root), eps));
                    [s.sub(s.mul(p, keep), s.mul(rate, step)), m, v]
                });
            }
            RowRule::PartialRowWiseAdam { beta1, beta2, eps } => {
                let (m, v) = state.split_at_mut(dim);
                v[0] = beta2 * v[0] + (1.0 - beta2) * (with.squares(s, p, g) / dim as f32);
                let rate = s.splat(self.rate / (v[0].sqrt() / self.root + eps));
                let take1 = s.splat(1.0 - beta1);
                update!(s, [p, m], g, {
                    let m = s.add(m, s.mul(take1, s.sub(with.decay(s, p, g), m)));
                    [s.sub(s.mul(p, keep), s.mul(rate, m)), m]
                });
            }
        }
    }
}

/// The factor of a stored gradient, and the factor of the weights that is added.
#[derive(Clone, Copy)]
struct UpdateFactors<V> {
    factor: V,
    decay: V,
}

impl<V: Copy> UpdateFactors<V> {
    /// Returns the gradient for the rule.
    #[inline(always)]
    fn decay<S: Simd<V = V>>(self, s: S, p: V, g: V) -> V {
        s.add(s.mul(g, self.factor), s.mul(self.decay, p))
    }

    /// Returns the sum of its squares over a row.
    #[inline(always)]
    fn squares<S: Simd<V = V>>(self, s: S, p: &[f32], g: &[f32]) -> f32 {
        let mut total = s.splat(0.0);
        let (p, p_tail) = p.as_chunks::<LANES>();
        let (g, g_tail) = g.as_chunks::<LANES>();
        for (p, g) in p.iter().zip(g) {
            let g = self.decay(s, s.load(p), s.load(g));
            total = s.add(total, s.mul(g, g));
        }
        if !g_tail.is_empty() {
            let g = self.decay(s, s.load_part(p_tail), s.load_part(g_tail));
            total = s.add(total, s.mul(g, g));
        }
        s.sum(total)
    }
}

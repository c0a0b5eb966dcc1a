//! Exact area under the ROC curve.

use std::mem;

use rayon::prelude::*;
use thiserror::Error;

use super::Batch;
use super::radix::{CHUNK, DIGITS, Grouped, key};

/// Low digits of a group above which they are counted, and below which they are sorted.
const COUNTED: usize = 1 << 13;
/// Samples that are split by their label at once.
const BLOCK: usize = 1 << 10;

/// Exact area under the ROC curve: the share of pairs of a sample of label 1 and one of label 0 whose scores have the
/// same order; a tie counts half (mid-ranks).
///
/// Four bytes a sample are kept. Pairs are counted in integers, and divided once, at the end.
#[derive(Debug, Clone, Default)]
pub struct Auc {
    positives: Keys,
    negatives: Keys,
}

/// Reason why an area is undefined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Undefined {
    /// No sample was added.
    #[error("the area under the ROC curve is undefined without samples")]
    NoSamples,
    /// All labels are equal.
    #[error(
        "the area under the ROC curve is undefined: all {samples} labels are {label}, and both values are needed"
    )]
    OneClass {
        /// Number of samples.
        samples: u64,
        /// Label of all samples, 0 or 1.
        label: u8,
    },
}

impl Auc {
    /// No samples.
    #[must_use]
    pub fn new() -> Self {
        Auc::default()
    }

    /// Adds a batch.
    pub fn add(&mut self, batch: &Batch<'_>) {
        let mut split = [[0; BLOCK]; 2];
        for part in batch.parts(BLOCK) {
            // Without a branch on the label, which no processor predicts.
            let mut counts = [0; 2];
            for (score, label) in part.samples() {
                let class = usize::from(label);
                split[class][counts[class] % BLOCK] = key(score);
                counts[class] += 1;
            }
            self.negatives.extend(&split[0][..counts[0]]);
            self.positives.extend(&split[1][..counts[1]]);
        }
    }

    /// The area, from 0 to 1; 0.5 for scores without information.
    ///
    /// # Errors
    ///
    /// No samples, or all labels are equal.
    pub fn value(self) -> Result<f64, Undefined> {
        let (positives, negatives) = (self.positives.count(), self.negatives.count());
        match (positives, negatives) {
            (0, 0) => Err(Undefined::NoSamples),
            (0, samples) => Err(Undefined::OneClass { samples, label: 0 }),
            (samples, 0) => Err(Undefined::OneClass { samples, label: 1 }),
            _ => {
                let halves = half_pairs(&self.positives.grouped(), &self.negatives.grouped());
                Ok(halves as f64 / (2 * u128::from(positives) * u128::from(negatives)) as f64)
            }
        }
    }
}

/// Keys in chunks of at most [`CHUNK`], so that more of them move none.
#[derive(Debug, Clone, Default)]
struct Keys {
    full: Vec<Vec<u32>>,
    last: Vec<u32>,
}

impl Keys {
    fn extend(&mut self, mut keys: &[u32]) {
        while !keys.is_empty() {
            if self.last.len() == CHUNK {
                self.full.push(mem::replace(&mut self.last, Vec::with_capacity(CHUNK)));
            }
            let (now, later) = keys.split_at(keys.len().min(CHUNK - self.last.len()));
            self.last.extend_from_slice(now);
            keys = later;
        }
    }

    fn count(&self) -> u64 {
        (self.full.len() * CHUNK + self.last.len()) as u64
    }

    fn grouped(self) -> Vec<Grouped> {
        let mut chunks = self.full;
        chunks.push(self.last);
        chunks.into_par_iter().map(|keys| Grouped::new(&keys)).collect()
    }
}

/// Twice the number of pairs in order, ties once.
fn half_pairs(positives: &[Grouped], negatives: &[Grouped]) -> u128 {
    let size = |chunks: &[Grouped], high| chunks.iter().map(|chunk| chunk.group(high).len()).sum::<usize>();
    // Negatives of lower high digits: all pairs with them are in order.
    let mut below = 0u128;
    let mut groups = Vec::new();
    for high in 0..DIGITS {
        let (positive, negative) = (size(positives, high), size(negatives, high));
        if positive > 0 {
            groups.push((high, positive, negative, below));
        }
        below += negative as u128;
    }
    let counted =
        groups.into_par_iter().map_init(Group::default, |group, (high, positive, negative, below)| {
            let within = if negative == 0 {
                0
            } else if positive + negative > COUNTED {
                group.count(positives, negatives, high)
            } else {
                group.sort(positives, negatives, high)
            };
            2 * below * positive as u128 + within
        });
    counted.sum()
}

/// Scratch space for the keys of one high digit.
#[derive(Default)]
struct Group {
    /// For every low digit, its positives and negatives; all zero between uses.
    counts: Vec<[u64; 2]>,
    positives: Vec<u16>,
    negatives: Vec<u16>,
}

impl Group {
    fn count(&mut self, positives: &[Grouped], negatives: &[Grouped], high: usize) -> u128 {
        self.counts.resize(DIGITS, [0; 2]);
        for (class, chunks) in [positives, negatives].into_iter().enumerate() {
            for low in chunks.iter().flat_map(|chunk| chunk.group(high)) {
                self.counts[usize::from(*low)][class] += 1;
            }
        }
        let (mut halves, mut below) = (0, 0);
        for counts in &mut self.counts {
            let [positive, negative] = mem::take(counts).map(u128::from);
            halves += positive * (2 * below + negative);
            below += negative;
        }
        halves
    }

    fn sort(&mut self, positives: &[Grouped], negatives: &[Grouped], high: usize) -> u128 {
        for (sorted, chunks) in [(&mut self.positives, positives), (&mut self.negatives, negatives)] {
            sorted.clear();
            chunks.iter().for_each(|chunk| sorted.extend_from_slice(chunk.group(high)));
            sorted.sort_unstable();
        }
        let (mut halves, mut less, mut equal) = (0, 0, 0);
        for positive in &self.positives {
            less += self.negatives[less..].iter().take_while(|&negative| negative < positive).count();
            equal = equal.max(less);
            equal += self.negatives[equal..].iter().take_while(|&negative| negative == positive).count();
            halves += (less + equal) as u128;
        }
        halves
    }
}

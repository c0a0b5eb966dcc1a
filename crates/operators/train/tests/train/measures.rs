//! Measures against plain references, and their independence of batches, order and threads.

use proptest::prelude::*;
use steptime_train::metrics::{Auc, Batch, Evaluation, ExactSum, MeasureError, Measures, Scores, Undefined};
use tempfile::tempdir;

use crate::python;

fn auc(scores: &[f32], labels: &[f32]) -> Result<f64, Undefined> {
    let mut auc = Auc::new();
    auc.add(&Batch::new(Scores::Logits, scores, labels, 0).unwrap());
    auc.value()
}

fn measured(kind: Scores, batches: &[(Vec<f32>, Vec<f32>)]) -> Measures {
    let mut evaluation = Evaluation::new(kind);
    batches.iter().for_each(|(scores, labels)| evaluation.add(scores, labels).unwrap());
    evaluation.measures()
}

/// Counts every pair.
fn every_pair(scores: &[f32], labels: &[f32]) -> f64 {
    let of = |label| scores.iter().zip(labels).filter(move |&(_, &l)| l == label).map(|(&score, _)| score);
    let (mut halves, mut pairs) = (0u64, 0u64);
    for positive in of(1.0) {
        for negative in of(0.0) {
            halves += if positive > negative { 2 } else { u64::from(positive == negative) };
            pairs += 1;
        }
    }
    halves as f64 / (2 * pairs) as f64
}

/// Area by mid-ranks of a stable sort in double precision, as `scikit-learn` and `scipy.stats.rankdata` compute it.
fn mid_ranks(scores: &[f32], labels: &[f32]) -> f64 {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[a].partial_cmp(&scores[b]).unwrap());
    let (mut sum, mut before) = (0.0, 0);
    for tied in order.chunk_by(|&a, &b| scores[a] == scores[b]) {
        let rank = before as f64 + (tied.len() + 1) as f64 / 2.0;
        sum += rank * tied.iter().filter(|&&i| labels[i] == 1.0).count() as f64;
        before += tied.len();
    }
    let positives = labels.iter().filter(|&&label| label == 1.0).count() as f64;
    let negatives = labels.len() as f64 - positives;
    (sum - positives * (positives + 1.0) / 2.0) / (positives * negatives)
}

/// Pseudo-random samples: scores of a few exponents with many ties, labels that depend on them.
fn samples(count: usize, seed: u64) -> (Vec<f32>, Vec<f32>) {
    let mut state = seed;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f32 / (1u64 << 31) as f32
    };
    let sample = |_| {
        let logit = 4.0 * (next() + next() + next() - 2.0);
        let logit = if next() < 0.2 { logit.round() } else { logit };
        (logit, f32::from(next() < 1.0 / (1.0 + (-logit).exp())))
    };
    (0..count).map(sample).unzip()
}

fn binary() -> impl Strategy<Value = f32> {
    prop_oneof![Just(0.0f32), Just(1.0f32)]
}

/// Scores with ties, both zeros, infinities, numbers of any size.
fn score() -> impl Strategy<Value = f32> {
    prop_oneof![
        4 => (-5i8..5).prop_map(f32::from),
        1 => prop_oneof![Just(-0.0f32), Just(f32::INFINITY), Just(f32::NEG_INFINITY)],
        4 => any::<f32>().prop_filter("a number", |score| !score.is_nan()),
    ]
}

proptest! {
    #[test]
    fn the_area_is_the_share_of_pairs_in_order(
        samples in prop::collection::vec((score(), binary()), 2..200)
    ) {
        let (scores, labels): (Vec<f32>, Vec<f32>) = samples.into_iter().unzip();
        let ones = labels.iter().filter(|&&label| label == 1.0).count();
        match auc(&scores, &labels) {
            Ok(area) => prop_assert_eq!(area, every_pair(&scores, &labels)),
            Err(Undefined::OneClass { samples, label }) => {
                prop_assert_eq!(samples, labels.len() as u64);
                prop_assert_eq!(ones, labels.len() * usize::from(label));
            }
            Err(Undefined::NoSamples) => prop_assert!(false, "there are samples"),
        }
    }

    #[test]
    fn swapped_labels_turn_the_area_round(samples in prop::collection::vec((score(), binary()), 2..100)) {
        let (scores, labels): (Vec<f32>, Vec<f32>) = samples.into_iter().unzip();
        let swapped: Vec<f32> = labels.iter().map(|label| 1.0 - label).collect();
        if let Ok(area) = auc(&scores, &labels) {
            prop_assert!((area + auc(&scores, &swapped).unwrap() - 1.0).abs() < 1e-15);
        }
    }

    #[test]
    fn an_exact_sum_is_the_integer_sum(terms in prop::collection::vec((any::<i32>(), 0i32..60), 0..100)) {
        let mut sum = ExactSum::new();
        terms.iter().for_each(|&(term, shift)| sum.add(f64::from(term) * 2f64.powi(shift - 500)));
        let integer: i128 = terms.iter().map(|&(term, shift)| i128::from(term) << shift).sum();
        prop_assert_eq!(sum.value(), integer as f64 * 2f64.powi(-500));
    }

    #[test]
    fn an_exact_sum_does_not_depend_on_order_or_groups(
        terms in prop::collection::vec(prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL, 0..60),
        at in any::<prop::sample::Index>(),
    ) {
        let mut forward = ExactSum::new();
        terms.iter().for_each(|&term| forward.add(term));
        let (left, right) = terms.split_at(if terms.is_empty() { 0 } else { at.index(terms.len()) });
        let mut backward = ExactSum::new();
        right.iter().rev().for_each(|&term| backward.add(term));
        let mut rest = ExactSum::new();
        left.iter().rev().for_each(|&term| rest.add(term));
        backward.merge(&rest);
        prop_assert_eq!(forward.value().to_bits(), backward.value().to_bits());
    }

    #[test]
    fn measures_do_not_depend_on_batches_and_order(
        count in 2usize..600, seed in any::<u64>(), size in 1usize..80,
    ) {
        let (scores, labels) = samples(count, seed);
        let whole = measured(Scores::Logits, &[(scores.clone(), labels.clone())]);
        let mut batches: Vec<_> =
            scores.chunks(size).zip(labels.chunks(size)).map(|(s, l)| (s.to_vec(), l.to_vec())).collect();
        prop_assert_eq!(measured(Scores::Logits, &batches), whole);
        batches.reverse();
        for (scores, labels) in &mut batches {
            scores.reverse();
            labels.reverse();
        }
        prop_assert_eq!(measured(Scores::Logits, &batches), whole);
    }
}

#[test]
fn a_large_area_is_that_of_mid_ranks() {
    // More than two chunks of keys, groups that are counted and groups that are sorted.
    let (scores, labels) = samples(2_500_000, 7);
    let (area, expected) = (auc(&scores, &labels).unwrap(), mid_ranks(&scores, &labels));
    assert!((area - expected).abs() < 1e-12, "{area} {expected}");
    assert!(area > 0.6 && area < 0.95, "{area}");
}

#[test]
fn measures_do_not_depend_on_threads() {
    let (scores, labels) = samples(200_000, 3);
    let whole = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| measured(Scores::Logits, &[(scores.clone(), labels.clone())]))
    };
    let one = whole(1);
    for threads in [2, 3, 7] {
        assert_eq!(whole(threads), one, "{threads} threads");
    }
}

#[test]
fn measures_are_those_of_plain_sums() {
    let (scores, labels) = samples(20_000, 11);
    let probabilities: Vec<f64> =
        scores.iter().map(|&score| 1.0 / (1.0 + (-f64::from(score)).exp())).collect();
    let positives: f64 = labels.iter().map(|&label| f64::from(label)).sum();
    let count = labels.len() as f64;
    let share = positives / count;
    let loss = |(&p, &label): (&f64, &f32)| if label == 1.0 { -p.ln() } else { -(1.0 - p).ln() };
    let log_loss = probabilities.iter().zip(&labels).map(loss).sum::<f64>() / count;
    let entropy = -(share * share.ln() + (1.0 - share) * (1.0 - share).ln());
    let ece: f64 = (0..20)
        .map(|bucket| {
            let within = |p: f64| (p * 20.0).floor() as usize == bucket;
            let rows = probabilities.iter().zip(&labels).filter(|&(&p, _)| within(p));
            rows.map(|(&p, &label)| p - f64::from(label)).sum::<f64>().abs() / count
        })
        .sum();
    let measures = measured(Scores::Logits, &[(scores, labels)]);
    let close = |value: Option<f64>, expected: f64| {
        let value = value.unwrap();
        assert!((value - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{value} {expected}");
    };
    assert_eq!((measures.samples, measures.positives), (20_000, positives as u64));
    close(measures.log_loss, log_loss);
    close(measures.normalised_entropy, log_loss / entropy);
    close(measures.calibration, probabilities.iter().sum::<f64>() / positives);
    close(measures.calibration_error, ece);
}

#[test]
fn measures_are_those_of_scikit_learn() {
    let folder = tempdir().unwrap();
    let (scores, labels) = samples(300_000, 5);
    for (name, numbers) in [("scores.bin", &scores), ("labels.bin", &labels)] {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let Some(printed) = python::run("measures.py", &[folder.path()], "numpy, sklearn") else { return };
    let expected: Vec<f64> = printed.split_whitespace().map(|number| number.parse().unwrap()).collect();
    let measures = measured(Scores::Logits, &[(scores, labels)]);
    for (own, expected) in [measures.auc, measures.log_loss].into_iter().zip(expected) {
        assert!((own.unwrap() - expected).abs() < 1e-12, "{own:?} {expected}");
    }
}

#[test]
fn one_class_has_no_area_and_says_so() {
    assert_eq!(auc(&[], &[]), Err(Undefined::NoSamples));
    let undefined = auc(&[0.5, 0.7], &[0.0, 0.0]).unwrap_err();
    assert_eq!(undefined, Undefined::OneClass { samples: 2, label: 0 });
    assert!(undefined.to_string().contains("all 2 labels are 0"));
    let measures = measured(Scores::Probabilities, &[(vec![0.5, 0.7], vec![1.0, 1.0])]);
    assert_eq!((measures.auc, measures.normalised_entropy), (None, None));
    assert_eq!(measures.calibration, Some((f64::from(0.5f32) + f64::from(0.7f32)) / 2.0));
    assert_eq!(measured(Scores::Logits, &[]).log_loss, None);
}

#[test]
fn a_refused_batch_names_its_place_and_adds_nothing() {
    let mut evaluation = Evaluation::new(Scores::Probabilities);
    evaluation.add(&[0.25, 0.75], &[0.0, 1.0]).unwrap();
    let refused = evaluation.add(&[0.5, f32::NAN], &[0.0, 1.0]).unwrap_err();
    assert_eq!(refused, MeasureError::NotANumber { sample: 3, position: 1 });
    let refused = evaluation.add(&[0.5, 1.5], &[0.0, 1.0]).unwrap_err();
    assert_eq!(refused, MeasureError::NotAProbability { sample: 3, position: 1, score: 1.5 });
    let refused = evaluation.add(&[0.5], &[0.5]).unwrap_err();
    assert_eq!(refused, MeasureError::Label { sample: 2, position: 0, label: 0.5 });
    let refused = evaluation.add(&[0.5], &[]).unwrap_err();
    assert_eq!(refused, MeasureError::Lengths { scores: 1, labels: 0 });
    let measures = evaluation.measures();
    assert_eq!((measures.samples, measures.auc), (2, Some(1.0)));
}

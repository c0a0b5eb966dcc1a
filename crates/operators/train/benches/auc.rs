//! Exact AUC beside a plain comparison sort, and all measures of an evaluation. `STEPTIME_BENCH_PAIRS` gives the number of pairs (10 million).

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use steptime_train::metrics::{Auc, Batch, Evaluation, Measures, Scores};

/// Logits as of a recommender: a sum of uniform numbers around -3.5, and labels of about 3 % ones that depend on them.
fn pairs(count: usize) -> (Vec<f32>, Vec<f32>) {
    let mut state = 1u64;
    let mut uniform = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 24) as f32
    };
    let sample = |_| {
        let logit = -5.5 + uniform() + uniform() + uniform() + uniform();
        (logit, f32::from(uniform() < 1.0 / (1.0 + (-logit).exp())))
    };
    (0..count).map(sample).unzip()
}

/// Mid-ranks of a comparison sort.
fn sorted(scores: &[f32], labels: &[f32]) -> f64 {
    let mut pairs: Vec<(f32, f32)> = scores.iter().copied().zip(labels.iter().copied()).collect();
    pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let (mut halves, mut positives, mut negatives) = (0u128, 0u128, 0u128);
    for tied in pairs.chunk_by(|a, b| a.0 == b.0) {
        let positive = tied.iter().filter(|pair| pair.1 == 1.0).count() as u128;
        let negative = tied.len() as u128 - positive;
        halves += positive * (2 * negatives + negative);
        positives += positive;
        negatives += negative;
    }
    halves as f64 / (2 * positives * negatives) as f64
}

fn radix(scores: &[f32], labels: &[f32]) -> f64 {
    let mut auc = Auc::new();
    for (before, (scores, labels)) in scores.chunks(65_536).zip(labels.chunks(65_536)).enumerate() {
        let batch = Batch::new(Scores::Logits, scores, labels, before as u64 * 65_536).expect("no NaN");
        auc.add(&batch);
    }
    auc.value().expect("two classes")
}

fn evaluated(scores: &[f32], labels: &[f32]) -> Measures {
    let mut evaluation = Evaluation::new(Scores::Logits);
    for (scores, labels) in scores.chunks(65_536).zip(labels.chunks(65_536)) {
        evaluation.add(scores, labels).expect("no NaN");
    }
    evaluation.measures()
}

fn auc(criterion: &mut Criterion) {
    let count =
        std::env::var("STEPTIME_BENCH_PAIRS").map_or(10_000_000, |count| count.parse().expect("a number"));
    let (scores, labels) = pairs(count);
    assert_eq!(radix(&scores, &labels), sorted(&scores, &labels));
    let mut group = criterion.benchmark_group("auc");
    group.sample_size(10).throughput(Throughput::Elements(count as u64));
    group.bench_function("radix", |bencher| bencher.iter(|| black_box(radix(&scores, &labels))));
    group.bench_function("comparison sort", |bencher| bencher.iter(|| black_box(sorted(&scores, &labels))));
    group.bench_function("all measures", |bencher| bencher.iter(|| black_box(evaluated(&scores, &labels))));
    group.finish();
}

criterion_group!(benches, auc);
criterion_main!(benches);

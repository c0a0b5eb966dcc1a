//! Planted rows depend on their number alone, and their probabilities are true.

use std::sync::Arc;

use steptime_dataset::{
    BatchOptions, Batches, Dataset, KAGGLE_CARDINALITIES, Planted, PlantedOptions, Shuffle, Source, SplitName,
};

use crate::rows::of_batch;

fn planted(seed: u64, rows: u64, zipf: f64) -> Planted {
    Planted::new(PlantedOptions { zipf, ..PlantedOptions::new(seed, rows) }).expect("options")
}

#[test]
fn rows_are_the_same_in_any_batch_order_and_on_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    for zipf in [0.0, 1.05] {
        let planted = Arc::new(planted(3, 1000, zipf));
        let mut seen = 0;
        for (shuffle, threads) in [(None, 1), (Some(Shuffle { seed: 1, block: 16, blocks: 4 }), 3)] {
            let options = BatchOptions { shuffle, threads, ..BatchOptions::new(64) };
            let batches = Batches::new(Arc::clone(&planted) as Arc<dyn Source>, options).expect("batches");
            let rows: Vec<_> = batches.flat_map(|batch| of_batch(&batch.expect("a batch"))).collect();
            for number in 0..1000 {
                let row = planted.row(number);
                let indices = row.indices.iter().map(|&index| vec![index]).collect();
                assert!(rows.contains(&(row.label, row.dense, indices)), "{number}");
                seen += 1;
            }
        }
        assert_eq!(seen, 2000);
        let place = folder.path().join(format!("data_{zipf}"));
        planted.write(&place, 100, 3).expect("written");
        let dataset = Dataset::open(&place).expect("a dataset");
        let split = Arc::new(dataset.split(SplitName::Validation));
        let batches = Batches::new(split, BatchOptions::new(64)).expect("batches");
        let rows = batches.flat_map(|batch| of_batch(&batch.expect("a batch")));
        for (number, found) in (900..).zip(rows) {
            let row = planted.row(number);
            assert_eq!(found, (row.label, row.dense, row.indices.iter().map(|&index| vec![index]).collect()));
        }
    }
}

#[test]
fn indices_have_their_cardinalities_and_seeds_differ() {
    for zipf in [0.0, 1.2] {
        let one = planted(1, 10, zipf);
        let other = planted(2, 10, zipf);
        let mut greatest = [0; 26];
        for number in 0..3000 {
            let row = one.row(number);
            assert_ne!(row.dense, other.row(number).dense);
            for ((greatest, index), cardinality) in
                greatest.iter_mut().zip(row.indices).zip(KAGGLE_CARDINALITIES)
            {
                assert!((0..cardinality as i32).contains(&index));
                *greatest = index.max(*greatest);
            }
        }
        for (greatest, cardinality) in greatest.into_iter().zip(KAGGLE_CARDINALITIES) {
            assert!(f64::from(greatest) > 0.6 * f64::from(cardinality) - 1.0, "{greatest} of {cardinality}");
        }
    }
}

/// Labels against probabilities: within each tenth of the probabilities the share of ones is the mean probability.
#[test]
fn probabilities_are_those_of_the_labels() {
    let planted = planted(7, 200_000, 1.05);
    let mut rows: Vec<(f64, f32)> =
        (0..200_000).map(|number| planted.row(number)).map(|row| (row.probability, row.label)).collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    for tenth in rows.chunks(20_000) {
        let mean = tenth.iter().map(|row| row.0).sum::<f64>() / 20_000.0;
        let ones = tenth.iter().map(|row| f64::from(row.1)).sum::<f64>() / 20_000.0;
        let deviation = (mean * (1.0 - mean) / 20_000.0).sqrt();
        assert!((mean - ones).abs() < 4.5 * deviation, "{ones} for {mean}");
    }
    // The measures of the drawn labels are near the expected ones.
    let best = planted.best(0..200_000, 2).expect("measures");
    let (mut pairs, mut negatives) = (0.0, 0.0);
    rows.iter().for_each(|&(_, label)| if label > 0.5 { pairs += negatives } else { negatives += 1.0 });
    let auc = pairs / (negatives * (200_000.0 - negatives));
    assert!((auc - best.auc).abs() < 0.004, "{auc} for {best:?}");
    assert!((best.positives - (1.0 - negatives / 200_000.0)).abs() < 0.005, "{best:?}");
    let loss = |&(p, label): &(f64, f32)| if label > 0.5 { -p.ln() } else { -(1.0 - p).ln() };
    let loss = rows.iter().map(loss).sum::<f64>() / 200_000.0;
    assert!((loss - best.log_loss).abs() < 0.005, "{loss} for {best:?}");
    assert_eq!(planted.best(0..20_000, 1).expect("measures"), planted.best(0..20_000, 5).expect("measures"));
}

#[test]
fn the_task_is_neither_trivial_nor_hopeless() {
    for (seed, zipf) in [(1, 0.0), (2, 1.05), (3, 0.0), (4, 1.2)] {
        let best = planted(seed, 1, zipf).best(0..50_000, 2).expect("measures");
        assert!((0.72..0.88).contains(&best.auc) && (0.1..0.5).contains(&best.positives), "{seed}: {best:?}");
    }
}

#[test]
fn dense_values_have_mean_0_and_variance_1() {
    let planted = planted(1, 1, 0.0);
    let values: Vec<f64> = (0..20_000).flat_map(|number| planted.row(number).dense).map(f64::from).collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let variance = values.iter().map(|value| value * value).sum::<f64>() / values.len() as f64;
    assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.01, "{mean} {variance}");
}

#[test]
fn impossible_options_are_refused() {
    let options = PlantedOptions::new(1, 10);
    for (changed, message) in [
        (PlantedOptions { cardinalities: vec![3, 0], ..options.clone() }, "invalid cardinality: 0"),
        (PlantedOptions { zipf: -1.0, ..options.clone() }, "invalid Zipf exponent: -1"),
        (PlantedOptions { zipf: f64::NAN, ..options }, "invalid Zipf exponent: NaN"),
    ] {
        let error = Planted::new(changed).expect_err(message).to_string();
        assert!(error.contains(message), "{error} for {message}");
    }
    let planted = planted(1, 10, 0.0);
    assert!(planted.best(5..5, 1).is_err() && planted.best(0..5, 0).is_err());
    let folder = tempfile::tempdir().expect("a folder");
    let error =
        planted.write(&folder.path().join("data"), 11, 1).expect_err("more than there are").to_string();
    assert!(error.contains("invalid rows for validation: 11"), "{error}");
}

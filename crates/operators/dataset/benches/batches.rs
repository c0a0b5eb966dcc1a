//! Reading of batches from the page cache: one-hot Criteo rows of 160 bytes (a label, 13 dense values, 26 indices); and
//! planted batches.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use steptime_dataset::{
    BatchOptions, Batches, Block, Categorical, Column, Dataset, Dense, Features, Hotness, IdRule, IndexType,
    Planted, PlantedOptions, Rows, Shuffle, Source, SplitName, Splits, Writer,
};

const ROWS: usize = 4 << 20;
const BYTES: u64 = 160;

/// A dataset whose indices need 4 bytes each, or the narrowest type that the cardinality of Criteo-Kaggle allows.
fn write(place: &Path, narrow: bool) -> Dataset {
    let dense = Dense {
        columns: (1..=13).map(|column| format!("I{column}")).collect(),
        file: "dense.bin".to_owned(),
        ..Dense::default()
    };
    let column = |(place, &cardinality): (usize, &u32)| {
        let column = Categorical::new(&format!("C{}", place + 1), cardinality, Hotness::Fixed(1), place);
        Categorical { r#type: if narrow { column.r#type } else { IndexType::I32 }, ..column }
    };
    let cardinalities = steptime_dataset::KAGGLE_CARDINALITIES;
    let columns = cardinalities.iter().enumerate().map(column).collect();
    let features = Features::new(IdRule::Stored, "label", dense, columns);
    let mut writer = Writer::create(place, features.clone()).expect("a new folder");
    let mut state = 1_u64;
    let mut random = move || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        state >> 33
    };
    const PART: usize = 1 << 18;
    for _ in 0..ROWS / PART {
        let label: Vec<f32> = (0..PART).map(|_| (random() % 2) as f32).collect();
        let dense: Vec<f32> = (0..13 * PART).map(|_| random() as f32 / 1e9).collect();
        let values: Vec<Vec<i32>> = cardinalities
            .iter()
            .map(|&cardinality| (0..PART).map(|_| (random() % u64::from(cardinality)) as i32).collect())
            .collect();
        let categorical = values.iter().map(|values| Column { values, lengths: None }).collect();
        let rows = Rows { label: &label, dense: &dense, categorical };
        writer.append(&Block::encode(&features, &rows).expect("rows")).expect("written");
    }
    writer.finish(Splits { train: [0, ROWS as u64], validation: [0, 0] }).expect("complete");
    Dataset::open(place).expect("a dataset")
}

fn epoch(source: Arc<dyn Source>, options: BatchOptions) {
    let batches = Batches::new(source, options).expect("batches");
    for batch in batches {
        black_box(batch.expect("a batch").label()[0]);
    }
}

fn read(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut group = criterion.benchmark_group("batches");
    group.throughput(Throughput::Bytes(BYTES * ROWS as u64)).sample_size(10);
    for (stored, narrow) in [("i32", false), ("narrow", true)] {
        let dataset = write(&folder.path().join(stored), narrow);
        for (order, shuffle) in [("sequential", None), ("shuffled", Some(Shuffle::new(1)))] {
            for (batch, threads) in [(65_536, 1), (65_536, 2), (2_048, 2)] {
                let options = BatchOptions { shuffle, threads, ..BatchOptions::new(batch) };
                let id =
                    BenchmarkId::new(format!("{stored}/{order}/batch {batch}"), format!("{threads} threads"));
                group.bench_with_input(id, &options, |bencher, &options| {
                    bencher.iter(|| epoch(Arc::new(dataset.split(SplitName::Train)), options));
                });
            }
        }
    }
    group.finish();
}

fn planted(criterion: &mut Criterion) {
    const ROWS: u64 = 1 << 18;
    let mut group = criterion.benchmark_group("planted");
    group.throughput(Throughput::Elements(ROWS)).sample_size(10);
    for zipf in [0.0, 1.05] {
        let planted = Planted::new(PlantedOptions { zipf, ..PlantedOptions::new(1, ROWS) }).expect("options");
        let planted = Arc::new(planted);
        for threads in [1, 2] {
            let options = BatchOptions { threads, ..BatchOptions::new(16_384) };
            let id = BenchmarkId::new(format!("zipf {zipf}"), format!("{threads} threads"));
            group.bench_with_input(id, &options, |bencher, &options| {
                bencher.iter(|| epoch(planted.clone(), options));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, read, planted);
criterion_main!(benches);

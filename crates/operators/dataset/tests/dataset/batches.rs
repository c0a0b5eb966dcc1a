//! Order, position and memory of batches.

use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use steptime_dataset::{
    ALIGNMENT, Allocate, BatchOptions, Batches, Buffer, DenseType, Error, Heap, HeapBuffer, Last, Position,
    Shuffle, Source, SplitName,
};

use crate::rows::{Drawn, InMemory, Row, of_batch};

type Seen = (Position, Vec<Row>);

fn all(source: &Arc<InMemory>, options: BatchOptions) -> Vec<Seen> {
    let batches = Batches::new(Arc::clone(source) as Arc<dyn Source>, options).expect("batches");
    batches.map(|batch| batch.map(|batch| (batch.position(), of_batch(&batch))).expect("a batch")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn an_epoch_has_every_row_once(
        rows in 1_usize..400, batch in 1_usize..90, seed: u64, drop: bool, shuffled: bool, threads in 1_usize..9,
    ) {
        let source = InMemory::new(rows, seed);
        let mut expected = source.all().to_vec();
        let shuffle = shuffled.then_some(Shuffle { seed, block: 8, blocks: 3 });
        let last = if drop { Last::Drop } else { Last::Short };
        let options = BatchOptions { shuffle, last, epochs: 2, threads, ..BatchOptions::new(batch) };
        let found = all(&source, options);
        let each = if drop { rows / batch } else { rows.div_ceil(batch) };
        prop_assert_eq!(found.len(), 2 * each);
        for (number, (position, of_batch)) in found.iter().enumerate() {
            let row = number % each * batch;
            prop_assert_eq!(*position, Position { epoch: (number / each) as u64, row: row as u64 });
            prop_assert_eq!(of_batch.len(), batch.min(rows - row));
        }
        let epoch = |number: usize| found[number * each..][..each].iter().flat_map(|(_, rows)| rows.clone()).collect();
        let (first, second): (Vec<Row>, Vec<Row>) = (epoch(0), epoch(1));
        if !shuffled {
            prop_assert_eq!(&first, &expected[..first.len()]);
            prop_assert_eq!(&second, &first);
        } else if !drop {
            for mut epoch in [first, second] {
                let by = |a: &Row, b: &Row| format!("{a:?}").cmp(&format!("{b:?}"));
                epoch.sort_by(by);
                expected.sort_by(by);
                prop_assert_eq!(&epoch, &expected);
            }
        }
    }

    #[test]
    fn batches_do_not_depend_on_threads_and_stops(
        rows in 1_usize..300, batch in 1_usize..60, seed: u64, drop: bool, stop in 0.0..1.0, ahead in 1_usize..6,
    ) {
        let source = InMemory::new(rows, seed);
        let last = if drop { Last::Drop } else { Last::Short };
        let shuffle = Some(Shuffle { seed, block: 8, blocks: 3 });
        let options = BatchOptions { shuffle, last, epochs: 3, ahead, threads: 1, ..BatchOptions::new(batch) };
        let whole = all(&source, options);
        for threads in 2..=8 {
            prop_assert_eq!(&all(&source, BatchOptions { threads, ..options }), &whole);
        }
        let mut batches = Batches::new(Arc::clone(&source) as _, options).expect("batches");
        let stop = (whole.len() as f64 * stop) as usize;
        batches.by_ref().take(stop).for_each(|batch| { batch.expect("a batch"); });
        let start = batches.position();
        prop_assert_eq!(batches.remaining(), (whole.len() - stop) as u64);
        let text = toml::to_string(&start).expect("text");
        let start = toml::from_str(&text).expect("a position");
        prop_assert_eq!(&all(&source, BatchOptions { start, ..options })[..], &whole[stop..]);
    }

    /// The order of rows does not depend on the batch size: a run can continue with another one.
    #[test]
    fn the_order_does_not_depend_on_the_batch(rows in 1_usize..300, one in 1_usize..60, other in 1_usize..60, seed: u64) {
        let source = InMemory::new(rows, seed);
        let shuffle = Some(Shuffle { seed, block: 16, blocks: 2 });
        let order = |batch| {
            let batches = all(&source, BatchOptions { shuffle, ..BatchOptions::new(batch) });
            batches.into_iter().flat_map(|(_, rows)| rows).collect::<Vec<_>>()
        };
        prop_assert_eq!(order(one), order(other));
    }
}

/// Counts buffers and knows their addresses.
#[derive(Clone, Default)]
struct Counting {
    allocated: Arc<AtomicUsize>,
    places: Arc<Mutex<HashSet<usize>>>,
}

impl Allocate for Counting {
    type Buffer = HeapBuffer;

    fn allocate(&self, bytes: usize) -> io::Result<HeapBuffer> {
        let buffer = Heap.allocate(bytes)?;
        self.allocated.fetch_add(1, Ordering::Relaxed);
        self.places.lock().expect("places").insert(buffer.bytes().as_ptr().addr());
        Ok(buffer)
    }
}

#[test]
fn buffers_are_used_again_and_columns_keep_their_places() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut drawn = Drawn::new(5000, 3, DenseType::F32, 1);
    drawn.features.categorical.truncate(4);
    drawn.values.truncate(4);
    drawn.lengths.truncate(4);
    let dataset = drawn.write(&folder.path().join("data"), 1000, 0);
    let counting = Counting::default();
    let options = BatchOptions { threads: 3, ahead: 3, ..BatchOptions::new(64) };
    let batches =
        Batches::with_allocator(Arc::new(dataset.split(SplitName::Train)), options, counting.clone())
            .expect("batches");
    let mut layouts = HashSet::new();
    let (mut held, mut count) = (None, 0);
    for batch in batches {
        let batch = batch.expect("a batch");
        let layout = batch.layout();
        let starts = layout.categorical.iter().map(|column| column.values.start);
        layouts.insert((layout.label.start, layout.dense.start, starts.collect::<Vec<_>>(), layout.end));
        let buffer = batch.buffer().expect("memory").bytes();
        assert!(counting.places.lock().expect("places").contains(&buffer.as_ptr().addr()));
        assert_eq!(buffer.as_ptr().addr() % ALIGNMENT, 0);
        assert_eq!(batch.label(), bytemuck::cast_slice::<u8, f32>(&buffer[layout.label.clone()]));
        count += 1;
        held = Some(batch);
    }
    assert_eq!((layouts.len(), count), (1, 79));
    assert_eq!(held.expect("the last batch").rows(), 5000 % 64);
    // One is held, one is returned, three are ahead.
    assert!(counting.allocated.load(Ordering::Relaxed) <= 5, "{counting:?}", counting = counting.allocated);
}

#[test]
fn batches_may_outlive_their_iterator_and_be_kept() {
    let source = InMemory::new(100, 1);
    let expected = source.all().to_vec();
    let batches = Batches::new(source, BatchOptions { ahead: 1, ..BatchOptions::new(7) }).expect("batches");
    let kept: Vec<_> = batches.map(|batch| batch.expect("a batch")).collect();
    assert_eq!(kept.iter().flat_map(of_batch).collect::<Vec<_>>(), expected);
}

struct Short;

impl Allocate for Short {
    type Buffer = HeapBuffer;

    fn allocate(&self, bytes: usize) -> io::Result<HeapBuffer> {
        Heap.allocate(bytes - 1)
    }
}

struct Panicking;

impl Allocate for Panicking {
    type Buffer = HeapBuffer;

    fn allocate(&self, _bytes: usize) -> io::Result<HeapBuffer> {
        panic!("expected by a test")
    }
}

#[test]
fn faulty_allocators_are_errors() {
    let source = InMemory::new(100, 1);
    let first = |error: Option<Error>| error.expect("an error").to_string();
    let options = BatchOptions::new(10);
    let mut short = Batches::with_allocator(Arc::clone(&source) as _, options, Short).expect("batches");
    let error = first(short.next().and_then(Result::err));
    assert!(error.starts_with("the allocator returned"), "{error}");
    let mut panicking = Batches::with_allocator(source, options, Panicking).expect("batches");
    let error = first(panicking.next().and_then(Result::err));
    assert!(error.contains("has panicked"), "{error}");
}

#[test]
fn impossible_options_are_refused() {
    let source = InMemory::new(10, 1);
    let whole = BatchOptions::new(4);
    for (options, message) in [
        (BatchOptions::new(0), "invalid batch size: 0"),
        (BatchOptions { threads: 0, ..whole }, "invalid number of threads: 0"),
        (BatchOptions { ahead: 0, ..whole }, "invalid number of batches ahead: 0"),
        (BatchOptions { start: Position { epoch: 0, row: 11 }, ..whole }, "invalid start: 11"),
        (
            BatchOptions { shuffle: Some(Shuffle { seed: 0, block: 0, blocks: 1 }), ..whole },
            "invalid block of rows: 0",
        ),
    ] {
        let error = Batches::new(Arc::clone(&source) as _, options).expect_err(message).to_string();
        assert!(error.contains(message), "{error} for {message}");
    }
    assert_eq!(all(&source, BatchOptions { epochs: 0, ..whole }).len(), 0);
    assert_eq!(all(&source, BatchOptions { start: Position { epoch: 0, row: 10 }, ..whole }).len(), 0);
}

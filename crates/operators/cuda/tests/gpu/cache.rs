//! A row cache on a GPU: its rows and moves against the simulation, results against the CPU operators, bit by bit.
//! Without a GPU the tests are skipped with a message.

use crate::support;
use crate::support::random;

use random::Random;
use steptime_cuda::cache::{Access, CachedTable, HostTable, Policy, RowCache, Simulation};
use steptime_cuda::embedding::{Forward, Grouping, OwnedLookups, Payload, RowSettings, Sizes};
use steptime_cuda::{Buffer, Error, Stream};
use steptime_ops::Cpu;
use steptime_ops::embedding as ops;
use steptime_ops::embedding::backward::{Gradient, RowOptimizer, RowRule};
use steptime_ops::embedding::{Bounds, Element, Pooling};

/// The GPU's stream, if there is one.
fn gpu() -> Option<Stream> {
    support::device().map(|device| device.stream().unwrap())
}

/// A random row; low rows are more frequent.
fn low_row(random: &mut Random, rows: usize) -> i64 {
    let most = 1 + random.below(rows);
    random.below(most) as i64
}

const BAGS: usize = 9;

/// Indices and offsets of a batch.
type Indices = (Vec<i64>, Vec<i64>);

fn indices(random: &mut Random, rows: &[usize], most: usize, wild: bool) -> Indices {
    let (mut indices, mut offsets) = (Vec::new(), vec![0]);
    for &rows in rows {
        for _ in 0..BAGS {
            for _ in 0..random.below(most + 1) {
                let row = low_row(random, rows);
                indices.push(match random.below(20) {
                    0 if wild => -1 - row,
                    1 if wild => rows as i64 + row,
                    _ => row,
                });
            }
            offsets.push(indices.len() as i64);
        }
    }
    (indices, offsets)
}

fn tables(
    random: &mut Random,
    shapes: &[[usize; 2]],
    element: Element,
    pooling: Pooling,
) -> ops::Tables<'static> {
    let table = |&[rows, dim]: &[usize; 2]| {
        let mut table = ops::Table::zeros("t", [rows, dim], element).unwrap();
        for row in 0..rows {
            let values: Vec<f32> = (0..dim).map(|_| random.value()).collect();
            assert!(table.write_row(row, &values));
        }
        table
    };
    ops::Tables::new(shapes.iter().map(table).collect(), pooling)
}

fn cached(stream: &Stream, tables: &ops::Tables<'_>, slots: usize) -> Vec<CachedTable> {
    let cached = |(at, table)| CachedTable {
        table: HostTable::copy_of(stream.device(), table).unwrap(),
        pooling: tables.pooling(at),
        slots,
    };
    tables.iter().enumerate().map(cached).collect()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

struct Case {
    shapes: &'static [[usize; 2]],
    element: Element,
    pooling: Pooling,
    policy: Policy,
    rule: RowRule,
    slots: usize,
    wild: bool,
}

/// Trains for some batches through a cache and on the CPU; every third batch only reads.
fn compare(stream: &Stream, case: &Case) {
    let mut random = Random(case.slots as u64);
    let mut on_cpu = tables(&mut random, case.shapes, case.element, case.pooling);
    let rows: Vec<usize> = case.shapes.iter().map(|shape| shape[0]).collect();
    let bounds = if case.wild { Bounds::WarnAndZero } else { Bounds::Error };
    let batches: Vec<Indices> = (0..12).map(|_| indices(&mut random, &rows, 6, case.wild)).collect();
    let lookups: Vec<_> =
        batches.iter().map(|(indices, offsets)| ops::Lookups::new(BAGS, indices, offsets).unwrap()).collect();
    let copies: Vec<_> =
        lookups.iter().map(|lookups| OwnedLookups::upload(stream, lookups).unwrap()).collect();
    let columns = on_cpu.columns();
    let gradient: Vec<f32> = (0..BAGS * columns).map(|_| random.value()).collect();
    let most = lookups.iter().map(|lookups| lookups.len()).max().unwrap();
    let sizes = Sizes { lookups: most, ..Sizes::from_lookups(&copies[0].view(), columns) };
    let mut cache =
        RowCache::new(stream, cached(stream, &on_cpu, case.slots), case.policy, bounds, sizes).unwrap();
    let sizes = cache.sizes(columns);
    let payload = Payload::needed(cache.tables(), false);
    let mut grouping = Grouping::new(stream, cache.tables(), sizes, most, payload).unwrap();
    let settings = RowSettings::new(case.rule, 0.1);
    cache.train(stream, &grouping, sizes, settings).unwrap();
    let forward = Forward::new(stream.device(), cache.tables(), sizes, bounds).unwrap();
    let mut simulations: Vec<_> =
        (0..rows.len()).map(|table| Simulation::new(cache.sets(table), case.policy)).collect();
    let cpu = Cpu::new(1).unwrap();
    let mut optimizer = RowOptimizer::new(case.rule, 0.1, &on_cpu).unwrap();
    let device_gradient = Buffer::from_host(stream, &gradient).unwrap();
    let mut out = Buffer::<f32>::zeros(stream, BAGS * columns).unwrap();
    let access = |at: usize| if at % 3 == 2 { Access::Read } else { Access::Train };
    let mut sums = [0; 4];
    cache.prefetch(stream, &copies[0].view(), access(0)).unwrap();
    for (at, lookups) in lookups.iter().enumerate() {
        let given = copies[at].view();
        let report = cache.take(stream, &given).unwrap();
        // The simulation of this batch, and the rows on the device, before the next batch arrives.
        let protect = at.max(1) as u32;
        for (table, simulation) in simulations.iter_mut().enumerate() {
            let (indices, offsets) = &batches[at];
            let range = offsets[table * BAGS] as usize..offsets[(table + 1) * BAGS] as usize;
            let outcome = simulation.fetch(&indices[range], protect, access(at) == Access::Train);
            assert_eq!(outcome.overflows, 0);
            let all = [outcome.wanted, outcome.hits, outcome.evicted.len() as u64, outcome.written];
            sums.iter_mut().zip(all).for_each(|(sum, one)| *sum += one);
            assert_eq!(cache.cached_rows(table).unwrap(), simulation.rows(), "batch {at}, table {table}");
        }
        let found = cache.statistics();
        assert_eq!([found.wanted, found.hits, found.evicted, found.written], sums, "batch {at}");
        if at == 5 {
            // The rows of this batch, which are not trained yet, stay marked as changed.
            cache.flush(stream).unwrap();
            let outstanding = at as u32 + 1;
            simulations.iter_mut().for_each(|simulation| simulation.clean(outstanding));
        }
        if let Some(next) = copies.get(at + 1) {
            cache.prefetch(stream, &next.view(), access(at + 1)).unwrap();
        }
        let mut expected = vec![0.0; BAGS * columns];
        let known = ops::forward_reference(&on_cpu, lookups, bounds, &mut expected, columns).unwrap();
        assert_eq!(report, known);
        let batch = cache.batch(&given).unwrap();
        forward.run(stream, batch.tables, &batch.lookups, &mut out.as_mut()).unwrap();
        assert_eq!(bits(&out.to_host(stream).unwrap()), bits(&expected), "batch {at}");
        if access(at) == Access::Train {
            grouping.run(stream, &batch.lookups).unwrap();
            let to = device_gradient.as_ref();
            batch
                .optimizer
                .unwrap()
                .step(stream, batch.tables, &batch.lookups, &grouping, bounds, to)
                .unwrap();
            let mut groups = ops::group::Grouping::new();
            groups.group(&cpu, &on_cpu, lookups, bounds).unwrap();
            let to = Gradient::new(&gradient, columns);
            optimizer.step(&cpu, &mut on_cpu, lookups, &groups, bounds, &to).unwrap();
        }
    }
    assert!(case.slots > 1000 || sums[2] > 20, "{sums:?}");
    let contents = cache.flush(stream).unwrap();
    for (table, host) in contents.tables.iter().enumerate() {
        let expected = on_cpu.table(table);
        for row in 0..host.rows() {
            assert_eq!(host.row(row), expected.row(row), "table {table}, row {row}");
        }
        let state = &optimizer.states()[table];
        for row in 0..host.rows() {
            let pitch = contents.states[table].len() / host.rows();
            let found = &contents.states[table][row * pitch..][..state.width()];
            assert_eq!(bits(found), bits(state.row(row)), "state of table {table}, row {row}");
        }
    }
}

#[test]
fn training_through_a_cache_has_the_bits_of_the_cpu() {
    let Some(stream) = gpu() else { return };
    let (sum, mean) = (Pooling::Sum, Pooling::Mean);
    let adagrad = RowRule::Adagrad { eps: 1e-8 };
    let cases: [(&'static [[usize; 2]], _, _, _, _, _, _); 6] = [
        (&[[3000, 128], [777, 8]], Element::F32, sum, Policy::Lru, RowRule::SGD, 130, false),
        (&[[3000, 128], [777, 8]], Element::F32, sum, Policy::Lfu, adagrad, 130, true),
        (&[[5000, 33]], Element::F32, mean, Policy::Lru, RowRule::ADAM, 96, true),
        (&[[2000, 7], [40, 64], [1, 5]], Element::F16, sum, Policy::Lfu, RowRule::SGD, 128, false),
        (&[[900, 1], [50_000, 200]], Element::Bf16, mean, Policy::Lru, adagrad, 160, true),
        (&[[900, 36], [1200, 16]], Element::F32, sum, Policy::Lru, RowRule::ADAM, 5000, false),
    ];
    std::thread::scope(|scope| {
        for (shapes, element, pooling, policy, rule, slots, wild) in cases {
            let stream = stream.device().stream().unwrap();
            let case = Case { shapes, element, pooling, policy, rule, slots, wild };
            scope.spawn(move || compare(&stream, &case));
        }
    });
}

#[test]
fn what_does_not_fit_is_said_and_loses_nothing() {
    let Some(stream) = gpu() else { return };
    let tables = tables(&mut Random(7), &[[1000, 16]], Element::F32, Pooling::Sum);
    let upload = |range: std::ops::Range<i64>| {
        let indices: Vec<i64> = range.collect();
        let offsets = vec![0, indices.len() as i64];
        OwnedLookups::upload(&stream, &ops::Lookups::new(1, &indices, &offsets).unwrap()).unwrap()
    };
    let (first, second, large) = (upload(0..20), upload(20..40), upload(0..40));
    let sizes = Sizes { lookups: 40, ..Sizes::from_lookups(&first.view(), 16) };
    let mut cache =
        RowCache::new(&stream, cached(&stream, &tables, 32), Policy::Lru, Bounds::Error, sizes).unwrap();
    let text = |error: Error| error.to_string();
    assert!(text(cache.take(&stream, &first.view()).unwrap_err()).contains("prefetch"));
    cache.prefetch(&stream, &large.view(), Access::Train).unwrap();
    assert!(text(cache.prefetch(&stream, &first.view(), Access::Train).unwrap_err()).contains("take"));
    let error = text(cache.take(&stream, &large.view()).unwrap_err());
    assert!(error.contains("40 distinct rows") && error.contains("32 slots"), "{error}");
    assert!(error.contains("table \"t\" needs 96 slots and has 32"), "{error}");
    cache.prefetch(&stream, &first.view(), Access::Train).unwrap();
    cache.take(&stream, &first.view()).unwrap();
    cache.prefetch(&stream, &second.view(), Access::Train).unwrap();
    let error = text(cache.take(&stream, &second.view()).unwrap_err());
    assert!(error.contains("in use") && error.contains("finish"), "{error}");
    assert!(cache.batch(&first.view()).is_ok() && cache.batch(&second.view()).is_err());
    cache.finish();
    cache.prefetch(&stream, &second.view(), Access::Train).unwrap();
    cache.take(&stream, &second.view()).unwrap();
    assert_eq!(cache.statistics().batches, 2);
    let wrong = upload(990..1001);
    cache.finish();
    cache.prefetch(&stream, &wrong.view(), Access::Read).unwrap();
    let error = text(cache.take(&stream, &wrong.view()).unwrap_err());
    assert!(error.contains("1000") && error.contains("lookup 10"), "{error}");
    let host = &cache.forget(&stream).unwrap().tables[0];
    for row in 0..1000 {
        assert_eq!(host.row(row), tables.table(0).row(row));
    }
    assert!(cache.cached_rows(0).unwrap().iter().all(Option::is_none));
    for geometry in cache.geometry().unwrap() {
        println!("{geometry}");
    }
}

/// Prints times: of fetching rows alone, and of training while the next batch's rows are fetched.
#[test]
#[ignore = "takes two gigabytes of pinned memory; for its printed times"]
fn times() {
    let Some(stream) = gpu() else { return };
    let device = stream.device();
    let ([rows, dim], bags, lookups, count) = ([1_usize << 22, 128], 8192_usize, 1 << 17, 24);
    for (name, skew) in [("uniform", 1), ("skewed", 4)] {
        let mut random = Random(1);
        let batch = |_| {
            let row = |random: &mut Random| {
                let place = random.below(1 << 30) as f64 / f64::from(1 << 30);
                (place.powi(skew) * rows as f64) as i64
            };
            let indices: Vec<i64> = (0..lookups).map(|_| row(&mut random)).collect();
            let offsets: Vec<i64> = (0..=bags).map(|bag| (bag * lookups / bags) as i64).collect();
            OwnedLookups::upload(&stream, &ops::Lookups::new(bags, &indices, &offsets).unwrap()).unwrap()
        };
        let batches: Vec<_> = (0..count).map(batch).collect();
        let table = HostTable::zeros(device, "t", [rows, dim], Element::F32).unwrap();
        let cached = CachedTable { table, pooling: Pooling::Sum, slots: 1 << 20 };
        let sizes = Sizes::from_lookups(&batches[0].view(), dim);
        let mut cache = RowCache::new(&stream, vec![cached], Policy::Lru, Bounds::Error, sizes).unwrap();
        let sizes = cache.sizes(dim);
        let mut grouping = Grouping::new(&stream, cache.tables(), sizes, lookups, Payload::Bag).unwrap();
        cache.train(&stream, &grouping, sizes, RowSettings::new(RowRule::SGD, 0.1)).unwrap();
        let forward = Forward::new(device, cache.tables(), sizes, Bounds::Error).unwrap();
        let gradient = Buffer::<f32>::zeros(&stream, bags * dim).unwrap();
        let mut out = Buffer::<f32>::zeros(&stream, bags * dim).unwrap();
        let mut median = |what: &str, work: &mut dyn FnMut(&mut RowCache, usize)| {
            let before = cache.statistics();
            let mut times = Vec::new();
            for at in 0..count {
                stream.synchronize().unwrap();
                let start = std::time::Instant::now();
                work(&mut cache, at);
                stream.synchronize().unwrap();
                times.push(start.elapsed().as_secs_f64() * 1e3);
            }
            let found = cache.statistics();
            let moved = (found.misses() - before.misses() + found.written - before.written) * 512;
            let (wanted, hits) = (found.wanted - before.wanted, found.hits - before.hits);
            let rate = moved as f64 / times.iter().sum::<f64>() / 1e6;
            times.sort_unstable_by(f64::total_cmp);
            let rows = wanted / count as u64;
            println!(
                "{name}, {what}: {:.3} ms a batch (least {:.3}) of {rows} rows, {:.1} % hits, {rate:.1} GB/s",
                times[count / 2],
                times[0],
                100.0 * hits as f64 / wanted as f64
            );
        };
        for _ in 0..2 {
            median("rows alone", &mut |cache, at| {
                cache.prefetch(&stream, &batches[at].view(), Access::Train).unwrap();
                cache.take(&stream, &batches[at].view()).unwrap();
            });
        }
        let mut train = |cache: &mut RowCache, at: usize| {
            let lookups = batches[at].view();
            let batch = cache.batch(&lookups).unwrap();
            forward.run(&stream, batch.tables, &batch.lookups, &mut out.as_mut()).unwrap();
            grouping.run(&stream, &batch.lookups).unwrap();
            let (optimizer, to) = (batch.optimizer.unwrap(), gradient.as_ref());
            optimizer.step(&stream, batch.tables, &batch.lookups, &grouping, Bounds::Error, to).unwrap();
        };
        median("forward and backward after their rows", &mut |cache, at| {
            cache.prefetch(&stream, &batches[at].view(), Access::Train).unwrap();
            cache.take(&stream, &batches[at].view()).unwrap();
            train(cache, at);
        });
        median("the same rows, all there", &mut |cache, at| {
            if at == 0 {
                cache.prefetch(&stream, &batches[0].view(), Access::Train).unwrap();
                cache.take(&stream, &batches[0].view()).unwrap();
            }
            train(cache, 0);
        });
        cache.prefetch(&stream, &batches[0].view(), Access::Train).unwrap();
        let start = std::time::Instant::now();
        for at in 0..count {
            cache.take(&stream, &batches[at].view()).unwrap();
            if let Some(next) = batches.get(at + 1) {
                cache.prefetch(&stream, &next.view(), Access::Train).unwrap();
            }
            train(&mut cache, at);
        }
        stream.synchronize().unwrap();
        let time = start.elapsed().as_secs_f64() * 1e3 / count as f64;
        println!("{name}, forward and backward beside the next batch's rows: {time:.3} ms a batch");
    }
}

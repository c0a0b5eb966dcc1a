//! Tables in host memory behind row caches: their choice, and steps with the bits of those without.

use std::collections::BTreeMap;

use steptime_cuda::Device;
use steptime_cuda::cache::{Policy, Sets, Simulation, Statistics};
use steptime_cuda::gemm::Math;
use steptime_eager::Model;
use steptime_ops::Cpu;
use steptime_rewrite::{FuseLinear, Operators};
use steptime_runtime::{CacheableTable, DescribedStep, GpuOptions, Program, Region, Reuse, Session, Target};

use crate::common::{BATCHES, bits, described, device, feed, fill, names, shipped};

/// Rows of a cache with room for the rows of one batch, and not for those of two.
const ROOM_FOR_ONE: usize = 288;

fn model(optimizer: &str) -> Model {
    Model::parse(&format!(
        "model = 'dlrm'\nbatch = 64\ndense = 5\nbottom_mlp = [16, 8]\ntop_mlp = [16, 1]\ntable_init = 'uniform'
        tables = [{{ rows = 5000, columns = 8, lookups = 2 }}, {{ rows = 300, columns = 8 }},
            {{ rows = 2001, columns = 8, lookups = 3 }}, {{ rows = 7, columns = 8 }}]
        optimizer = {{ name = '{optimizer}' }}"
    ))
    .expect("a model")
}

fn by_operators(model: &Model) -> DescribedStep {
    described(model, &[&Operators, &FuseLinear])
}

fn for_gpu(described: &DescribedStep) -> Program {
    Program::for_target(described, Target::Cuda, Reuse::ByLifetime).unwrap_or_else(|error| panic!("{error}"))
}

/// The names of the tables of [`model`], in order.
fn table_names(program: &Program) -> Vec<String> {
    program.cacheable_tables().into_iter().map(|table| table.name).collect()
}

#[test]
fn tables_of_the_operators_can_be_in_host_memory() {
    let described = by_operators(&model("adagrad"));
    let program = for_gpu(&described);
    let tables = program.cacheable_tables();
    let sizes: Vec<_> = tables.iter().map(|table| (table.shape, table.lookups, table.state)).collect();
    assert_eq!(sizes, [([5000, 8], 128, 8), ([300, 8], 64, 8), ([2001, 8], 192, 8), ([7, 8], 64, 8)]);
    assert!(tables.iter().all(|table| table.call == 0));
    // Without the rule a table has a dense gradient, and on a CPU there is no cache.
    let plain = DescribedStep::new(&model("adagrad")).expect("a step");
    assert!(for_gpu(&plain).cacheable_tables().is_empty());
    assert!(Program::new(&described).expect("a program").cacheable_tables().is_empty());
}

#[test]
fn all_tables_of_shipped_models_can_be_in_host_memory_where_the_operators_apply() {
    let mut counted = 0;
    for name in names() {
        let model = shipped(&name);
        let mut step = DescribedStep::new(&model).expect("a step");
        let ops = step.ops().clone();
        let facts = steptime_rewrite::Facts::new(&ops, Some(model.batch()));
        if steptime_rewrite::apply(&mut step.step, &[&Operators], &facts).is_err() {
            continue;
        }
        let Ok(program) = Program::for_target(&step, Target::Cuda, Reuse::ByLifetime) else { continue };
        let (found, all) = (program.cacheable_tables().len(), model.tables().len());
        println!("{name}: {found} of {all} tables");
        // Each feature of a wide part has a table of weights, and one of vectors.
        let is_wide = ["wide_and_deep", "deepfm"].contains(&&*name);
        assert_eq!(found, if is_wide { 2 * all } else { all }, "{name}");
        counted += 1;
    }
    assert!(counted >= 5, "{counted}");
}

#[test]
fn tables_leave_the_memory_of_the_device() {
    let described = by_operators(&model("sgd"));
    let (whole, program) = (for_gpu(&described), for_gpu(&described));
    let names = table_names(&whole);
    let cached = program.with_row_caches(&BTreeMap::from([(names[0].clone(), 500)])).expect("a table");
    let host = cached.plan().bytes(Region::Host);
    let pieces = [5000, 300, 2001, 7].map(|rows: usize| (32 * rows).next_multiple_of(64));
    assert_eq!(host, pieces.iter().sum::<usize>());
    assert_eq!(whole.plan().bytes(Region::Kept) - cached.plan().bytes(Region::Kept), host);
    assert_eq!(whole.plan().peak() - cached.plan().peak(), host);
    let [on_host, on_device] = cached.row_cache_bytes();
    assert_eq!(on_host, 32 * (5000 + 300 + 2001 + 7));
    // 500 rows of the first table, and all rows of the others.
    let bytes = |rows, slots| Sets::new(rows, slots).device_bytes(32);
    assert_eq!(on_device, bytes(5000, 500) + bytes(300, 300) + bytes(2001, 2001) + bytes(7, 7));
    println!("{cached}");
    let unknown = for_gpu(&described).with_row_caches(&BTreeMap::from([("tables.9".to_owned(), 1)]));
    let error = unknown.expect_err("no such table").to_string();
    assert!(error.contains("tables.9") && error.contains(&names[3]), "{error}");
}

/// The indices of a table in the batches of [`feed`].
fn indices(table: usize, batch: usize, size: &CacheableTable) -> Vec<i64> {
    let name = format!("tables.{table}.indices.{batch}");
    bits(&name, size.lookups).map(|bits| (bits % size.shape[0] as u64) as i64).collect()
}

/// Number of batches that do not fit a cache, beside the batch before or after it.
fn overflows(table: usize, size: &CacheableTable, slots: usize, beside: bool) -> usize {
    let mut cache = Simulation::new(Sets::new(size.shape[0], slots), Policy::Lru);
    let fits = |batch: u32| {
        let protect = if beside { batch } else { batch + 1 };
        cache.fetch(&indices(table, batch as usize % BATCHES, size), protect, true).overflows > 0
    };
    (0..20).map(fits).filter(|over| *over).count()
}

#[test]
fn sufficient_caches_hold_two_batches_and_small_ones_one() {
    let sizes = for_gpu(&by_operators(&model("sgd"))).cacheable_tables();
    for (at, size) in sizes.iter().enumerate() {
        assert_eq!(overflows(at, size, size.sufficient_slots(), true), 0, "table {at}");
        assert_eq!(overflows(at, size, size.shape[0], true), 0, "table {at}");
    }
    assert_eq!(overflows(0, &sizes[0], ROOM_FOR_ONE, false), 0);
    assert!(overflows(0, &sizes[0], ROOM_FOR_ONE, true) > 0);
    assert!(overflows(0, &sizes[0], 32, false) > 0);
}

fn session(device: &Device, program: Program, graph: bool) -> Session {
    let options = GpuOptions { device: device.clone(), math: Math::Full, graph, group: None };
    let cpu = Cpu::new(2).expect("threads");
    let mut session = Session::on_gpu(program, options, &cpu, 1).expect("a session");
    let numbers = session.numbers().with_rate(0.05);
    session.set_numbers(numbers).expect("a rate");
    session
}

fn cached(described: &DescribedStep, slots: &[(usize, usize)]) -> Program {
    let program = for_gpu(described);
    let names = table_names(&program);
    let slots = slots.iter().map(|&(table, slots)| (names[table].clone(), slots)).collect();
    program.with_row_caches(&slots).expect("tables")
}

/// Losses of 20 steps with an evaluation, a reading and a change between them, and all tensors at the end, as bits.
#[derive(PartialEq)]
struct Trained {
    losses: Vec<u32>,
    outputs: Vec<u32>,
    tensors: BTreeMap<String, Vec<u32>>,
    statistics: Option<Statistics>,
}

fn as_bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn train(session: &mut Session, model: &Model) -> Trained {
    let (mut losses, mut outputs) = (Vec::new(), Vec::new());
    let initial: Vec<String> = session.tensors().into_iter().map(|tensor| tensor.name).collect();
    for step in 0..20 {
        feed(session, model, step % BATCHES);
        // A step goes on while the next one is fed.
        losses.extend(session.start().expect("a step").map(f32::to_bits));
        if step == 7 {
            losses.extend(session.finish().expect("a loss").map(f32::to_bits));
            feed(session, model, 3);
            outputs.extend(as_bits(&session.forward().expect("a forward pass").values));
        }
        if step == 12 {
            for name in &initial {
                outputs.extend(as_bits(&session.read(name).expect("a tensor")));
            }
        }
        if step == 15 {
            let table = initial.iter().find(|name| name.contains("tables.0")).expect("a table");
            let changed: Vec<f32> =
                session.read(table).expect("a table").iter().map(|value| value * 0.5).collect();
            session.write(table, &changed).expect("a table");
        }
    }
    losses.extend(session.finish().expect("a loss").map(f32::to_bits));
    let read = |name: String| (name.clone(), as_bits(&session.read(&name).expect("a tensor")));
    let tensors = initial.into_iter().map(read).collect();
    Trained { losses, outputs, tensors, statistics: session.row_cache_statistics() }
}

/// The differences of two runs, in words.
fn differences(own: &Trained, plain: &Trained) -> Vec<String> {
    let mut all = Vec::new();
    let first = |own: &[u32], plain: &[u32]| own.iter().zip(plain).position(|(own, plain)| own != plain);
    if own.losses != plain.losses {
        let [losses, expected] =
            [own, plain].map(|run| run.losses.iter().map(|&bits| f32::from_bits(bits)).collect::<Vec<f32>>());
        let at = first(&own.losses, &plain.losses);
        all.push(format!("losses from step {at:?} on: {losses:?}, expected {expected:?}"));
    }
    if own.outputs != plain.outputs {
        let at = first(&own.outputs, &plain.outputs);
        all.push(format!("the outputs from {at:?} of {} on", own.outputs.len()));
    }
    for (name, values) in &own.tensors {
        let expected = &plain.tensors[name];
        if values != expected {
            let at = first(values, expected).unwrap_or(values.len().min(expected.len()));
            let count = values.iter().zip(expected).filter(|(own, plain)| own != plain).count();
            let [value, other] = [values, expected].map(|all| all.get(at).map(|&bits| f32::from_bits(bits)));
            all.push(format!(
                "{name}: {count} of {} elements, the first {at}: {value:?}, expected {other:?}",
                values.len()
            ));
        }
    }
    all
}

#[test]
fn steps_with_tables_in_host_memory_have_the_bits_of_those_without() {
    let Some(device) = device() else { return };
    let caches: [(&str, &[(usize, usize)]); 4] = [
        ("all rows cached", &[(1, 300)]),
        ("room for two batches", &[(0, 768), (2, 1152)]),
        ("room for one batch", &[(0, ROOM_FOR_ONE)]),
        ("small caches of all", &[(0, ROOM_FOR_ONE), (1, 200), (2, 500), (3, 7)]),
    ];
    let mut failed = Vec::new();
    for optimizer in ["sgd", "adagrad", "adam"] {
        let model = model(optimizer);
        let described = by_operators(&model);
        let plain = train(&mut session(&device, for_gpu(&described), true), &model);
        for (name, slots) in caches {
            for graph in [true, false] {
                let own = train(&mut session(&device, cached(&described, slots), graph), &model);
                let statistics = own.statistics.expect("a cache");
                let differences = differences(&own, &plain);
                println!(
                    "{optimizer}, {name}, graph {graph}: {statistics:?}, {} differences",
                    differences.len()
                );
                if !differences.is_empty() {
                    failed.push(format!("{optimizer}, {name}, graph {graph}: {}", differences.join("\n  ")));
                }
                if name != "all rows cached" && statistics.written == 0 {
                    failed.push(format!("{optimizer}, {name}, graph {graph}: no row left: {statistics:?}"));
                }
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn initial_tables_and_resumed_steps_have_the_same_bits_in_host_memory() {
    let Some(device) = device() else { return };
    let model = model("adagrad");
    let described = by_operators(&model);
    let slots = [(0, ROOM_FOR_ONE), (2, 1152)];
    let mut plain = session(&device, for_gpu(&described), true);
    let mut one = session(&device, cached(&described, &slots), true);
    let mut other = session(&device, cached(&described, &slots), true);
    let names: Vec<String> = one.tensors().into_iter().map(|tensor| tensor.name).collect();
    assert_eq!(names, plain.tensors().into_iter().map(|tensor| tensor.name).collect::<Vec<_>>());
    for name in &names {
        let [own, expected] = [&mut one, &mut plain].map(|session| session.read(name).expect("a tensor"));
        assert!(as_bits(&own) == as_bits(&expected), "initial {name}");
    }
    [&mut one, &mut other, &mut plain].into_iter().for_each(fill);
    let run = |session: &mut Session, from: usize| -> Vec<u32> {
        let step = |at: usize| {
            feed(session, &model, at % BATCHES);
            session.step().expect("a step").to_bits()
        };
        (from..from + 6).map(step).collect()
    };
    assert_eq!(run(&mut one, 0), run(&mut plain, 0), "six steps");
    for name in &names {
        let values = one.read(name).expect("a tensor");
        other.write(name, &values).expect("the same tensor");
    }
    other.set_steps(one.steps());
    let expected = run(&mut plain, 6);
    assert_eq!(run(&mut one, 6), expected, "six more steps");
    assert_eq!(run(&mut other, 6), expected, "six steps after a resumption");
}

#[test]
fn a_batch_that_no_cache_holds_and_an_index_that_no_table_has_are_refused_and_change_nothing() {
    let Some(device) = device() else { return };
    let model = model("sgd");
    let described = by_operators(&model);
    let mut small = session(&device, cached(&described, &[(0, 32)]), true);
    let table = table_names(small.program())[0].clone();
    let before = small.read(&table).expect("a table");
    feed(&mut small, &model, 0);
    let error = small.step().expect_err("a cache of 32 rows for 128").to_string();
    println!("{error}");
    let needed = Sets::for_batch(5000, &indices(0, 0, &small.program().cacheable_tables()[0])).slots();
    assert!(error.contains(&format!("{table:?} needs {needed} slots and has 32")), "{error}");
    assert!(!error.contains("next to the batch"), "{error}");
    assert!(as_bits(&small.read(&table).expect("a table")) == as_bits(&before), "{table} has changed");

    let mut session = session(&device, cached(&described, &[(0, ROOM_FOR_ONE)]), true);
    feed(&mut session, &model, 0);
    let first = session.step().expect("a step");
    let mut wrong = indices(0, 0, &session.program().cacheable_tables()[0]);
    wrong[5] = 5000;
    session.feed_ints("tables.0.indices", &wrong).expect("an input");
    let error = session.step().expect_err("row 5000 of 5000").to_string();
    println!("{error}");
    assert!(error.contains("5000") && error.contains(&table), "{error}");
    assert_eq!(session.steps(), 1);
    feed(&mut session, &model, 0);
    let second = session.step().expect("a step after the refused one");
    assert!(second < first, "{second} after {first}");
}

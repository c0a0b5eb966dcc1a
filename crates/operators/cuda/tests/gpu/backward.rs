//! Backward passes on a GPU against the CPU operators, bit by bit. Without a GPU the tests are skipped with a message.

use crate::support;
use crate::support::number::Number;
use crate::support::random;

use half::bf16;
use random::Random;
use steptime_cuda::embedding::{
    Grouping, OwnedLookups, Payload, RowOptimizer, RowSettings, Sizes, Table, Tables,
};
use steptime_cuda::{Buffer, Error, Graph, Stream};
use steptime_ops::Cpu;
use steptime_ops::embedding as ops;
use steptime_ops::embedding::backward::{Decay, Gradient, Rounding, RowRule};
use steptime_ops::embedding::{Bounds, Element, Pooling};

/// The GPU's stream, if there is one.
fn gpu() -> Option<Stream> {
    support::device().map(|device| device.stream().unwrap())
}

/// A problem: tables, lookups with some frequent rows, and gradients.
struct Case {
    tables: ops::Tables<'static>,
    bags: usize,
    indices: Vec<i64>,
    offsets: Vec<i64>,
    weights: Option<Vec<f32>>,
    gradient: Vec<f32>,
    stride: usize,
    longest: usize,
}

struct Shape {
    /// E and D of each table.
    tables: &'static [[usize; 2]],
    element: Element,
    pooling: Pooling,
    bags: usize,
    most: usize,
    weighted: bool,
    wild: bool,
    pad: usize,
}

impl Case {
    fn new(seed: u64, shape: &Shape) -> Case {
        let mut random = Random(seed);
        let table = |random: &mut Random, [rows, dim]: [usize; 2]| {
            let mut table = ops::Table::zeros("t", [rows, dim], shape.element).unwrap();
            let mut values = vec![0.0; dim];
            for row in 0..rows {
                values.iter_mut().for_each(|value| *value = random.value());
                assert!(table.write_row(row, &values));
            }
            table
        };
        let tables = shape.tables.iter().map(|&shape| table(&mut random, shape)).collect();
        let tables = ops::Tables::new(tables, shape.pooling);
        let (mut indices, mut offsets, mut longest) = (Vec::new(), vec![0], 0);
        for [rows, _] in shape.tables {
            let before = indices.len();
            for _ in 0..shape.bags {
                for _ in 0..random.below(shape.most + 1) {
                    let index = if random.below(3) == 0 { rows / 2 } else { random.below(*rows) } as i64;
                    indices.push(match random.below(30) {
                        0 if shape.wild => -1 - index,
                        1 if shape.wild => *rows as i64 + index,
                        _ => index,
                    });
                }
                offsets.push(indices.len() as i64);
            }
            longest = longest.max(indices.len() - before);
        }
        let apart = shape.pooling == Pooling::None;
        let columns = if apart { shape.tables[0][1] } else { tables.columns() };
        let stride = columns + shape.pad;
        let rows = if apart { indices.len() } else { shape.bags };
        let gradient = (0..rows * stride).map(|_| random.value()).collect();
        let weights = shape.weighted.then(|| indices.iter().map(|_| random.value()).collect());
        Case { tables, bags: shape.bags, indices, offsets, weights, gradient, stride, longest }
    }

    fn lookups(&self) -> ops::Lookups<'_> {
        let lookups = ops::Lookups::new(self.bags, &self.indices, &self.offsets).unwrap();
        match &self.weights {
            Some(weights) => lookups.with_weights(weights).unwrap(),
            None => lookups,
        }
    }
}

/// All operands of a case on the GPU.
struct OnGpu<G = f32> {
    tables: Tables<'static>,
    lookups: OwnedLookups,
    grouping: Grouping,
    optimizer: RowOptimizer<G>,
    gradient: Buffer<G>,
}

impl<G: Number> OnGpu<G> {
    fn new(stream: &Stream, case: &Case, settings: RowSettings, longest: usize) -> OnGpu<G> {
        let tables = case.tables.try_map(|table| Table::upload(stream, table)).unwrap();
        let lookups = OwnedLookups::upload(stream, &case.lookups()).unwrap();
        let sizes = Sizes::from_lookups(&lookups.view(), case.stride);
        let payload = Payload::needed(&tables, sizes.weighted);
        let grouping = Grouping::new(stream, &tables, sizes, longest, payload).unwrap();
        let optimizer = RowOptimizer::new(stream, &tables, &grouping, sizes, settings).unwrap();
        let gradient: Vec<G> = case.gradient.iter().map(|&value| G::rounded(value)).collect();
        let gradient = Buffer::from_host(stream, &gradient).unwrap();
        OnGpu { tables, lookups, grouping, optimizer, gradient }
    }

    fn step(&mut self, stream: &Stream, bounds: Bounds) -> Result<(), Error> {
        let lookups = self.lookups.view();
        self.grouping.run(stream, &lookups)?;
        let gradient = self.gradient.as_ref();
        self.optimizer.step(stream, &mut self.tables, &lookups, &self.grouping, bounds, gradient)
    }

    fn weights(&self, stream: &Stream, table: usize) -> Vec<u8> {
        let slice = self.tables.table(table).bytes();
        let mut bytes = vec![0; slice.len()];
        slice.read(stream, &mut bytes).unwrap();
        bytes
    }
}

/// The elements of a row, widened.
fn widen(element: Element, bytes: &[u8]) -> Vec<f32> {
    let half = |pair: &[u8]| u16::from_ne_bytes([pair[0], pair[1]]);
    match element {
        Element::F32 => {
            bytes.chunks_exact(4).map(|four| f32::from_ne_bytes(four.try_into().unwrap())).collect()
        }
        Element::F16 => bytes.chunks_exact(2).map(|two| half::f16::from_bits(half(two)).to_f32()).collect(),
        _ => bytes.chunks_exact(2).map(|two| half::bf16::from_bits(half(two)).to_f32()).collect(),
    }
}

/// Fails unless both are equal: bit by bit, or within rounding where squares are added up in another order.
fn same(found: &[f32], expected: &[f32], loose: f32, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let close = (found - expected).abs() <= loose * expected.abs().max(1.0);
        assert!(
            found.to_bits() == expected.to_bits() || (loose > 0.0 && close),
            "{what}, {at}: {found} for {expected}"
        );
    }
}

fn compare(stream: &Stream, seed: u64, shape: &Shape, settings: RowSettings, bounds: Bounds, longest: usize) {
    compare_gradients::<f32>(stream, seed, shape, settings, bounds, longest);
}

/// Compares steps with gradients that are rounded to `G`.
fn compare_gradients<G: Number>(
    stream: &Stream,
    seed: u64,
    shape: &Shape,
    settings: RowSettings,
    bounds: Bounds,
    longest: usize,
) {
    let what = format!("{settings:?} {bounds:?} {:?} {} {:?}", shape.pooling, shape.element, shape.tables);
    let mut case = Case::new(seed, shape);
    case.gradient.iter_mut().for_each(|value| *value = G::rounded(*value).value());
    let mut gpu = OnGpu::<G>::new(stream, &case, settings, longest.max(case.longest));
    for _ in 0..3 {
        gpu.step(stream, bounds).unwrap();
    }
    let cpu = Cpu::new(1).unwrap();
    let mut optimizer = ops::backward::RowOptimizer::new(settings.rule, settings.lr, &case.tables).unwrap();
    optimizer = optimizer.with_decay(settings.decay).unwrap().with_rounding(settings.rounding);
    let mut grouping = ops::group::Grouping::new();
    let (bags, indices, offsets, weights) = (case.bags, &case.indices, &case.offsets, &case.weights);
    let mut lookups = ops::Lookups::new(bags, indices, offsets).unwrap();
    if let Some(weights) = weights {
        lookups = lookups.with_weights(weights).unwrap();
    }
    let report = grouping.group(&cpu, &case.tables, &lookups, bounds).unwrap();
    let gradient = Gradient::new(&case.gradient, case.stride);
    for _ in 0..3 {
        optimizer.step(&cpu, &mut case.tables, &lookups, &grouping, bounds, &gradient).unwrap();
    }
    let view = gpu.lookups.view();
    assert_eq!(gpu.grouping.check(stream, &gpu.tables, &view, bounds).unwrap(), report, "{what}");
    if settings.rounding != Rounding::Nearest {
        assert_eq!(gpu.optimizer.steps(stream).unwrap(), 3);
    }
    let row_wise =
        matches!(settings.rule, RowRule::RowWiseAdagrad { .. } | RowRule::PartialRowWiseAdam { .. });
    let step_of_half = if shape.element == Element::F32 { 2e-6 } else { 1e-2 };
    let loose = if row_wise { step_of_half } else { 0.0 };
    for table in 0..case.tables.len() {
        let on_cpu = case.tables.table(table);
        let bytes = gpu.weights(stream, table);
        let (state, pitch) = gpu.optimizer.state(table);
        let state = state.to_host(stream).unwrap();
        for row in 0..on_cpu.rows() {
            let at = row * on_cpu.pitch();
            let found = widen(shape.element, &bytes[at..at + on_cpu.row_bytes()]);
            let what = format!("{what} table {table} row {row}");
            same(&found, &widen(shape.element, on_cpu.row(row)), loose, &what);
            let expected = optimizer.states()[table].row(row);
            let loose = if row_wise { 1e-5 } else { 0.0 };
            same(&state[row * pitch..][..expected.len()], expected, loose, &format!("{what} state"));
        }
    }
}

const PLAIN: Shape = Shape {
    tables: &[[700, 128], [3, 128], [90, 128]],
    element: Element::F32,
    pooling: Pooling::Sum,
    bags: 300,
    most: 7,
    weighted: false,
    wild: false,
    pad: 0,
};

fn settings(rule: RowRule) -> RowSettings {
    RowSettings::new(rule, 0.03)
}

#[test]
fn every_rule_has_the_bits_of_the_cpu() {
    let Some(stream) = gpu() else { return };
    let (beta1, beta2, eps) = (0.9, 0.99, 1e-3);
    let rules = [
        RowRule::SGD,
        RowRule::Sgd { momentum: 0.9 },
        RowRule::Adagrad { eps },
        RowRule::RowWiseAdagrad { eps },
        RowRule::Adam { beta1, beta2, eps },
        RowRule::PartialRowWiseAdam { beta1, beta2, eps },
    ];
    for (seed, rule) in (1..).zip(rules) {
        for decay in [Decay::None, Decay::Gradient(0.01), Decay::Weights(0.1)] {
            let settings = RowSettings { decay, ..settings(rule) };
            compare(&stream, seed, &PLAIN, settings, Bounds::Error, 0);
        }
    }
}

fn every_width(element: Element) {
    let Some(stream) = gpu() else { return };
    let tables: [&[[usize; 2]]; 5] = [
        &[[50, 1], [9, 7], [300, 33]],
        &[[500, 8], [20, 16]],
        &[[100, 32], [1000, 64]],
        &[[40, 260]],
        &[[30, 1030]],
    ];
    for (seed, tables) in (1..).zip(tables) {
        let shape = Shape { tables, element, pad: 4 * (seed as usize % 2), ..PLAIN };
        let random = element != Element::F32 && seed < 3;
        let rounding = if random { Rounding::Stochastic { seed: 5 } } else { Rounding::Nearest };
        let settings = RowSettings { rounding, ..settings(RowRule::Sgd { momentum: 0.5 }) };
        compare(&stream, seed, &shape, settings, Bounds::Error, 0);
    }
}

#[test]
fn every_width_of_floats_has_the_bits_of_the_cpu() {
    every_width(Element::F32);
}

#[test]
fn every_width_of_halves_has_the_bits_of_the_cpu() {
    every_width(Element::F16);
}

#[test]
fn every_width_of_brain_floats_has_the_bits_of_the_cpu() {
    every_width(Element::Bf16);
}

#[test]
fn gradients_of_16_bits_have_the_bits_of_the_cpu() {
    let Some(stream) = gpu() else { return };
    let compare = |seed, shape: &Shape, rule| {
        compare_gradients::<bf16>(&stream, seed, shape, settings(rule), Bounds::WarnAndZero, 0);
    };
    for rule in [RowRule::SGD, RowRule::ADAM, RowRule::ROW_WISE_ADAGRAD] {
        compare(1, &PLAIN, rule);
    }
    for pooling in [Pooling::Mean, Pooling::Max, Pooling::None] {
        let weighted = pooling == Pooling::Mean;
        compare(2, &Shape { pooling, weighted, tables: &[[40, 36], [200, 36]], ..PLAIN }, RowRule::SGD);
    }
    let narrow: [&[[usize; 2]]; 3] = [&[[50, 1], [9, 7], [300, 33]], &[[500, 8], [20, 18]], &[[40, 260]]];
    for (pad, tables) in narrow.into_iter().enumerate() {
        compare(3, &Shape { tables, element: Element::Bf16, pad, ..PLAIN }, RowRule::SGD);
    }
    // One bag: its gradient is shorter than a row of the table.
    compare(4, &Shape { tables: &[[70, 64]], bags: 1, most: 300, ..PLAIN }, RowRule::ADAM);
    compare(5, &Shape { bags: 3000, most: 30, ..PLAIN }, RowRule::SGD);
}

#[test]
fn every_pooling_and_bound_has_the_bits_of_the_cpu() {
    let Some(stream) = gpu() else { return };
    for pooling in [Pooling::Sum, Pooling::Mean, Pooling::Max, Pooling::None] {
        for bounds in [Bounds::WarnAndZero, Bounds::Ignore] {
            for weighted in [false, true] {
                if weighted && pooling == Pooling::Max {
                    continue;
                }
                let shape = Shape { pooling, weighted, wild: true, tables: &[[40, 36], [200, 36]], ..PLAIN };
                compare(&stream, 3, &shape, settings(RowRule::SGD), bounds, 0);
            }
        }
    }
}

#[test]
fn rows_of_very_many_lookups_and_large_tables_have_the_bits_of_the_cpu() {
    let Some(stream) = gpu() else { return };
    for (seed, bags, most, longest) in
        [(1, 1000, 12, 0), (2, 3000, 20, 0), (3, 900, 5, 1 << 20), (4, 1, 0, 0)]
    {
        let shape = Shape { tables: &[[70_000, 64], [2, 64], [1, 64], [1300, 64]], bags, most, ..PLAIN };
        compare(&stream, seed, &shape, settings(RowRule::SGD), Bounds::Error, longest);
        let shape = Shape { tables: &[[2_200_000, 4], [17, 4]], bags, most, ..PLAIN };
        compare(&stream, seed, &shape, settings(RowRule::ADAM), Bounds::Error, longest);
    }
}

#[test]
fn wrong_lookups_change_nothing_and_are_named() {
    let Some(stream) = gpu() else { return };
    let shape = Shape { wild: true, ..PLAIN };
    let mut case = Case::new(7, &shape);
    let mut gpu = OnGpu::<f32>::new(&stream, &case, settings(RowRule::SGD), case.longest);
    let before = gpu.weights(&stream, 0);
    gpu.step(&stream, Bounds::Error).unwrap();
    let view = gpu.lookups.view();
    let found = gpu.grouping.check(&stream, &gpu.tables, &view, Bounds::Error).unwrap_err().to_string();
    let expected = case.lookups().check(&Cpu::new(1).unwrap(), &case.tables, Bounds::Error).unwrap_err();
    assert_eq!(found, expected.to_string());
    assert_eq!(before, gpu.weights(&stream, 0));
    case.offsets[5] = case.offsets[6] + 3;
    let mut gpu = OnGpu::<f32>::new(&stream, &case, settings(RowRule::SGD), case.longest);
    gpu.step(&stream, Bounds::Ignore).unwrap();
    let view = gpu.lookups.view();
    let found = gpu.grouping.check(&stream, &gpu.tables, &view, Bounds::Ignore).unwrap_err().to_string();
    assert!(found.starts_with("offset 6"), "{found}");
    assert_eq!(before, gpu.weights(&stream, 0));
    let case = Case::new(7, &Shape { most: 60, ..PLAIN });
    let mut gpu = OnGpu::<f32>::new(&stream, &case, settings(RowRule::SGD), 100);
    gpu.step(&stream, Bounds::Ignore).unwrap();
    let view = gpu.lookups.view();
    let found = gpu.grouping.check(&stream, &gpu.tables, &view, Bounds::Ignore).unwrap_err().to_string();
    assert!(found.contains("larger `longest`"), "{found}");
}

#[test]
fn rates_and_decay_change_between_steps() {
    let Some(stream) = gpu() else { return };
    let case = Case::new(11, &PLAIN);
    for rule in [RowRule::SGD, RowRule::ADAM] {
        let wanted = RowSettings { decay: Decay::Weights(0.1), ..settings(rule) };
        let other = RowSettings { lr: 3.0 * wanted.lr, decay: Decay::None, ..wanted };
        let mut plain = OnGpu::<f32>::new(&stream, &case, wanted, case.longest);
        let mut changed = OnGpu::<f32>::new(&stream, &case, other, case.longest);
        changed.optimizer.set_learning_rate(&stream, wanted.lr).unwrap();
        changed.optimizer.set_decay(&stream, wanted.decay).unwrap();
        assert!(changed.optimizer.set_learning_rate(&stream, -1.0).is_err());
        assert_eq!(changed.optimizer.settings(), wanted);
        for step in 0..2 {
            plain.step(&stream, Bounds::Error).unwrap();
            changed.step(&stream, Bounds::Error).unwrap();
            for table in 0..3 {
                assert_eq!(
                    plain.weights(&stream, table),
                    changed.weights(&stream, table),
                    "{rule:?}, {step}"
                );
            }
            // The number of steps, on which Adam's rate depends, continues.
            changed.optimizer.set_learning_rate(&stream, wanted.lr).unwrap();
        }
        assert_eq!(plain.optimizer.steps(&stream).unwrap(), changed.optimizer.steps(&stream).unwrap());
        changed.optimizer.set_learning_rate(&stream, other.lr).unwrap();
        plain.step(&stream, Bounds::Error).unwrap();
        changed.step(&stream, Bounds::Error).unwrap();
        assert_ne!(plain.weights(&stream, 0), changed.weights(&stream, 0));
    }
}

/// Rows with more lookups than a chunk has, in batches of one launch (the first two) and of two.
#[test]
fn rows_wanted_often_have_the_bits_of_the_cpu() {
    let Some(stream) = gpu() else { return };
    let cases: [(&'static [[usize; 2]], usize, usize); 4] = [
        (&[[3, 8], [40, 8], [700, 8]], 150, 9),
        (&[[5, 32], [60, 32], [2, 32]], 300, 7),
        (&[[3, 8], [2, 8], [90, 8]], 3000, 24),
        (&[[9, 96], [4, 96], [1, 96]], 700, 12),
    ];
    for (tables, bags, most) in cases {
        for weighted in [false, true] {
            let shape = Shape { tables, bags, most, weighted, ..PLAIN };
            compare(&stream, 17, &shape, settings(RowRule::Adagrad { eps: 1e-8 }), Bounds::Error, 0);
        }
    }
}

/// Enough lookups that chunks are summed span by span, and rows of up to a chunk are stepped where they begin.
#[test]
fn a_million_lookups_have_the_bits_of_the_cpu() {
    let Some(stream) = gpu() else { return };
    let cases: [(&'static [[usize; 2]], RowRule); 3] = [
        (&[[3000, 128], [70_000, 128], [700, 128]], RowRule::SGD),
        (&[[2, 32], [3000, 32], [70_000, 32]], RowRule::ADAM),
        (&[[700, 8], [9000, 8], [1, 8]], RowRule::Adagrad { eps: 1e-8 }),
    ];
    for (tables, rule) in cases {
        let shape = Shape { tables, bags: 6000, most: 120, ..PLAIN };
        compare(&stream, 23, &shape, settings(rule), Bounds::Error, 0);
    }
}

/// A table whose lookups are sorted a digit at a time.
#[test]
fn tables_of_very_many_lookups_have_the_bits_of_the_cpu() {
    let Some(stream) = gpu() else { return };
    let shape = Shape { tables: &[[70_000, 4], [9, 4]], bags: 60_000, most: 120, ..PLAIN };
    compare(&stream, 29, &shape, settings(RowRule::SGD), Bounds::Error, 0);
}

/// Batches that are cut at boundaries from a very different batch before.
#[test]
fn batches_unlike_the_one_before_have_the_bits_of_the_cpu() {
    let Some(stream) = gpu() else { return };
    let (rows, bags, length) = (1_000_000, 3000, 20);
    for pooling in [Pooling::Sum, Pooling::None] {
        let shape = Shape { tables: &[[1_000_000, 4]], pooling, bags, most: 2 * length, ..PLAIN };
        let mut case = Case::new(31, &shape);
        case.offsets = (0..=bags).map(|bag| (bag * length) as i64).collect();
        case.indices = vec![0; bags * length];
        case.longest = bags * length;
        let mut random = Random(37);
        case.gradient = (0..if pooling == Pooling::None { bags * length } else { bags } * 4)
            .map(|_| random.value())
            .collect();
        let mut gpu = OnGpu::<f32>::new(&stream, &case, settings(RowRule::SGD), case.longest);
        let cpu = Cpu::new(1).unwrap();
        let mut optimizer = ops::backward::RowOptimizer::new(RowRule::SGD, 0.03, &case.tables).unwrap();
        let mut grouping = ops::group::Grouping::new();
        // All rows alike, one row only, every hundredth of a few rows, rising rows, one row of half of all lookups.
        for batch in 0..10 {
            let length = if batch < 5 { length } else { length / 2 };
            case.offsets = (0..=bags).map(|bag| (bag * length) as i64).collect();
            let index = |at: usize| match batch % 5 {
                0 => random.below(rows),
                1 => 999_999,
                2 => random.below(300) * 100,
                3 => at,
                _ => random.below(2) * random.below(rows),
            };
            case.indices = (0..bags * length).map(index).map(|row| row as i64).collect();
            gpu.lookups = OwnedLookups::upload(&stream, &case.lookups()).unwrap();
            gpu.step(&stream, Bounds::Error).unwrap();
            let lookups = ops::Lookups::new(bags, &case.indices, &case.offsets).unwrap();
            grouping.group(&cpu, &case.tables, &lookups, Bounds::Error).unwrap();
            let gradient = Gradient::new(&case.gradient, case.stride);
            optimizer.step(&cpu, &mut case.tables, &lookups, &grouping, Bounds::Error, &gradient).unwrap();
            let on_gpu = widen(Element::F32, &gpu.weights(&stream, 0));
            let table = case.tables.table(0);
            let on_cpu: Vec<f32> = (0..rows).flat_map(|row| widen(Element::F32, table.row(row))).collect();
            let pitch = table.pitch() / 4;
            for row in 0..rows {
                let found = &on_gpu[row * pitch..][..4];
                same(found, &on_cpu[row * 4..][..4], 0.0, &format!("{pooling:?}, batch {batch}, row {row}"));
            }
        }
    }
}

#[test]
fn steps_can_be_captured() {
    let Some(stream) = gpu() else { return };
    let case = Case::new(9, &PLAIN);
    let mut plain = OnGpu::<f32>::new(&stream, &case, settings(RowRule::ADAM), case.longest);
    let mut captured = OnGpu::<f32>::new(&stream, &case, settings(RowRule::ADAM), case.longest);
    for _ in 0..3 {
        plain.step(&stream, Bounds::Error).unwrap();
    }
    captured.step(&stream, Bounds::Error).unwrap();
    let graph = Graph::capture(&stream, |stream| captured.step(stream, Bounds::Error)).unwrap();
    for _ in 0..2 {
        // SAFETY: all buffers live in `captured`.
        unsafe { graph.replay().unwrap() };
    }
    assert_eq!(captured.optimizer.steps(&stream).unwrap(), 3);
    for table in 0..3 {
        assert_eq!(plain.weights(&stream, table), captured.weights(&stream, table));
    }
    for geometry in
        captured.grouping.geometry().unwrap().iter().chain(&captured.optimizer.geometry().unwrap())
    {
        println!("{geometry}");
    }
}

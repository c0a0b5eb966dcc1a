//! The backward pass of embedding tables against its plain version, with all numbers of threads and instruction sets.

use half::{bf16, f16};
use proptest::prelude::*;
use steptime_ops::embedding::backward::{
    BackwardError, Decay, Gradient, Rounding, RowOptimizer, RowRule, gradients_reference, sparse_gradients,
    winners,
};
use steptime_ops::embedding::group::Grouping;
use steptime_ops::embedding::{Bounds, EmbeddingError, Lookups, Plain, Pooling, Table, Tables};
use steptime_ops::{Cpu, Isa};

const RULES: [RowRule; 6] = [
    RowRule::SGD,
    RowRule::Sgd { momentum: 0.9 },
    RowRule::Adagrad { eps: 1e-2 },
    RowRule::RowWiseAdagrad { eps: 1e-2 },
    RowRule::Adam { beta1: 0.9, beta2: 0.99, eps: 1e-2 },
    RowRule::PartialRowWiseAdam { beta1: 0.9, beta2: 0.99, eps: 1e-2 },
];
const POOLING: [Pooling; 3] = [Pooling::Sum, Pooling::Mean, Pooling::Max];

/// A batch: tables of (rows, columns, pooling), and their lookups.
#[derive(Debug, Clone)]
struct Case {
    shapes: Vec<(usize, usize, Pooling)>,
    bags: usize,
    indices: Vec<i64>,
    offsets: Vec<i64>,
    weights: Option<Vec<f32>>,
    gradient: Vec<f32>,
    stride: usize,
    bounds: Bounds,
}

/// Pseudo-random integers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// A multiple of 1/16 within 2 of zero: sums of these are exact.
    fn sixteenth(&mut self) -> f32 {
        (self.next() % 65) as f32 / 16.0 - 2.0
    }
}

impl Case {
    /// Bags of 0 to `most` lookups. Low rows are looked up more often.
    fn new(shapes: &[(usize, usize, Pooling)], bags: usize, most: usize, weighted: bool, seed: u64) -> Case {
        let mut random = Random(seed | 1);
        let (mut indices, mut offsets) = (Vec::new(), vec![0]);
        for &(rows, ..) in shapes {
            for _ in 0..bags {
                for _ in 0..random.next() as usize % (most + 1) {
                    // The smaller of two draws: low rows are more frequent.
                    let row = (random.next() % rows as u64).min(random.next() % rows as u64);
                    indices.push(row as i64);
                }
                offsets.push(indices.len() as i64);
            }
        }
        let columns: usize = shapes.iter().map(|shape| shape.1).sum();
        let stride = columns + 3;
        let gradient = (0..bags * stride).map(|_| random.sixteenth()).collect();
        let weighted = weighted && shapes.iter().all(|shape| shape.2 != Pooling::Max);
        let weights = weighted.then(|| indices.iter().map(|_| random.sixteenth()).collect());
        let shapes = shapes.to_vec();
        Case { shapes, bags, indices, offsets, weights, gradient, stride, bounds: Bounds::Error }
    }

    fn lookups(&self) -> Lookups<'_> {
        let lookups = Lookups::new(self.bags, &self.indices, &self.offsets).unwrap();
        match &self.weights {
            Some(weights) => lookups.with_weights(weights).unwrap(),
            None => lookups,
        }
    }

    fn gradient(&self) -> Gradient<'_> {
        Gradient::new(&self.gradient, self.stride)
    }

    /// Weights of each table before training.
    fn values<T>(&self, of: impl Fn(f32) -> T) -> Vec<Vec<T>> {
        let mut random = Random(77);
        let mut table =
            |rows: usize, dim: usize| (0..rows * dim).map(|_| of(random.sixteenth() / 3.0)).collect();
        self.shapes.iter().map(|&(rows, dim, _)| table(rows, dim)).collect()
    }

    fn tables<'a, T: Plain>(&self, values: &'a mut [Vec<T>]) -> Tables<'a> {
        let tables = values.iter_mut().zip(&self.shapes).enumerate();
        let table = tables
            .map(|(at, (values, shape))| Table::borrow_mut(&format!("t{at}"), values, shape.1).unwrap());
        let mut tables = Tables::new(table.collect(), Pooling::Sum);
        for (at, shape) in self.shapes.iter().enumerate() {
            tables = tables.with_pooling(at, shape.2).unwrap();
        }
        tables
    }

    /// Weights and state after `steps` steps, as bits.
    fn train<T: Plain>(
        &self,
        cpu: &Cpu,
        mut values: Vec<Vec<T>>,
        make: impl Fn(&Tables<'_>) -> RowOptimizer,
        steps: usize,
    ) -> (Vec<Vec<T>>, Vec<Vec<f32>>) {
        let mut tables = self.tables(&mut values);
        let mut optimizer = make(&tables);
        let (lookups, mut grouping) = (self.lookups(), Grouping::new());
        for _ in 0..steps {
            grouping.group(cpu, &tables, &lookups, self.bounds).unwrap();
            let gradient = self.gradient();
            optimizer.step(cpu, &mut tables, &lookups, &grouping, self.bounds, &gradient).unwrap();
        }
        (values, self.state(&optimizer))
    }

    fn train_plainly<T: Plain>(
        &self,
        mut values: Vec<Vec<T>>,
        make: impl Fn(&Tables<'_>) -> RowOptimizer,
        steps: usize,
    ) -> (Vec<Vec<T>>, Vec<Vec<f32>>) {
        let mut tables = self.tables(&mut values);
        let mut optimizer = make(&tables);
        for _ in 0..steps {
            optimizer.step_reference(&mut tables, &self.lookups(), self.bounds, &self.gradient()).unwrap();
        }
        (values, self.state(&optimizer))
    }

    fn state(&self, optimizer: &RowOptimizer) -> Vec<Vec<f32>> {
        let states = optimizer.states().iter().zip(&self.shapes);
        states.map(|(state, shape)| (0..shape.0).flat_map(|row| state.row(row).to_vec()).collect()).collect()
    }
}

fn cpus() -> Vec<Cpu> {
    let all = Isa::ALL.into_iter().filter(|isa| isa.is_available());
    let mut cpus: Vec<Cpu> = all.map(|isa| Cpu::with_isa(isa, 1).unwrap()).collect();
    cpus.extend([2, 3, 7].map(|threads| Cpu::new(threads).unwrap()));
    cpus
}

fn close(found: &[Vec<f32>], expected: &[Vec<f32>], what: &str) {
    for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
        let error = (found - expected).abs();
        assert!(error <= 3e-5 * (1.0 + expected.abs()), "{what}: {found} for {expected}");
    }
}

fn bits(values: &[Vec<f32>]) -> Vec<u32> {
    values.iter().flatten().map(|value| value.to_bits()).collect()
}

/// Trains with every rule: close to the plain version, and bit-identical everywhere.
fn check(case: &Case, rules: &[RowRule], decay: Decay) {
    // Where two rows are nearly equal, the last bit decides which is the largest in the next step.
    let steps = if case.shapes.iter().any(|shape| shape.2 == Pooling::Max) { 1 } else { 2 };
    for &rule in rules {
        let make =
            |tables: &Tables<'_>| RowOptimizer::new(rule, 0.1, tables).unwrap().with_decay(decay).unwrap();
        let (expected, state) = case.train_plainly(case.values(|x| x), make, steps);
        let mut first = None;
        for cpu in cpus() {
            let (found, kept) = case.train(&cpu, case.values(|x| x), make, steps);
            let name = format!("{} {decay:?} {} {} threads", rule.name(), cpu.isa(), cpu.threads());
            close(&found, &expected, &name);
            close(&kept, &state, &name);
            let all = (bits(&found), bits(&kept));
            assert!(*first.get_or_insert_with(|| all.clone()) == all, "{name} gives other bits");
        }
    }
}

fn shape() -> impl Strategy<Value = (usize, usize, Pooling)> {
    let rows = prop_oneof![Just(1usize), 2..9usize, 9..400usize];
    let dim = prop_oneof![1..20usize, Just(32usize), Just(64usize), 60..140usize];
    (rows, dim, 0..3usize).prop_map(|(rows, dim, pooling)| (rows, dim, POOLING[pooling]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn random_shapes(
        shapes in prop::collection::vec(shape(), 1..4),
        bags in 0..40usize,
        most in 0..9usize,
        weighted in any::<bool>(),
        decay in prop_oneof![Just(Decay::None), Just(Decay::Gradient(0.05)), Just(Decay::Weights(0.05))],
        rule in 0..RULES.len(),
        seed in any::<u64>(),
    ) {
        check(&Case::new(&shapes, bags, most, weighted, seed), &RULES[rule..=rule], decay);
    }
}

#[test]
fn rows_with_thousands_of_duplicates() {
    for pooling in POOLING {
        let shapes = [(1, 1, pooling), (3, 64, pooling), (700, 17, pooling)];
        check(&Case::new(&shapes, 700, 9, true, 5), &RULES[..4], Decay::None);
    }
}

#[test]
fn very_wide_rows() {
    for dim in [4097, 1000] {
        check(&Case::new(&[(40, dim, Pooling::Sum)], 90, 8, true, 9), &RULES, Decay::Gradient(0.01));
    }
}

#[test]
fn lookups_that_are_not_pooled_have_gradients_of_their_own() {
    let mut case = Case::new(&[(9, 20, Pooling::None), (30, 20, Pooling::None)], 40, 4, true, 3);
    let mut random = Random(8);
    case.stride = 21;
    case.gradient = (0..case.indices.len() * case.stride).map(|_| random.sixteenth()).collect();
    check(&case, &RULES, Decay::None);
}

#[test]
fn lookups_that_are_out_of_range() {
    for bounds in [Bounds::Ignore, Bounds::WarnAndZero] {
        for pooling in POOLING {
            let mut case = Case::new(&[(50, 18, pooling), (4, 5, pooling)], 60, 6, false, 21);
            let count = case.indices.len();
            case.indices.iter_mut().step_by(5).for_each(|index| *index = -1);
            case.indices[count - 1] = 50;
            case.indices[count - 3] = i64::MIN;
            case.bounds = bounds;
            check(&case, &RULES[..4], Decay::None);
        }
    }
}

#[test]
fn winners_may_be_given() {
    let case = Case::new(&[(30, 12, Pooling::Max), (7, 5, Pooling::Sum)], 50, 5, false, 2);
    let cpu = Cpu::new(2).unwrap();
    let make = |tables: &Tables<'_>| RowOptimizer::new(RowRule::SGD, 0.1, tables).unwrap();
    let (expected, _) = case.train(&cpu, case.values(|x| x), make, 1);
    let mut values = case.values(|x| x);
    let mut tables = case.tables(&mut values);
    let won = winners(&cpu, &tables, &case.lookups(), Bounds::Error);
    let mut grouping = Grouping::new();
    grouping.group(&cpu, &tables, &case.lookups(), Bounds::Error).unwrap();
    let gradient = case.gradient().with_winners(&won);
    make(&tables).step(&cpu, &mut tables, &case.lookups(), &grouping, Bounds::Error, &gradient).unwrap();
    assert_eq!(bits(&values), bits(&expected));
}

#[test]
fn half_precision_to_the_nearest_and_at_random() {
    let case = Case::new(&[(40, 33, Pooling::Sum), (300, 64, Pooling::Mean)], 60, 9, true, 4);
    for rule in RULES {
        let make = |tables: &Tables<'_>| RowOptimizer::new(rule, 0.01, tables).unwrap();
        let random = |tables: &Tables<'_>| make(tables).with_rounding(Rounding::Stochastic { seed: 3 });
        let wide = |values: Vec<Vec<f16>>| -> Vec<Vec<f32>> {
            values.iter().map(|row| row.iter().map(|x| x.to_f32()).collect()).collect()
        };
        let wide_bf16 = |values: Vec<Vec<bf16>>| -> Vec<Vec<f32>> {
            values.iter().map(|row| row.iter().map(|x| x.to_f32()).collect()).collect()
        };
        let halves = wide(case.train_plainly(case.values(f16::from_f32), make, 2).0);
        let brains = wide_bf16(case.train_plainly(case.values(bf16::from_f32), make, 2).0);
        let mut seen = [None, None, None, None];
        for cpu in cpus() {
            let found = [
                wide(case.train(&cpu, case.values(f16::from_f32), make, 2).0),
                wide(case.train(&cpu, case.values(f16::from_f32), random, 2).0),
                wide_bf16(case.train(&cpu, case.values(bf16::from_f32), make, 2).0),
                wide_bf16(case.train(&cpu, case.values(bf16::from_f32), random, 2).0),
            ];
            for (which, (found, seen)) in found.iter().zip(&mut seen).enumerate() {
                let (expected, spacing) =
                    if which < 2 { (&halves, 1.0 / 1024.0) } else { (&brains, 1.0 / 128.0) };
                for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
                    // Two steps from at most 2/3, each rounded up or down.
                    let bound = 2.5 * spacing * expected.abs().max(0.5);
                    assert!((found - expected).abs() <= bound, "{}: {found} for {expected}", rule.name());
                }
                assert!(
                    *seen.get_or_insert_with(|| bits(found)) == bits(found),
                    "{} gives other bits",
                    rule.name()
                );
            }
        }
        assert_ne!(seen[0], seen[1], "rounding at random changes nothing");
    }
}

#[test]
fn steps_that_rounding_would_lose_are_kept_on_average() {
    let case = Case::new(&[(1, 512, Pooling::Sum)], 1, 0, false, 1);
    let case = Case { indices: vec![0], offsets: vec![0, 1], gradient: vec![1.0; 515], ..case };
    let cpu = Cpu::new(2).unwrap();
    // A hundredth of the spacing of bf16 at 1.
    let make = |tables: &Tables<'_>| RowOptimizer::new(RowRule::SGD, -1.0 / 12_800.0, tables);
    assert!(make(&case.tables(&mut case.values(bf16::from_f32))).is_err(), "a negative learning rate");
    let make = |tables: &Tables<'_>| RowOptimizer::new(RowRule::SGD, 1.0 / 12_800.0, tables).unwrap();
    let random = |tables: &Tables<'_>| make(tables).with_rounding(Rounding::Stochastic { seed: 11 });
    let start = || vec![vec![bf16::from_f32(1.9); 512]];
    let (lost, _) = case.train(&cpu, start(), make, 100);
    assert_eq!(lost, start());
    let (kept, _) = case.train(&cpu, start(), random, 100);
    let mean = kept[0].iter().map(|x| x.to_f64()).sum::<f64>() / 512.0;
    let expected = start()[0][0].to_f64() - 100.0 / 12_800.0;
    assert!((mean - expected).abs() < 1e-3, "{mean} for {expected}");
}

#[test]
fn sparse_gradients_are_those_of_double_precision() {
    for pooling in POOLING {
        let case = Case::new(&[(3, 64, pooling), (900, 37, pooling)], 900, 4, true, 6);
        let mut values = case.values(|x| x);
        let tables = case.tables(&mut values);
        let lookups = case.lookups();
        let expected = gradients_reference(&tables, &lookups, Bounds::Error, &case.gradient()).unwrap();
        let mut first = None;
        for cpu in cpus() {
            let mut grouping = Grouping::new();
            grouping.group(&cpu, &tables, &lookups, Bounds::Error).unwrap();
            let gradient = case.gradient();
            let found =
                sparse_gradients(&cpu, &tables, &lookups, &grouping, Bounds::Error, &gradient).unwrap();
            for (found, expected) in found.iter().zip(&expected) {
                assert!(found.rows.iter().eq(expected.keys()));
                for (found, expected) in found.values.iter().zip(expected.values().flatten()) {
                    assert!((f64::from(*found) - expected).abs() <= 1e-5 * (1.0 + expected.abs()));
                }
            }
            assert!(*first.get_or_insert_with(|| found.clone()) == found);
        }
    }
}

#[test]
fn arguments_that_do_not_fit_are_refused_and_change_nothing() {
    let case = Case::new(&[(20, 4, Pooling::Sum), (30, 6, Pooling::Mean)], 10, 3, false, 7);
    let cpu = Cpu::new(1).unwrap();
    let mut values = case.values(|x| x);
    let mut tables = case.tables(&mut values);
    let lookups = case.lookups();
    let mut optimizer = RowOptimizer::new(RowRule::ADAM, 0.1, &tables).unwrap();
    let mut grouping = Grouping::new();
    let mut step =
        |tables: &mut Tables<'_>, lookups: &Lookups<'_>, grouping: &Grouping, gradient: &Gradient<'_>| {
            optimizer.step(&cpu, tables, lookups, grouping, Bounds::Error, gradient)
        };
    let error = step(&mut tables, &lookups, &grouping, &case.gradient()).unwrap_err();
    assert!(matches!(error, BackwardError::Tables { found: 0, tables: 2, .. }), "{error}");
    grouping.group(&cpu, &tables, &lookups, Bounds::Error).unwrap();

    let short = Gradient::new(&case.gradient[..50], case.stride);
    let error = step(&mut tables, &lookups, &grouping, &short).unwrap_err();
    assert!(matches!(error, BackwardError::Embedding(EmbeddingError::Size { found: 50, .. })), "{error}");
    let narrow = Gradient::new(&case.gradient, 9);
    assert!(step(&mut tables, &lookups, &grouping, &narrow).is_err());

    let none = vec![0i64; 21];
    let empty: Vec<i64> = Vec::new();
    let other = Lookups::new(10, &empty, &none).unwrap();
    let error = step(&mut tables, &other, &grouping, &case.gradient()).unwrap_err();
    assert!(matches!(error, BackwardError::Grouping { table: 0, given: 0, .. }), "{error}");

    let wrong = vec![vec![0u32; 3]; 2];
    let mut others = case.values(|x| x);
    let mut max = case.tables(&mut others).with_pooling(0, Pooling::Max).unwrap();
    let error = step(&mut max, &lookups, &grouping, &case.gradient().with_winners(&wrong)).unwrap_err();
    assert!(
        matches!(error, BackwardError::Embedding(EmbeddingError::Size { what: "winners", .. })),
        "{error}"
    );

    let values = case.values(|x| x);
    let read_only =
        values.iter().zip(&case.shapes).map(|(v, s)| Table::borrow("fixed", v, s.1).unwrap()).collect();
    let mut read_only = Tables::new(read_only, Pooling::Sum);
    let error = step(&mut read_only, &lookups, &grouping, &case.gradient()).unwrap_err();
    assert!(matches!(error, BackwardError::Embedding(EmbeddingError::NotTrainable { .. })), "{error}");
    assert_eq!(optimizer.steps(), 0);

    for rule in [RowRule::Sgd { momentum: 1.0 }, RowRule::Adagrad { eps: -1.0 }] {
        assert!(RowOptimizer::new(rule, 0.1, &read_only).is_err());
    }
    assert!(RowOptimizer::new(RowRule::SGD, f32::NAN, &read_only).is_err());
    let fewer = Tables::new(vec![Table::borrow("one", &values[0], 4).unwrap()], Pooling::Sum);
    let mut other = RowOptimizer::new(RowRule::SGD, 0.1, &fewer).unwrap();
    let error =
        other.step(&cpu, &mut tables, &lookups, &grouping, Bounds::Error, &case.gradient()).unwrap_err();
    assert!(error.to_string().contains("an optimizer of 1 tables for 2 tables"), "{error}");
}

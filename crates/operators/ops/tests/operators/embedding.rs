//! Bags, gathers and gradients of weights: bit by bit against the plain version, and the plain version against doubles.

use proptest::prelude::*;
use steptime_ops::embedding::{
    Bounds, Element, Lookups, Order, Pooling, Table, Tables, forward, forward_reference, gather, sequence,
    weight_gradient, weight_gradient_reference,
};
use steptime_ops::{Cpu, Isa};

/// Pseudo-random numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn float(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.float()).collect()
    }
}

/// Returns every instruction set of this machine, on 1, 2, 3 and 7 threads.
fn machines() -> Vec<Cpu> {
    let isas = Isa::ALL.into_iter().filter(|isa| isa.is_available());
    isas.flat_map(|isa| [1, 2, 3, 7].map(|threads| Cpu::with_isa(isa, threads).unwrap())).collect()
}

/// A table of random values, rounded to its elements.
fn table(random: &mut Random, name: &str, rows: usize, dim: usize, element: Element) -> Table<'static> {
    let mut table = Table::zeros(name, [rows, dim], element).unwrap();
    for row in 0..rows {
        assert!(table.write_row(row, &random.floats(dim)));
    }
    table
}

/// Offsets of bags of 0 to `most` lookups, and indices, most of them to few rows.
fn ragged(random: &mut Random, rows: &[usize], bags: usize, most: usize) -> (Vec<i64>, Vec<i64>) {
    let (mut indices, mut offsets) = (Vec::new(), vec![0]);
    for &rows in rows {
        for _ in 0..bags {
            for _ in 0..random.below(most + 1) {
                let popular = random.below(3) > 0;
                indices.push(random.below(if popular { rows.div_ceil(10) } else { rows }) as i64);
            }
            offsets.push(indices.len() as i64);
        }
    }
    (indices, offsets)
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Bags in double precision.
fn forward_f64(tables: &Tables<'_>, lookups: &Lookups<'_>) -> Vec<f64> {
    let mut out = vec![0.0_f64; lookups.bags() * tables.columns()];
    for (at, table) in tables.iter().enumerate() {
        for bag in 0..lookups.bags() {
            let out = &mut out[bag * tables.columns() + tables.column(at)..][..table.dim()];
            let places = lookups.bag(at, bag);
            let mut row = vec![0.0_f32; table.dim()];
            for place in places.clone() {
                table.read_row(lookups.indices().at(place) as usize, &mut row);
                let weight = lookups.weights().map_or(1.0, |all| f64::from(all[place]));
                for (out, &value) in out.iter_mut().zip(&row) {
                    *out = match tables.pooling(at) {
                        Pooling::Max if place > places.start => out.max(f64::from(value)),
                        Pooling::Max => f64::from(value),
                        _ => *out + weight * f64::from(value),
                    };
                }
            }
            if tables.pooling(at) == Pooling::Mean && !places.is_empty() {
                out.iter_mut().for_each(|out| *out /= places.len() as f64);
            }
        }
    }
    out
}

/// Checks the forward pass on all machines, with an output that is wider than needed.
fn check_forward(tables: &Tables<'_>, lookups: &Lookups<'_>, spare: usize) {
    let (bags, columns) = (lookups.bags(), tables.columns());
    let stride = columns + spare;
    let mut expected = vec![7.0; bags * stride];
    forward_reference(tables, lookups, Bounds::Error, &mut expected, stride).unwrap();
    for (bag, exact) in forward_f64(tables, lookups).chunks(columns.max(1)).enumerate() {
        for (value, exact) in expected[bag * stride..].iter().zip(exact) {
            assert!(
                (f64::from(*value) - exact).abs() < 1e-5 * (1.0 + exact.abs()) * 30.0,
                "{value} for {exact}"
            );
        }
    }
    for cpu in machines() {
        let mut out = vec![7.0; bags * stride];
        let report = forward(&cpu, tables, lookups, Bounds::Error, &mut out, stride).unwrap();
        assert_eq!(report.out_of_range, 0);
        assert!(bits(&out) == bits(&expected), "{} {} threads", cpu.isa(), cpu.threads());
    }
}

const POOLING: [Pooling; 3] = [Pooling::Sum, Pooling::Mean, Pooling::Max];

#[test]
fn every_width_of_every_element_type() {
    let mut random = Random(1);
    for element in Element::ALL {
        for dims in [[1, 2, 3], [15, 16, 17], [31, 33, 48], [64, 79, 100], [113, 128, 130], [200, 256, 257]] {
            let made = dims.map(|dim| table(&mut random, "t", 40, dim, element));
            let (indices, offsets) = ragged(&mut random, &[40; 3], 9, 7);
            let weights = random.floats(indices.len());
            let lookups = Lookups::new(9, &indices, &offsets).unwrap();
            let tables = Tables::new(made.into(), Pooling::Sum);
            check_forward(&tables, &lookups.with_weights(&weights).unwrap(), 0);
            let tables =
                tables.with_pooling(1, Pooling::Mean).unwrap().with_pooling(2, Pooling::Max).unwrap();
            check_forward(&tables, &lookups, 3);
        }
    }
}

#[test]
fn wide_rows_one_row_and_one_column() {
    let mut random = Random(2);
    for element in Element::ALL {
        let made = [(1, 4097), (3, 1), (1, 1), (20, 520)];
        let made = made.map(|(rows, dim)| table(&mut random, "t", rows, dim, element));
        let (indices, offsets) = ragged(&mut random, &[1, 3, 1, 20], 5, 4);
        let tables = Tables::new(made.into(), Pooling::Sum);
        check_forward(&tables, &Lookups::new(5, &indices, &offsets).unwrap(), 1);
    }
}

#[test]
fn rows_of_any_pitch_anywhere_in_memory() {
    let mut random = Random(3);
    for element in Element::ALL {
        for dim in [5, 16, 40, 300] {
            let even = table(&mut random, "even", 17, dim, element);
            let pitch = element.row_bytes(dim) + 3 * element.align();
            let mut bytes = vec![0; element.align() + 16 * pitch + element.row_bytes(dim)];
            let bytes = &mut bytes[element.align()..];
            for row in 0..17 {
                bytes[row * pitch..][..even.row_bytes()].copy_from_slice(even.row(row));
            }
            let odd = Table::borrow_bytes("odd", bytes, [17, dim], element, pitch).unwrap();
            let (indices, offsets) = ragged(&mut random, &[17, 17], 6, 5);
            check_forward(
                &Tables::new(vec![even, odd], Pooling::Sum),
                &Lookups::new(6, &indices, &offsets).unwrap(),
                5,
            );
        }
    }
}

#[test]
fn a_large_output_past_the_caches_and_a_table_that_is_fetched_ahead() {
    let mut random = Random(4);
    let (rows, dim, bags) = (6000, 64, 40_000);
    let mut big = Table::zeros("big", [rows, dim], Element::F32).unwrap();
    for row in 0..rows {
        big.write_row(row, &[row as f32; 64]);
    }
    let indices: Vec<i32> = (0..2 * bags).map(|_| random.below(rows) as i32).collect();
    let offsets: Vec<i32> = (0..=bags).map(|bag| 2 * bag as i32).collect();
    let lookups = Lookups::new(bags, &indices, &offsets).unwrap();
    let tables = Tables::new(vec![big], Pooling::Sum);
    let sum = |bag: usize| (indices[2 * bag] + indices[2 * bag + 1]) as f32;
    let mut buffer = steptime_ops::embedding::HugeBuffer::zeros_of::<f32>(bags * 128).unwrap();
    for cpu in machines() {
        for stride in [64, 80, 128] {
            let out = &mut buffer.as_mut_slice::<f32>()[..bags * stride];
            out.fill(-1.0);
            forward(&cpu, &tables, &lookups, Bounds::Error, out, stride).unwrap();
            for (bag, out) in out.chunks(stride).enumerate() {
                assert!(out[..64].iter().all(|&value| value == sum(bag)), "bag {bag} {cpu:?}");
                assert!(out[64..].iter().all(|&value| value == -1.0));
            }
        }
    }
}

#[test]
fn a_bag_larger_than_any_chunk_and_no_bags_at_all() {
    let mut random = Random(5);
    let made = table(&mut random, "t", 50, 24, Element::F32);
    let indices: Vec<i64> = (0..5000).map(|_| random.below(50) as i64).collect();
    let tables = Tables::new(vec![made], Pooling::Mean);
    check_forward(&tables, &Lookups::new(3, &indices, &vec![0_i64, 10, 4990, 5000]).unwrap(), 0);
    check_forward(&tables, &Lookups::new(2, &Vec::<i64>::new(), &vec![0_i64; 3]).unwrap(), 0);
    check_forward(&tables, &Lookups::new(0, &Vec::<i64>::new(), &vec![0_i64]).unwrap(), 0);
    let none = Tables::new(Vec::new(), Pooling::Sum);
    check_forward(&none, &Lookups::new(4, &Vec::<i64>::new(), &vec![0_i64]).unwrap(), 0);
}

#[test]
fn a_sum_keeps_what_is_not_a_number_and_a_gather_keeps_the_sign_of_zero() {
    let values = [f32::NAN, -0.0, f32::INFINITY, 1.0, 2.0, 3.0, 4.0, -5.0];
    let table = Table::borrow("t", &values, 4).unwrap();
    for cpu in machines() {
        let mut out = [0.0; 8];
        gather(&cpu, &table, &vec![0_i64, 1], Bounds::Error, Order::Auto, &mut out, 4).unwrap();
        assert_eq!(bits(&out), bits(&values));
    }
    let tables = Tables::new(vec![table], Pooling::Max);
    for order in [vec![0_i64, 1], vec![1, 0]] {
        let lookups = Lookups::new(1, &order, &[0_i64, 2][..]).unwrap();
        let mut expected = [0.0; 4];
        forward_reference(&tables, &lookups, Bounds::Error, &mut expected, 4).unwrap();
        assert_eq!(
            expected[0].is_nan(),
            order[0] == 0,
            "a maximum keeps what it has unless something is larger"
        );
        for cpu in machines() {
            let mut out = [0.0; 4];
            forward(&cpu, &tables, &lookups, Bounds::Error, &mut out, 4).unwrap();
            assert_eq!(bits(&out), bits(&expected));
        }
    }
}

#[test]
fn gathers_in_every_order() {
    let mut random = Random(6);
    for element in Element::ALL {
        let made = table(&mut random, "t", 70, 530, element);
        let indices: Vec<i32> = (0..150).map(|_| random.below(70) as i32).collect();
        let mut expected = vec![0.0; 150 * 540];
        for (out, &index) in expected.chunks_mut(540).zip(&indices) {
            made.read_row(index as usize, &mut out[..530]);
        }
        for cpu in machines() {
            for order in
                [Order::Auto, Order::Rows, Order::Columns(1), Order::Columns(100), Order::Columns(10_000)]
            {
                let mut out = vec![0.0; 150 * 540];
                gather(&cpu, &made, &indices, Bounds::Error, order, &mut out, 540).unwrap();
                assert!(bits(&out) == bits(&expected), "{element} {order:?} {cpu:?}");
            }
        }
    }
}

#[test]
fn sequences_of_several_tables_with_weights() {
    let mut random = Random(7);
    for element in Element::ALL {
        let made = [table(&mut random, "a", 9, 33, element), table(&mut random, "b", 5, 33, element)];
        let (indices, offsets) = ragged(&mut random, &[9, 5], 4, 6);
        let weights = random.floats(indices.len());
        let lookups = Lookups::new(4, &indices, &offsets).unwrap();
        let mut expected = Vec::new();
        for (at, made) in made.iter().enumerate() {
            for place in lookups.table(at) {
                let mut row = vec![0.0; 33];
                made.read_row(indices[place] as usize, &mut row);
                expected.extend(row);
            }
        }
        let tables = Tables::new(made.into(), Pooling::None);
        for cpu in machines() {
            let mut out = vec![0.0; expected.len()];
            sequence(&cpu, &tables, &lookups, Bounds::Error, &mut out, 33).unwrap();
            assert_eq!(bits(&out), bits(&expected));
            sequence(&cpu, &tables, &lookups.with_weights(&weights).unwrap(), Bounds::Error, &mut out, 33)
                .unwrap();
            for (at, (&value, plain)) in out.iter().zip(&expected).enumerate() {
                let exact = weights[at / 33] * plain;
                assert!((value - exact).abs() <= 2e-6 * (1.0 + exact.abs()), "{element} {value} for {exact}");
            }
        }
    }
}

/// Checks the gradient of weights on all machines.
fn check_gradient(tables: &Tables<'_>, lookups: &Lookups<'_>, random: &mut Random) {
    let stride = tables.columns() + 3;
    let grad = random.floats(lookups.bags() * stride);
    let mut expected = vec![9.0; lookups.len()];
    weight_gradient_reference(tables, lookups, Bounds::Error, (&grad, stride), &mut expected).unwrap();
    for (at, table) in tables.iter().enumerate() {
        for bag in 0..lookups.bags() {
            let places = lookups.bag(at, bag);
            let count = if tables.pooling(at) == Pooling::Mean { places.len() } else { 1 };
            for place in places {
                let mut row = vec![0.0; table.dim()];
                table.read_row(lookups.indices().at(place) as usize, &mut row);
                let grad = &grad[bag * stride + tables.column(at)..];
                let exact: f64 = row.iter().zip(grad).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                let exact = exact / count as f64;
                assert!((f64::from(expected[place]) - exact).abs() < 1e-4, "{} for {exact}", expected[place]);
            }
        }
    }
    for cpu in machines() {
        let mut out = vec![9.0; lookups.len()];
        weight_gradient(&cpu, tables, lookups, Bounds::Error, (&grad, stride), &mut out).unwrap();
        assert!(bits(&out) == bits(&expected), "{cpu:?}");
    }
}

#[test]
fn gradients_of_weights() {
    let mut random = Random(8);
    for element in Element::ALL {
        let made = [(30, 1), (30, 16), (30, 39), (1, 130)];
        let made = made.map(|(rows, dim)| table(&mut random, "t", rows, dim, element));
        let (indices, offsets) = ragged(&mut random, &[30, 30, 30, 1], 11, 6);
        let tables = Tables::new(made.into(), Pooling::Sum).with_pooling(2, Pooling::Mean).unwrap();
        check_gradient(&tables, &Lookups::new(11, &indices, &offsets).unwrap(), &mut random);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn random_tables_and_bags(
        seed in 1_u64..u64::MAX,
        shapes in prop::collection::vec((1_usize..300, 1_usize..90, 0_usize..7, 0_usize..3), 1..5),
        bags in 0_usize..40,
        most in 0_usize..30,
        weighted in any::<bool>(),
        spare in 0_usize..20,
    ) {
        let mut random = Random(seed);
        let rows: Vec<usize> = shapes.iter().map(|shape| shape.0).collect();
        let made = shapes.iter().map(|&(rows, dim, element, _)| table(&mut random, "t", rows, dim, Element::ALL[element]));
        let mut tables = Tables::new(made.collect(), Pooling::Sum);
        for (at, &(_, _, _, pooling)) in shapes.iter().enumerate() {
            tables = tables.with_pooling(at, POOLING[if weighted { pooling.min(1) } else { pooling }]).unwrap();
        }
        let (indices, offsets) = ragged(&mut random, &rows, bags, most);
        let weights = random.floats(indices.len());
        let short: Vec<i32> = indices.iter().map(|&index| index as i32).collect();
        let lookups = Lookups::new(bags, &short, &offsets).unwrap();
        let lookups = if weighted { lookups.with_weights(&weights).unwrap() } else { lookups };
        check_forward(&tables, &lookups, spare);
        if weighted {
            check_gradient(&tables, &lookups, &mut random);
        }
    }
}

//! Errors in a call are reported or ignored, as the caller chooses.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};

use steptime_ops::embedding::{
    BadLookup, Bounds, Element, EmbeddingError, Lookups, Order, Pooling, Scale, Table, Tables, forward,
    forward_reference, gather, sequence, weight_gradient,
};
use steptime_ops::{Cpu, Isa};

fn machines() -> Vec<Cpu> {
    let isas = Isa::ALL.into_iter().filter(|isa| isa.is_available());
    isas.flat_map(|isa| [1, 3].map(|threads| Cpu::with_isa(isa, threads).unwrap())).collect()
}

/// Tables of 3 and 2 rows whose values are 1 and 10.
fn tables(pooling: Pooling) -> Tables<'static> {
    let make = |name, rows, dim, value: f32| {
        let mut table = Table::zeros(name, [rows, dim], Element::F32).unwrap();
        (0..rows).for_each(|row| assert!(table.write_row(row, &vec![value; dim])));
        table
    };
    Tables::new(vec![make("one", 3, 20, 1.0), make("ten", 2, 20, 10.0)], pooling)
}

const OFFSETS: [i64; 5] = [0, 2, 3, 6, 6];

/// The first column of each table of each bag.
fn pooled(
    cpu: &Cpu,
    pooling: Pooling,
    indices: &[i64],
    bounds: Bounds,
) -> Result<([f32; 4], usize), EmbeddingError> {
    let tables = tables(pooling);
    let lookups = Lookups::new(2, indices, &OFFSETS[..])?;
    let mut out = [7.0; 80];
    let report = forward(cpu, &tables, &lookups, bounds, &mut out, 40)?;
    let mut reference = [7.0; 80];
    assert_eq!(forward_reference(&tables, &lookups, bounds, &mut reference, 40)?, report);
    assert_eq!(out, reference);
    Ok(([out[0], out[20], out[40], out[60]], report.out_of_range))
}

#[test]
fn an_index_out_of_range_is_named_counted_or_ignored() {
    let negative = -1.0;
    for cpu in machines() {
        for bad in [2, -1, i64::MAX, i64::MIN, 1 << 32, 1 << 31, (1 << 61) + 1] {
            let indices = [0, 2, 1, 0, bad, 1];
            let error = pooled(&cpu, Pooling::Sum, &indices, Bounds::Error).unwrap_err();
            let text = error.to_string();
            assert!(
                matches!(error, EmbeddingError::Index { table: 1, bag: 0, lookup: 4, rows: 2, .. }),
                "{text}"
            );
            assert!(
                text.contains("\"ten\"") && text.contains(&bad.to_string()) && text.contains("0..2"),
                "{text}"
            );
            let zero = |pooling| pooled(&cpu, pooling, &indices, Bounds::WarnAndZero).unwrap();
            let ignore = |pooling| pooled(&cpu, pooling, &indices, Bounds::Ignore).unwrap();
            assert_eq!(zero(Pooling::Sum), ([2.0, 20.0, 1.0, 0.0], 1));
            assert_eq!(ignore(Pooling::Sum), ([2.0, 20.0, 1.0, 0.0], 1));
            assert_eq!(zero(Pooling::Mean).0[1], 20.0 * (1.0 / 3.0_f32));
            assert_eq!(ignore(Pooling::Mean).0[1], 10.0);
            assert_eq!(ignore(Pooling::Max).0[1], 10.0);
            let mut below = tables(Pooling::Max);
            (0..2).for_each(|row| assert!(below.values_mut(1).write_row(row, &[negative; 20])));
            let lookups = Lookups::new(2, &indices[..], &OFFSETS[..]).unwrap();
            for (bounds, expected) in [(Bounds::WarnAndZero, 0.0), (Bounds::Ignore, negative)] {
                let mut out = [7.0; 80];
                let report = forward(&cpu, &below, &lookups, bounds, &mut out, 40).unwrap();
                assert_eq!((out[20], report.out_of_range), (expected, 1));
                let first = BadLookup { table: 1, bag: 0, lookup: 4, index: bad };
                assert_eq!(report.first, Some(first));
                assert_eq!(lookups.check(&cpu, &below, bounds).unwrap(), report);
            }
        }
    }
}

#[test]
fn the_first_of_many_is_reported() {
    let tables = Tables::new(vec![Table::zeros("t", [10, 64], Element::F32).unwrap()], Pooling::Sum);
    let mut indices = vec![5_i32; 90_000];
    (40_000..90_000).step_by(1000).for_each(|at| indices[at] = -3);
    let offsets: Vec<i32> = (0..=9000).map(|bag| bag * 10).collect();
    let lookups = Lookups::new(9000, &indices, &offsets).unwrap();
    for cpu in machines() {
        let mut out = vec![0.0; 9000 * 64];
        let error = forward(&cpu, &tables, &lookups, Bounds::Error, &mut out, 64).unwrap_err();
        assert!(
            matches!(error, EmbeddingError::Index { bag: 4000, lookup: 40_000, index: -3, .. }),
            "{error}"
        );
        let error = lookups.check(&cpu, &tables, Bounds::Error).unwrap_err();
        assert!(
            matches!(error, EmbeddingError::Index { bag: 4000, lookup: 40_000, index: -3, .. }),
            "{error}"
        );
        let report = forward(&cpu, &tables, &lookups, Bounds::Ignore, &mut out, 64).unwrap();
        assert_eq!((report.out_of_range, report.first.map(|bad| bad.lookup)), (50, Some(40_000)));
    }
}

#[test]
fn rows_out_of_range_are_zeros_in_a_gather() {
    let tables = tables(Pooling::None);
    let indices = [0, 2, 1, 0, 5, 1];
    for cpu in machines() {
        let lookups = Lookups::new(2, &indices[..], &OFFSETS[..]).unwrap();
        let mut out = [7.0; 120];
        let error = sequence(&cpu, &tables, &lookups, Bounds::Error, &mut out, 20).unwrap_err();
        assert!(matches!(error, EmbeddingError::Index { table: 1, bag: 0, lookup: 4, .. }), "{error}");
        for bounds in [Bounds::WarnAndZero, Bounds::Ignore] {
            let report = sequence(&cpu, &tables, &lookups, bounds, &mut out, 20).unwrap();
            assert_eq!(report.out_of_range, 1);
            assert_eq!([out[0], out[60], out[80], out[100]], [1.0, 10.0, 0.0, 10.0]);
        }
        let table = tables.table(0);
        for order in [Order::Rows, Order::Columns(16)] {
            let error = gather(&cpu, table, &indices[..], Bounds::Error, order, &mut out, 20).unwrap_err();
            assert!(matches!(error, EmbeddingError::Index { lookup: 4, index: 5, .. }), "{error}");
            let report = gather(&cpu, table, &indices[..], Bounds::Ignore, order, &mut out, 20).unwrap();
            assert_eq!(report.out_of_range, 1);
            assert_eq!([out[60], out[80], out[99], out[100]], [1.0, 0.0, 0.0, 1.0]);
        }
    }
}

#[test]
fn weights_of_rows_out_of_range_have_no_gradient() {
    let tables = tables(Pooling::Mean);
    let indices = [0, 3, 1, 0, 5, 1];
    let lookups = Lookups::new(2, &indices[..], &OFFSETS[..]).unwrap();
    let grad = [1.0; 80];
    for cpu in machines() {
        let gradient = |bounds| {
            let mut out = [7.0; 6];
            weight_gradient(&cpu, &tables, &lookups, bounds, (&grad, 40), &mut out)
                .map(|report| (out, report))
        };
        assert!(matches!(gradient(Bounds::Error), Err(EmbeddingError::Index { lookup: 1, .. })));
        let (out, report) = gradient(Bounds::WarnAndZero).unwrap();
        assert_eq!((out[0], out[1], out[2], out[4], report.out_of_range), (10.0, 0.0, 20.0, 0.0, 2));
        let (out, _) = gradient(Bounds::Ignore).unwrap();
        assert_eq!((out[0], out[1], out[3]), (20.0, 0.0, 100.0));
    }
}

#[test]
fn offsets_that_fall_or_do_not_fit_are_errors_in_every_mode() {
    let indices = [0_i64; 6];
    let new = |bags, offsets: &[i64]| Lookups::new(bags, &indices[..], offsets).map(|lookups| lookups.len());
    assert!(matches!(new(2, &[0, 3, 6, 6]), Err(EmbeddingError::OffsetCount { found: 4, needed: 3, .. })));
    assert!(matches!(new(2, &[]), Err(EmbeddingError::OffsetCount { .. })));
    assert!(matches!(new(0, &[0, 6]), Err(EmbeddingError::OffsetCount { .. })));
    assert!(matches!(new(2, &[1, 3, 6]), Err(EmbeddingError::Offset { at: 0, value: 1, .. })));
    assert!(matches!(new(2, &[0, 3, 5]), Err(EmbeddingError::Offset { at: 2, value: 5, .. })));
    assert!(matches!(new(2, &[0, 3, -1]), Err(EmbeddingError::Offset { at: 2, value: -1, .. })));
    for cpu in machines() {
        for bounds in [Bounds::Error, Bounds::WarnAndZero, Bounds::Ignore] {
            let run = |offsets: [i64; 5], pooling| {
                let tables = tables(pooling);
                let lookups = Lookups::new(2, &indices[..], &offsets[..]).unwrap();
                let mut out = [0.0; 120];
                let checked = lookups.check(&cpu, &tables, bounds).unwrap_err().to_string();
                let ran = match pooling {
                    Pooling::None => sequence(&cpu, &tables, &lookups, bounds, &mut out, 20),
                    _ => forward(&cpu, &tables, &lookups, bounds, &mut out, 40),
                };
                let error = ran.unwrap_err();
                assert_eq!(error.to_string(), checked);
                error
            };
            for pooling in [Pooling::Sum, Pooling::None] {
                let wrong = |error| matches!(error, EmbeddingError::Offset { .. });
                assert!(wrong(run([0, 3, 2, 4, 6], pooling)));
                assert!(wrong(run([0, 2, 3, 7, 6], pooling)));
                assert!(wrong(run([0, 2, 3, -1, 6], pooling)));
                assert!(wrong(run([0, 2, 9, 9, 6], pooling)));
                assert!(wrong(run([0, i64::MIN, 3, 4, 6], pooling)));
            }
        }
    }
}

#[test]
fn shapes_that_do_not_fit_are_errors() {
    let cpu = Cpu::new(1).unwrap();
    let indices = [0_i64; 6];
    let lookups = Lookups::new(2, &indices[..], &OFFSETS[..]).unwrap();
    let mut out = [0.0; 80];
    let mut run = |tables: &Tables<'_>, lookups: &Lookups<'_>, len: usize, stride| {
        forward(&cpu, tables, lookups, Bounds::Error, &mut out[..len], stride).unwrap_err()
    };
    let sum = tables(Pooling::Sum);
    assert!(matches!(run(&sum, &lookups, 79, 40), EmbeddingError::Size { needed: 80, .. }));
    assert!(matches!(run(&sum, &lookups, 80, 39), EmbeddingError::Size { stride: 39, .. }));
    assert!(matches!(run(&sum, &lookups, 80, usize::MAX), EmbeddingError::Size { .. }));
    assert!(matches!(
        run(&tables(Pooling::None), &lookups, 80, 40),
        EmbeddingError::Pooling { table: 0, .. }
    ));
    let weights = [1.0; 6];
    let weighted = lookups.with_weights(&weights).unwrap();
    assert!(matches!(run(&tables(Pooling::Max), &weighted, 80, 40), EmbeddingError::Pooling { .. }));
    assert!(matches!(
        lookups.with_weights(&weights[1..]),
        Err(EmbeddingError::WeightCount { found: 5, needed: 6 })
    ));
    let one = Tables::new(vec![Table::zeros("t", [1, 1], Element::F32).unwrap()], Pooling::Sum);
    assert!(matches!(run(&one, &lookups, 80, 40), EmbeddingError::OffsetCount { found: 5, needed: 3, .. }));
    assert!(matches!(
        one.with_pooling(1, Pooling::Max),
        Err(EmbeddingError::NoTable { table: 1, tables: 1 })
    ));
    let mixed = tables(Pooling::None).with_pooling(1, Pooling::Sum).unwrap();
    let error = sequence(&cpu, &mixed, &lookups, Bounds::Error, &mut out, 20).unwrap_err();
    assert!(matches!(error, EmbeddingError::Pooling { table: 1, .. }));
    let error =
        weight_gradient(&cpu, &mixed, &lookups, Bounds::Error, (&[0.0; 80], 40), &mut out).unwrap_err();
    assert!(matches!(error, EmbeddingError::Pooling { table: 0, .. }));
}

#[test]
fn tables_that_cannot_be_are_errors() {
    let values = [0.0_f32; 10];
    assert!(matches!(Table::borrow("t", &values, 0), Err(EmbeddingError::Shape { .. })));
    assert!(matches!(Table::borrow("t", &values, 3), Err(EmbeddingError::Storage { .. })));
    assert!(matches!(Table::borrow::<f32>("t", &[], 3), Err(EmbeddingError::Shape { .. })));
    let bytes = [0; 40];
    let make = |shape, element, pitch| {
        Table::borrow_bytes("t", &bytes, shape, element, pitch).map(|table| table.rows())
    };
    assert!(matches!(make([5, 2], Element::F32, 9), Err(EmbeddingError::Pitch { .. })));
    assert!(matches!(make([5, 3], Element::F32, 8), Err(EmbeddingError::Pitch { .. })));
    assert!(matches!(make([6, 2], Element::F32, 8), Err(EmbeddingError::Storage { needed: 48, .. })));
    assert!(matches!(make([2, usize::MAX], Element::F32, 8), Err(EmbeddingError::Shape { .. })));
    assert!(matches!(make([usize::MAX, 2], Element::F32, 8), Err(EmbeddingError::Shape { .. })));
    assert_eq!(make([4, 9], Element::Int8(Scale::F16), 9 + 4).ok(), None);
    assert_eq!(make([3, 9], Element::Int8(Scale::F16), 9 + 4).ok(), Some(3));
    assert!(Table::zeros("t", [usize::MAX / 2, 64], Element::F32).is_err());
    let mut quantized = Table::zeros("t", [2, 64], Element::Int4(Scale::F32)).unwrap();
    assert!(matches!(quantized.weights_mut(), Err(EmbeddingError::NotTrainable { .. })));
    let mut borrowed = Table::borrow("t", &values, 2).unwrap();
    assert!(matches!(borrowed.weights_mut(), Err(EmbeddingError::NotTrainable { why: "read only", .. })));
    assert!(!borrowed.write_row(0, &[1.0, 2.0]));
}

/// A file that is deleted on drop.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        Scratch(std::env::temp_dir().join(format!("steptime-{name}-{}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_mapped_table_of_more_than_two_to_the_thirty_one_elements() {
    let scratch = Scratch::new("mapped");
    let (rows, dim) = ((1_usize << 31) / 64 + 3, 64);
    let mut file = File::create(&scratch.0).unwrap();
    // A hole: only written parts use disk space.
    file.set_len(64 + (rows * dim * 4) as u64).unwrap();
    let last: Vec<u8> = (0..dim).flat_map(|at| (at as f32).to_ne_bytes()).collect();
    file.seek(SeekFrom::Start(64 + ((rows - 1) * dim * 4) as u64)).unwrap();
    file.write_all(&last).unwrap();
    // SAFETY: no other code uses the file.
    let map = |offset, rows, write| unsafe {
        Table::map("t", &scratch.0, offset, [rows, dim], Element::F32, write)
    };
    assert!(matches!(map(64, rows + 1, false), Err(EmbeddingError::System { .. })));
    assert!(matches!(map(63, rows, false), Err(EmbeddingError::System { .. })));
    let indices = [rows as i64 - 1, 5, rows as i64 - 1];
    for cpu in machines() {
        let tables = Tables::new(vec![map(64, rows, false).unwrap()], Pooling::Sum);
        let mut out = [0.0; 64];
        let lookups = Lookups::new(1, &indices[..], &[0_i64, 3][..]).unwrap();
        forward(&cpu, &tables, &lookups, Bounds::Error, &mut out, 64).unwrap();
        assert!(out.iter().enumerate().all(|(at, &value)| value == 2.0 * at as f32));
    }
    let mut writable = map(64, rows, true).unwrap();
    assert!(writable.write_row(rows - 2, &[3.0; 64]));
    drop(writable);
    let again = map(64, rows, false).unwrap();
    let mut row = [0.0; 64];
    again.read_row(rows - 2, &mut row);
    assert_eq!(row, [3.0; 64]);
    // SAFETY: no other code uses the file.
    let missing = unsafe { Table::map("t", &scratch.0.join("no"), 0, [1, 1], Element::F32, false) };
    assert!(matches!(missing, Err(EmbeddingError::System { .. })));
}

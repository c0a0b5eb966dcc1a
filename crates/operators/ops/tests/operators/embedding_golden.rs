//! Bags against values that PyTorch 2.11 computed (`python/golden/ops.py`).

use serde::Deserialize;
use steptime_ops::embedding::{
    Bounds, Lookups, Order, Pooling, Table, Tables, forward, gather, weight_gradient,
};
use steptime_ops::{Cpu, Isa};

#[derive(Deserialize)]
struct Golden {
    table: Vec<Vec<f32>>,
    indices: Vec<i64>,
    offsets: Vec<i64>,
    weights: Vec<f32>,
    upstream: Vec<Vec<f32>>,
    out: Out,
    weight_gradient: Vec<f32>,
}

#[derive(Deserialize)]
struct Out {
    sum: Vec<Vec<f32>>,
    mean: Vec<Vec<f32>>,
    max: Vec<Vec<f32>>,
    weighted: Vec<Vec<f32>>,
    none: Vec<Vec<f32>>,
}

fn close(values: &[f32], golden: &[f32]) {
    assert_eq!(values.len(), golden.len());
    for (value, golden) in values.iter().zip(golden) {
        assert!((value - golden).abs() <= 2e-6 * (1.0 + golden.abs()), "{value} for {golden}");
    }
}

#[test]
fn bags_are_those_of_pytorch() {
    let golden: Golden = serde_json::from_str(include_str!("../golden/embedding.json")).unwrap();
    let values = golden.table.concat();
    let (bags, dim) = (golden.offsets.len() - 1, golden.table[0].len());
    let lookups = Lookups::new(bags, &golden.indices, &golden.offsets).unwrap();
    let weighted = lookups.with_weights(&golden.weights).unwrap();
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        let cpu = Cpu::with_isa(isa, 2).unwrap();
        let pool = |pooling, lookups: &Lookups<'_>| {
            let tables = Tables::new(vec![Table::borrow("t", &values, dim).unwrap()], pooling);
            let mut out = vec![0.0; bags * dim];
            forward(&cpu, &tables, lookups, Bounds::Error, &mut out, dim).unwrap();
            out
        };
        close(&pool(Pooling::Sum, &lookups), &golden.out.sum.concat());
        close(&pool(Pooling::Mean, &lookups), &golden.out.mean.concat());
        close(&pool(Pooling::Max, &lookups), &golden.out.max.concat());
        close(&pool(Pooling::Sum, &weighted), &golden.out.weighted.concat());
        let table = Table::borrow("t", &values, dim).unwrap();
        let mut rows = vec![0.0; golden.indices.len() * dim];
        gather(&cpu, &table, &golden.indices, Bounds::Error, Order::Auto, &mut rows, dim).unwrap();
        assert_eq!(rows, golden.out.none.concat());
        let tables = Tables::new(vec![table], Pooling::Sum);
        let mut gradient = vec![0.0; golden.weights.len()];
        let upstream = golden.upstream.concat();
        weight_gradient(&cpu, &tables, &weighted, Bounds::Error, (&upstream, dim), &mut gradient).unwrap();
        close(&gradient, &golden.weight_gradient);
    }
}

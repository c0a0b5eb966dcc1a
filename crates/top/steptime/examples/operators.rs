//! CPU operators: embedding bags over two tables of different width.

use steptime::ops::Cpu;
use steptime::ops::embedding::{Bounds, Element, Lookups, Pooling, Table, Tables, forward};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cpu = Cpu::new(2)?;
    let mut wide = Table::zeros("wide", [1000, 64], Element::F32)?;
    wide.write_row(7, &[1.5; 64]);
    let tables = Tables::new(vec![wide, Table::zeros("narrow", [10, 16], Element::F32)?], Pooling::Sum);
    // Two tables with two bags each: 7 and 7; 1; 3; none.
    let lookups = Lookups::new(2, &[7i64, 7, 1, 3][..], &[0i64, 2, 3, 4, 4][..])?;
    let mut pooled = vec![0.0; lookups.bags() * tables.columns()];
    forward(&cpu, &tables, &lookups, Bounds::Error, &mut pooled, tables.columns())?;
    println!("first bag: {} twice is {}", 1.5, pooled[0]);
    assert_eq!(pooled[0], 3.0);
    Ok(())
}

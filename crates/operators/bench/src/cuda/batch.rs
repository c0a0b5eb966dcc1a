//! Tables with batches of lookups, at the sizes at which other libraries were measured.

use bytemuck::Pod;
use rayon::prelude::*;
use steptime_cuda::embedding::{Ints, Lookups, Table, Tables};
use steptime_cuda::{Buffer, Slice, Stream, randomize};
use steptime_ops::embedding::{Element, Pooling};

use super::context::Context;
use super::draw::{Draw, distinct};
use crate::Error;
use crate::dlrm::CRITEO;
use crate::random::Random;
use crate::sizes::{Sizes, check_memory};

/// Number of index sets, used in turn.
pub const SETS: usize = 3;

/// Letters of the sizes of tables and a batch, with their defaults.
pub const KEYS: &[(&str, usize)] = &[("T", 8), ("E", 1_000_000), ("D", 64), ("L", 10), ("B", 2048)];

/// Tables with a batch.
#[derive(Debug, Clone)]
pub struct Shape {
    pub name: &'static str,
    pub rows: Vec<usize>,
    pub dim: usize,
    pub bags: usize,
    pub lookups: usize,
    pub element: Element,
    pub draws: &'static [Draw],
}

const UNIFORM: &[Draw] = &[Draw::Uniform];

impl Shape {
    /// Tables of one shape, and uniform indices.
    pub fn new(
        name: &'static str,
        [tables, rows, dim]: [usize; 3],
        lookups: usize,
        bags: usize,
        element: Element,
    ) -> Shape {
        Shape { name, rows: vec![rows; tables], dim, lookups, bags, element, draws: UNIFORM }
    }

    /// The given sizes. Fails where they do not fit, with `state` floats of state for each row.
    pub fn typed(context: &Context, sizes: &Sizes, state: impl Fn(usize) -> usize) -> Result<Shape, Error> {
        let [tables, rows, dim, lookups, bags] = ["T", "E", "D", "L", "B"].map(|key| sizes.get(key));
        let batch: [&[usize]; 2] = [&[2 * SETS, tables, bags, lookups], &[2, tables, bags]];
        check_memory(&batch)?;
        let table: [&[usize]; 2] = [&[tables, rows, dim + state(dim)], &[tables, bags, dim]];
        context.check_memory(&[table, batch].concat())?;
        Ok(Shape::new("", [tables, rows, dim], lookups, bags, Element::F32))
    }

    /// The shapes at which other libraries were measured.
    pub fn measured() -> Vec<Shape> {
        let shape = |name, sizes, lookups, bags| Shape::new(name, sizes, lookups, bags, Element::F32);
        vec![
            shape("DLRM default", [8, 1_000_000, 64], 10, 2048),
            shape("DLRM DDP", [8, 80_000, 128], 20, 2048),
            Shape { rows: CRITEO.to_vec(), ..shape("Criteo Kaggle", [26, 0, 128], 1, 8192) },
            Shape {
                draws: &[Draw::Uniform, Draw::Zipf(1.05), Draw::Zipf(1.2)],
                ..shape("large", [16, 1_000_000, 128], 32, 8192)
            },
            shape("small", [4, 1000, 32], 5, 512),
            shape("wide", [4, 1_000_000, 512], 10, 8192),
        ]
    }

    /// Runs a case with each distribution of indices, over the same tables.
    pub fn each_draw(
        &self,
        context: &mut Context,
        case: fn(&mut Context, &Shape, &mut Tables<'_>, Draw) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut values = self.values(&context.stream)?;
        let mut tables = self.tables(&mut values)?;
        context.draws(self.draws).into_iter().try_for_each(|draw| case(context, self, &mut tables, draw))
    }

    /// Text for the report.
    pub fn text(&self) -> String {
        let (rows, tables, element) = (&self.rows, self.rows.len(), self.element);
        let same = rows.iter().all(|one| one == &rows[0]);
        let sizes = if same { rows[0].to_string() } else { "mixed".into() };
        let element = if element == Element::F32 { String::new() } else { format!(" {element}") };
        format!("T={tables},E={sizes},D={},L={},B={}{element}", self.dim, self.lookups, self.bags)
    }

    /// Rows of random bits.
    pub fn values(&self, stream: &Stream) -> Result<Vec<Buffer<f32>>, Error> {
        let mut all = Vec::new();
        for (at, rows) in self.rows.iter().enumerate() {
            let bytes = rows * self.element.pitch(self.dim);
            let mut values = Buffer::<f32>::uninit(stream.device(), bytes.div_ceil(4))?;
            randomize(stream, &mut values.as_mut(), at as u64)?;
            all.push(values);
        }
        Ok(all)
    }

    /// Mutable tables over these buffers.
    pub fn tables<'a>(&self, values: &'a mut [Buffer<f32>]) -> Result<Tables<'a>, Error> {
        let (element, dim) = (self.element, self.dim);
        let tables = values.iter_mut().zip(&self.rows).map(|(values, &rows)| {
            Table::borrow_mut("table", values.as_mut().cast(), [rows, dim], element, element.pitch(dim))
        });
        Ok(Tables::new(tables.collect::<Result<_, steptime_cuda::Error>>()?, Pooling::Sum))
    }

    /// The indices of a bag, out of those of all bags.
    pub fn bag<'i>(&self, indices: &'i [i64], table: usize, bag: usize) -> &'i [i64] {
        &indices[(table * self.bags + bag) * self.lookups..][..self.lookups]
    }

    /// Lookups of one table.
    pub fn table_lookups(&self) -> usize {
        self.bags * self.lookups
    }

    /// Draws sets of lookups.
    pub fn draw(&self, stream: &Stream, draw: Draw) -> Result<Batches, Error> {
        // One table after the other, each from its own seed.
        let set = |set: usize| -> Vec<Vec<i64>> {
            let one = |(at, &rows): (usize, &usize)| {
                let mut random = Random::new((1000 * set + at) as u64);
                (0..self.table_lookups()).map(|_| draw.index(&mut random, rows)).collect()
            };
            self.rows.par_iter().enumerate().map(one).collect()
        };
        let drawn: Vec<_> = (0..SETS).map(set).collect();
        let different = drawn[0].iter().zip(&self.rows).map(|(indices, &rows)| distinct(indices, rows)).sum();
        let drawn: Vec<Vec<i64>> = drawn.iter().map(|set| set.concat()).collect();
        let upload = |set: &Vec<i64>| Buffer::from_host(stream, set);
        let indices = drawn.iter().map(upload).collect::<Result<Vec<_>, _>>()?;
        let first = drawn.into_iter().next().unwrap_or_default();
        let offsets: Vec<i64> =
            (0..=self.rows.len() * self.bags).map(|bag| (bag * self.lookups) as i64).collect();
        Ok(Batches {
            bags: self.bags,
            indices,
            offsets: Buffer::from_host(stream, &offsets)?,
            first,
            different,
        })
    }
}

/// Sets of lookups on the GPU.
pub struct Batches {
    bags: usize,
    indices: Vec<Buffer<i64>>,
    offsets: Buffer<i64>,
    /// The indices of the first set.
    pub first: Vec<i64>,
    /// Number of distinct rows in a set.
    pub different: usize,
}

impl Batches {
    /// The lookups of each set.
    pub fn lookups(&self) -> Result<Vec<Lookups<'_>>, steptime_cuda::Error> {
        let offsets = Ints::I64(self.offsets.as_ref());
        self.indices.iter().map(|set| Lookups::new(self.bags, Ints::I64(set.as_ref()), offsets)).collect()
    }

    /// Number of distinct rows divided by the number of lookups.
    pub fn distinct(&self) -> f64 {
        self.different as f64 / self.indices[0].len() as f64
    }

    /// Bytes of the indices of a set, and of the offsets.
    pub fn bytes(&self) -> usize {
        8 * (self.indices[0].len() + self.offsets.len())
    }
}

/// Writes a row of a mutable table.
pub fn put_row(
    stream: &Stream,
    tables: &mut Tables<'_>,
    table: usize,
    row: usize,
    bytes: &[u8],
) -> Result<(), Error> {
    let start = row * tables.table(table).pitch();
    if let Some(mut values) = tables.values_mut(table) {
        values.slice(start..start + bytes.len()).write(stream, bytes)?;
    }
    Ok(())
}

/// Reads a row of a table of floats.
pub fn read_row(stream: &Stream, tables: &Tables<'_>, table: usize, row: usize) -> Result<Vec<f32>, Error> {
    let table = tables.table(table);
    let start = row * table.pitch();
    Ok(read(stream, table.bytes().slice(start..start + 4 * table.dim()).cast())?)
}

/// Reads elements to the host, after the preceding work of the stream.
pub fn read<T: Pod>(stream: &Stream, slice: Slice<'_, T>) -> Result<Vec<T>, steptime_cuda::Error> {
    let mut values = vec![T::zeroed(); slice.len()];
    slice.read(stream, &mut values)?;
    Ok(values)
}

//! Sizes and offsets of bags, and dense gradients of tables, on a GPU against the CPU operators. Without a GPU the tests
//! are skipped with a message.

use crate::support;
use crate::support::number::Number;
use crate::support::random::Random;

use half::bf16;
use steptime_cuda::embedding as device;
use steptime_cuda::embedding::{BagSizes, DenseGradient, DenseGradients, OffsetsFromSizes, Sizes};
use steptime_cuda::{Buffer, Error, Graph, Stream};
use steptime_ops::Cpu;
use steptime_ops::embedding::backward::{Gradient, sparse_gradients};
use steptime_ops::embedding::group::Grouping;
use steptime_ops::embedding::{Bounds, EmbeddingError, Lookups, Pooling, Table, Tables};

fn gpu() -> Option<Stream> {
    support::device().map(|device| device.stream().unwrap())
}

/// Sizes of 0 to `most` lookups, some bags much longer.
fn sizes(random: &mut Random, bags: usize, most: usize) -> Vec<i64> {
    let size = |random: &mut Random| match random.below(50) {
        0 => 40 * most,
        _ => random.below(most + 1),
    };
    (0..bags).map(|_| size(random) as i64).collect()
}

/// Offsets `[B + 1]` of bags of these sizes.
fn offsets(sizes: &[i64]) -> Vec<i64> {
    let mut offsets = vec![0];
    offsets.extend(sizes.iter().scan(0_i64, |end, size| {
        *end = end.wrapping_add(*size);
        Some(*end)
    }));
    offsets
}

#[test]
fn sizes_and_offsets_of_bags_are_exact() {
    let Some(stream) = gpu() else { return };
    let of_sizes = OffsetsFromSizes::new(stream.device()).unwrap();
    let of_offsets = BagSizes::new(stream.device()).unwrap();
    let mut random = Random(1);
    for (bags, most) in [(0, 0), (1, 0), (1, 9), (31, 3), (1024, 1), (8192, 4), (8193, 0), (100_001, 7)] {
        let sizes = sizes(&mut random, bags, most);
        let expected = offsets(&sizes);
        let lookups = expected[bags] as usize;
        let given = Buffer::from_host(&stream, &sizes).unwrap();
        let mut ends = Buffer::from_host(&stream, &vec![-7_i64; bags + 1]).unwrap();
        of_sizes.run(&stream, given.as_ref(), &mut ends.as_mut()).unwrap();
        assert_eq!(ends.to_host(&stream).unwrap(), expected, "{bags} {most}");
        let [mut bag, mut size] =
            [lookups, bags].map(|len| Buffer::from_host(&stream, &vec![-7_i64; len]).unwrap());
        let starts = ends.as_ref().slice(0..bags);
        of_offsets.run(&stream, starts, &mut bag.as_mut(), &mut size.as_mut()).unwrap();
        let of_lookups: Vec<i64> =
            sizes.iter().enumerate().flat_map(|(bag, &size)| vec![bag as i64; size as usize]).collect();
        assert_eq!(bag.to_host(&stream).unwrap(), of_lookups, "{bags} {most}");
        assert_eq!(size.to_host(&stream).unwrap(), sizes, "{bags} {most}");
    }
}

#[test]
fn wrong_offsets_reach_no_other_memory_and_wrong_sizes_are_refused() {
    let Some(stream) = gpu() else { return };
    let of_sizes = OffsetsFromSizes::new(stream.device()).unwrap();
    let of_offsets = BagSizes::new(stream.device()).unwrap();
    let negative = [3, -5, i64::MAX, i64::MAX, 1];
    let given = Buffer::from_host(&stream, &negative).unwrap();
    let mut ends = Buffer::zeros(&stream, 6).unwrap();
    of_sizes.run(&stream, given.as_ref(), &mut ends.as_mut()).unwrap();
    assert_eq!(ends.to_host(&stream).unwrap(), offsets(&negative));
    let error = of_sizes.run(&stream, given.as_ref(), &mut ends.as_mut().slice(0..5)).unwrap_err();
    assert!(matches!(error, Error::Size { found: 5, needed: 6, .. }), "{error}");
    let wrong = Buffer::from_host(&stream, &[9_i64, -4, i64::MAX, i64::MIN, 3]).unwrap();
    let [mut bag, mut size] = [3000, 5].map(|len| Buffer::zeros(&stream, len).unwrap());
    of_offsets.run(&stream, wrong.as_ref(), &mut bag.as_mut(), &mut size.as_mut()).unwrap();
    assert!(bag.to_host(&stream).unwrap().iter().all(|bag| (0..5).contains(bag)));
    let error = of_offsets.run(&stream, wrong.as_ref().slice(0..0), &mut bag.as_mut(), &mut size.as_mut());
    assert!(matches!(error, Err(Error::Size { found: 5, needed: 0, .. })), "{error:?}");
}

/// A table's shape, and lookups in it, a third of them of one row.
struct Case {
    shape: [usize; 2],
    pooling: Pooling,
    sizes: Vec<i64>,
    indices: Vec<i64>,
    gradient: Vec<f32>,
}

impl Case {
    fn new(random: &mut Random, shape: [usize; 2], pooling: Pooling, sizes: Vec<i64>) -> Case {
        let [rows, dim] = shape;
        let lookups = sizes.iter().sum::<i64>() as usize;
        let index = |random: &mut Random| match random.below(3) {
            0 => rows / 2,
            _ => random.below(rows),
        };
        let indices = (0..lookups).map(|_| index(random) as i64).collect();
        let gradient = (0..sizes.len() * dim).map(|_| random.value()).collect();
        Case { shape, pooling, sizes, indices, gradient }
    }

    /// The gradient by the CPU operators; only the shape of the table matters.
    fn expected(&self) -> Vec<f32> {
        let ([rows, dim], cpu) = (self.shape, Cpu::new(1).unwrap());
        let mut to = vec![0.0; rows * dim];
        let zeros = to.clone();
        let tables = Tables::new(vec![Table::borrow("t", &zeros, dim).unwrap()], self.pooling);
        let offsets = offsets(&self.sizes);
        let lookups = Lookups::new(self.sizes.len(), &self.indices[..], &offsets[..]).unwrap();
        let mut grouping = Grouping::new();
        grouping.group(&cpu, &tables, &lookups, Bounds::Error).unwrap();
        let gradient = Gradient::new(&self.gradient, dim);
        let sparse = sparse_gradients(&cpu, &tables, &lookups, &grouping, Bounds::Error, &gradient).unwrap();
        for table in &sparse {
            for (&row, values) in table.rows.iter().zip(table.values.chunks(dim)) {
                to[row * dim..][..dim].copy_from_slice(values);
            }
        }
        to
    }
}

/// A case on the GPU.
struct OnGpu<G = f32> {
    sizes: Buffer<i64>,
    indices: Buffer<i64>,
    gradient: Buffer<G>,
    to: Buffer<f32>,
}

impl<G: Number> OnGpu<G> {
    fn new(stream: &Stream, case: &Case) -> OnGpu<G> {
        let gradient: Vec<G> = case.gradient.iter().map(|&value| G::rounded(value)).collect();
        OnGpu {
            sizes: Buffer::from_host(stream, &case.sizes).unwrap(),
            indices: Buffer::from_host(stream, &case.indices).unwrap(),
            gradient: Buffer::from_host(stream, &gradient).unwrap(),
            to: Buffer::from_host(stream, &vec![f32::NAN; case.shape[0] * case.shape[1]]).unwrap(),
        }
    }

    fn run(&mut self, stream: &Stream, op: &mut DenseGradient<G>) -> Result<(), Error> {
        let (indices, sizes) = (self.indices.as_ref(), self.sizes.as_ref());
        op.run(stream, indices, sizes, self.gradient.as_ref(), &mut self.to.as_mut())
    }

    /// Fails unless the result has the bits of the CPU, but for the sign of zeros.
    fn compare(&self, stream: &Stream, case: &Case, what: &str) {
        let dim = case.shape[1];
        let found = self.to.to_host(stream).unwrap();
        for (at, (found, expected)) in found.iter().zip(case.expected()).enumerate() {
            let same = found.to_bits() == (expected + 0.0).to_bits();
            assert!(same, "{what}, row {}, column {}: {found} for {expected}", at / dim, at % dim);
        }
    }
}

#[test]
fn dense_gradients_have_the_bits_of_the_cpu() {
    let Some(stream) = gpu() else { return };
    compare_dense::<f32>(&stream);
}

#[test]
fn dense_gradients_of_16_bit_gradients_have_the_bits_of_the_cpu() {
    let Some(stream) = gpu() else { return };
    compare_dense::<bf16>(&stream);
}

fn compare_dense<G: Number>(stream: &Stream) {
    let mut random = Random(2);
    let cases = [
        ([1, 1], 1, 0),
        ([40, 7], 33, 5),
        ([700, 128], 300, 7),
        ([3, 64], 900, 9),
        ([9000, 33], 3000, 4),
        ([100_000, 16], 20_000, 3),
        ([50, 260], 70, 6),
        ([5, 4], 0, 0),
    ];
    for (shape, bags, most) in cases {
        for pooling in [Pooling::Sum, Pooling::Mean] {
            let sizes = sizes(&mut random, bags, most);
            let mut case = Case::new(&mut random, shape, pooling, sizes);
            case.gradient.iter_mut().for_each(|value| *value = G::rounded(*value).value());
            let mut op = DenseGradient::<G>::new(stream, shape, bags, case.indices.len(), pooling).unwrap();
            // A second run overwrites the first, at another address.
            let mut on_gpu = [(); 2].map(|()| OnGpu::<G>::new(stream, &case));
            for operands in &mut on_gpu {
                for _ in 0..2 {
                    operands.run(stream, &mut op).unwrap();
                    op.check(stream, operands.indices.as_ref()).unwrap();
                    operands.compare(stream, &case, &format!("{shape:?} {bags} {pooling:?}"));
                }
            }
        }
    }
}

#[test]
fn captured_gradients_are_those_of_what_is_there_when_they_are_replayed() {
    let Some(stream) = gpu() else { return };
    let (shape, bags, mut random) = ([500, 32], 200, Random(3));
    let case = Case::new(&mut random, shape, Pooling::Mean, vec![6; bags]);
    let mut op = DenseGradient::new(&stream, shape, bags, 6 * bags, Pooling::Mean).unwrap();
    let mut on_gpu = OnGpu::<f32>::new(&stream, &case);
    let graph = Graph::capture(&stream, |stream| on_gpu.run(stream, &mut op)).unwrap();
    let mut other = OnGpu::<f32>::new(&stream, &case);
    for _ in 0..3 {
        let case = Case::new(&mut random, shape, Pooling::Mean, vec![6; bags]);
        on_gpu.indices.as_mut().write(&stream, &case.indices).unwrap();
        on_gpu.gradient.as_mut().write(&stream, &case.gradient).unwrap();
        // SAFETY: all buffers and the operator live, and the stream is waited for.
        unsafe { graph.replay() }.unwrap();
        on_gpu.compare(&stream, &case, "a replay");
        // A run at another address in between changes neither.
        other.run(&stream, &mut op).unwrap();
    }
    other.compare(&stream, &case, "a run between replays");
}

/// Cases of several tables on the GPU: joined lookups, the gradient of all bags, and the gradients of the tables.
struct Joined<G = f32> {
    bags: usize,
    indices: Buffer<i64>,
    offsets: Buffer<i64>,
    gradient: Buffer<G>,
    to: Vec<Buffer<f32>>,
}

impl<G: Number> Joined<G> {
    /// Elements behind the columns of each row of the gradient.
    const PAD: usize = 4;

    fn new(stream: &Stream, cases: &[Case]) -> Joined<G> {
        let bags = cases[0].sizes.len();
        let indices: Vec<i64> = cases.iter().flat_map(|case| case.indices.clone()).collect();
        let sizes: Vec<i64> = cases.iter().flat_map(|case| case.sizes.clone()).collect();
        let mut gradient = Vec::new();
        for bag in 0..bags {
            for case in cases {
                let dim = case.shape[1];
                gradient.extend(case.gradient[bag * dim..][..dim].iter().map(|&value| G::rounded(value)));
            }
            gradient.extend([G::rounded(f32::NAN); 4]);
        }
        let nan = |case: &Case| vec![f32::NAN; case.shape[0] * case.shape[1]];
        Joined {
            bags,
            indices: Buffer::from_host(stream, &indices).unwrap(),
            offsets: Buffer::from_host(stream, &offsets(&sizes)).unwrap(),
            gradient: Buffer::from_host(stream, &gradient).unwrap(),
            to: cases.iter().map(|case| Buffer::from_host(stream, &nan(case)).unwrap()).collect(),
        }
    }

    fn lookups(&self) -> device::Lookups<'_> {
        let [indices, offsets] = [&self.indices, &self.offsets].map(|ints| device::Ints::I64(ints.as_ref()));
        device::Lookups::new(self.bags, indices, offsets).unwrap()
    }

    fn op(&self, stream: &Stream, cases: &[Case]) -> Result<DenseGradients<G>, Error> {
        let shapes: Vec<[usize; 2]> = cases.iter().map(|case| case.shape).collect();
        let stride = shapes.iter().map(|shape| shape[1]).sum::<usize>() + Joined::<G>::PAD;
        let longest = cases.iter().map(|case| case.indices.len()).max().unwrap();
        let sizes = Sizes::from_lookups(&self.lookups(), stride);
        DenseGradients::new(stream, shapes, sizes, longest, cases[0].pooling)
    }

    fn run(&mut self, stream: &Stream, op: &mut DenseGradients<G>) -> Result<(), Error> {
        let [indices, offsets] = [&self.indices, &self.offsets].map(|ints| device::Ints::I64(ints.as_ref()));
        let lookups = device::Lookups::new(self.bags, indices, offsets)?;
        let to: Vec<_> = self.to.iter_mut().map(Buffer::as_mut).collect();
        op.group(stream, &lookups)?;
        op.clear(stream, &to)?;
        op.add(stream, &lookups, self.gradient.as_ref(), to)
    }

    /// Fails unless all results have the bits of the CPU, but for the sign of zeros.
    fn compare(&self, stream: &Stream, cases: &[Case], what: &str) {
        for (table, (to, case)) in self.to.iter().zip(cases).enumerate() {
            let found = to.to_host(stream).unwrap();
            for (at, (found, expected)) in found.iter().zip(case.expected()).enumerate() {
                let same = found.to_bits() == (expected + 0.0).to_bits();
                assert!(same, "{what}, table {table}, element {at}: {found} for {expected}");
            }
        }
    }
}

#[test]
fn dense_gradients_of_several_tables_have_the_bits_of_the_cpu() {
    let Some(stream) = gpu() else { return };
    compare_joined::<f32>(&stream);
}

#[test]
fn dense_gradients_of_several_tables_from_16_bits_have_the_bits_of_the_cpu() {
    let Some(stream) = gpu() else { return };
    compare_joined::<bf16>(&stream);
}

fn compare_joined<G: Number>(stream: &Stream) {
    let mut random = Random(6);
    let sets: [(&[[usize; 2]], usize, usize); 5] = [
        (&[[1, 1]], 1, 3),
        (&[[40, 7], [3, 64], [700, 128]], 33, 5),
        (&[[100_000, 16], [9000, 33], [50, 260], [100_000, 16]], 3000, 4),
        // More tables than one launch clears.
        (&[[1000, 32]; 70], 20, 2),
        (&[[100_000, 1]; 16], 8192, 1),
    ];
    for (shapes, bags, most) in sets {
        for pooling in [Pooling::Sum, Pooling::Mean] {
            let mut cases = Vec::new();
            for &shape in shapes {
                let of_bags = sizes(&mut random, bags, most);
                let mut case = Case::new(&mut random, shape, pooling, of_bags);
                case.gradient.iter_mut().for_each(|value| *value = G::rounded(*value).value());
                cases.push(case);
            }
            let mut joined = Joined::<G>::new(stream, &cases);
            let mut op = joined.op(stream, &cases).unwrap();
            for _ in 0..2 {
                joined.run(stream, &mut op).unwrap();
                op.check(stream, &joined.lookups()).unwrap();
                joined.compare(stream, &cases, &format!("{} tables {bags} {pooling:?}", shapes.len()));
            }
            let graph = Graph::capture(stream, |stream| joined.run(stream, &mut op)).unwrap();
            for to in &mut joined.to {
                to.as_mut().fill_bytes(stream, 0xff).unwrap();
            }
            // SAFETY: all buffers and the operator live, and the stream is waited for.
            unsafe { graph.replay() }.unwrap();
            joined.compare(stream, &cases, "a replay");
        }
    }
}

#[test]
fn wrong_lookups_of_several_tables_give_zeros_and_are_named() {
    let Some(stream) = gpu() else { return };
    let mut random = Random(7);
    let mut cases: Vec<Case> = [[10, 8], [12, 8]]
        .map(|shape| Case::new(&mut random, shape, Pooling::Sum, vec![3; 4]))
        .into_iter()
        .collect();
    cases[1].indices[4] = 12;
    let mut joined = Joined::<f32>::new(&stream, &cases);
    let mut op = joined.op(&stream, &cases).unwrap();
    joined.run(&stream, &mut op).unwrap();
    for to in &joined.to {
        assert!(to.to_host(&stream).unwrap().iter().all(|&value| value == 0.0));
    }
    match op.check(&stream, &joined.lookups()).unwrap_err() {
        Error::Embedding(EmbeddingError::Index { table: 1, bag: 1, index: 12, rows: 12, .. }) => {}
        other => panic!("{other}"),
    }
    let max = DenseGradients::<f32>::new(
        &stream,
        vec![[10, 8]],
        Sizes::from_lookups(&joined.lookups(), 8),
        24,
        Pooling::Max,
    );
    assert!(max.unwrap_err().to_string().contains("pool them by sum or mean"));
}

#[test]
fn wrong_lookups_give_zeros_and_are_named() {
    let Some(stream) = gpu() else { return };
    let (shape, bags, mut random) = ([10, 8], 4, Random(4));
    let mut op = DenseGradient::new(&stream, shape, bags, 12, Pooling::Sum).unwrap();
    let mut failure = |random: &mut Random, change: &dyn Fn(&mut Case)| {
        let mut case = Case::new(random, shape, Pooling::Sum, vec![3; bags]);
        change(&mut case);
        let mut on_gpu = OnGpu::<f32>::new(&stream, &case);
        on_gpu.run(&stream, &mut op).unwrap();
        assert!(on_gpu.to.to_host(&stream).unwrap().iter().all(|&value| value == 0.0));
        op.check(&stream, on_gpu.indices.as_ref()).unwrap_err()
    };
    match failure(&mut random, &|case| (case.indices[7], case.indices[11]) = (10, -1)) {
        Error::Embedding(EmbeddingError::Index {
            table: 0, bag: 2, lookup: 7, index: 10, rows: 10, ..
        }) => {}
        other => panic!("{other}"),
    }
    match failure(&mut random, &|case| case.sizes[1] = -2) {
        Error::Embedding(EmbeddingError::Offset { at: 2, value: 1, before: 3, indices: 12 }) => {}
        other => panic!("{other}"),
    }
    match failure(&mut random, &|case| case.sizes[3] = 1) {
        Error::Embedding(EmbeddingError::Offset { at: 4, value: 10, indices: 12, .. }) => {}
        other => panic!("{other}"),
    }
}

#[test]
fn dense_gradients_of_other_sizes_are_refused() {
    let Some(stream) = gpu() else { return };
    let max = DenseGradient::<f32>::new(&stream, [10, 8], 4, 12, Pooling::Max).unwrap_err().to_string();
    assert!(max.contains("pool them by sum or mean"), "{max}");
    let mut random = Random(5);
    let mut op = DenseGradient::new(&stream, [10, 8], 4, 12, Pooling::Sum).unwrap();
    for (shape, bags) in [([9, 8], 4), ([10, 8], 3), ([10, 8], 5)] {
        let case = Case::new(&mut random, shape, Pooling::Sum, vec![2; bags]);
        assert!(OnGpu::<f32>::new(&stream, &case).run(&stream, &mut op).is_err(), "{shape:?} {bags}");
    }
    let case = Case::new(&mut random, [10, 8], Pooling::Sum, vec![2; 4]);
    let mut on_gpu = OnGpu::<f32>::new(&stream, &case);
    on_gpu.run(&stream, &mut op).unwrap();
    op.check(&stream, on_gpu.indices.as_ref()).unwrap();
    assert!(op.check(&stream, on_gpu.sizes.as_ref()).is_err());
}

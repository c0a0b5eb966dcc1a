//! Gather and bags on a GPU against the CPU operators, bit by bit. Without a GPU the tests are skipped with a message.

use crate::support;
use crate::support::number::Number;
use crate::support::random;

use half::bf16;
use random::Random;
use steptime_cuda::embedding::{Forward, Gather, GatherOrder, Ints, OwnedLookups, Sizes, Table};
use steptime_cuda::{Buffer, Device, Error, Graph, Origin, Source, Stream};
use steptime_ops::embedding as ops;
use steptime_ops::embedding::{Bounds, Element, EmbeddingError, Pooling};

/// The GPU, if there is one.
fn gpu() -> Option<Device> {
    support::device()
}

/// Calls this for each element type, in parallel: most of the time is spent compiling.
fn for_each_element(device: &Device, test: impl Fn(Element, &Stream, Random) + Sync) {
    let test = &test;
    std::thread::scope(|scope| {
        for (at, element) in Element::ALL.into_iter().enumerate() {
            scope.spawn(move || test(element, &device.stream().unwrap(), Random(at as u64)));
        }
    });
}

/// A table of random values, in rows `pitch` apart or as narrow as possible.
fn table(random: &mut Random, rows: usize, dim: usize, element: Element) -> ops::Table<'static> {
    let mut table = ops::Table::zeros("t", [rows, dim], element).unwrap();
    let mut values = vec![0.0; dim];
    for row in 0..rows {
        values.iter_mut().for_each(|value| *value = random.value());
        assert!(table.write_row(row, &values));
    }
    table
}

/// Bags of 0 to `most` lookups, with indices slightly out of range if requested.
struct Batch {
    bags: usize,
    indices: Vec<i64>,
    offsets: Vec<i64>,
    weights: Vec<f32>,
}

impl Batch {
    fn new(random: &mut Random, rows: &[usize], bags: usize, most: usize, wild: bool) -> Batch {
        let (mut indices, mut offsets) = (Vec::new(), vec![0]);
        for &rows in rows {
            for _ in 0..bags {
                for _ in 0..random.below(most + 1) {
                    let index = random.below(rows) as i64;
                    indices.push(match random.below(20) {
                        0 if wild => -1 - index,
                        1 if wild => rows as i64 + index,
                        _ => index,
                    });
                }
                offsets.push(indices.len() as i64);
            }
        }
        let weights = indices.iter().map(|_| random.value()).collect();
        Batch { bags, indices, offsets, weights }
    }

    fn lookups(&self, weighted: bool) -> ops::Lookups<'_> {
        let lookups = ops::Lookups::new(self.bags, &self.indices, &self.offsets).unwrap();
        if weighted { lookups.with_weights(&self.weights).unwrap() } else { lookups }
    }
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Output and report of both sides, for tables with adjacent columns or for lookups without pooling: the CPU's output
/// rounded to `D`.
fn compare<D: Number>(
    stream: &Stream,
    tables: &ops::Tables<'_>,
    batch: &Batch,
    weighted: bool,
    bounds: Bounds,
    stride: usize,
) {
    let lookups = batch.lookups(weighted);
    let apart = tables.pooling(0) == Pooling::None;
    let rows = if apart { lookups.len() } else { lookups.bags() };
    let mut expected = vec![7.0; rows * stride];
    let report = if apart {
        let cpu = steptime_ops::Cpu::new(1).unwrap();
        ops::sequence(&cpu, tables, &lookups, bounds, &mut expected, stride).unwrap()
    } else {
        ops::forward_reference(tables, &lookups, bounds, &mut expected, stride).unwrap()
    };
    let on_gpu = tables.try_map(|table| Table::upload(stream, table)).unwrap();
    let copies = OwnedLookups::upload(stream, &lookups).unwrap();
    let sizes = Sizes::from_lookups(&copies.view(), stride);
    let mut forward = Forward::<D>::new(stream.device(), &on_gpu, sizes, bounds).unwrap();
    let expected: Vec<D> = expected.into_iter().map(D::rounded).collect();
    let mut out = Buffer::from_host(stream, &vec![D::rounded(7.0); rows * stride]).unwrap();
    for _ in 0..2 {
        forward.run(stream, &on_gpu, &copies.view(), &mut out.as_mut()).unwrap();
        assert_eq!(forward.check(stream, &on_gpu, &copies.view()).unwrap(), report);
        let found = out.to_host(stream).unwrap();
        let wrong = found.iter().zip(&expected).position(|(found, expected)| found.bits() != expected.bits());
        if let Some(at) = wrong {
            let what = format!("{} {:?}", tables.table(0).element(), tables.pooling(0));
            panic!(
                "{what}, D {}, weighted {weighted}, {bounds:?}: row {}, column {}: {:?} for {:?}\n{}",
                tables.table(0).dim(),
                at / stride,
                at % stride,
                found[at],
                expected[at],
                forward.geometry().unwrap()
            );
        }
    }
}

#[test]
fn bags_have_the_bits_of_the_cpu() {
    let Some(device) = gpu() else { return };
    for_each_element(&device, |element, stream, mut random| {
        let dims = [
            (1, 9),
            (8, 70),
            (31, 3),
            (33, 12),
            (40, 20),
            (64, 40),
            (100, 1),
            (128, 33),
            (130, 5),
            (200, 30),
            (515, 7),
        ];
        let all_bounds = [Bounds::Error, Bounds::WarnAndZero, Bounds::Ignore];
        for (at, (dim, most)) in dims.into_iter().enumerate() {
            let rows = [3, 1000];
            let all: Vec<_> = rows.iter().map(|&rows| table(&mut random, rows, dim, element)).collect();
            let mut tables = ops::Tables::new(all, Pooling::Sum);
            for (place, pooling) in [Pooling::Sum, Pooling::Mean, Pooling::Max].into_iter().enumerate() {
                for at in 0..2 {
                    tables = tables.with_pooling(at, pooling).unwrap();
                }
                let weighted = pooling != Pooling::Max && dim % 2 == 0;
                let bounds = all_bounds[(at + place) % 3];
                let batch = Batch::new(&mut random, &rows, 77, most, bounds != Bounds::Error);
                compare::<f32>(stream, &tables, &batch, weighted, bounds, 2 * dim + dim % 3);
            }
        }
    });
}

#[test]
fn bags_of_16_bits_are_those_of_the_cpu_rounded_once() {
    let Some(device) = gpu() else { return };
    for_each_element(&device, |element, stream, mut random| {
        for (dim, pooling, pad) in
            [(33, Pooling::Sum, 0), (64, Pooling::Mean, 2), (128, Pooling::Sum, 0), (200, Pooling::Max, 0)]
        {
            let rows = [3, 1000];
            let all: Vec<_> = rows.iter().map(|&rows| table(&mut random, rows, dim, element)).collect();
            let tables = ops::Tables::new(all, pooling);
            let batch = Batch::new(&mut random, &rows, 77, 20, true);
            compare::<bf16>(stream, &tables, &batch, false, Bounds::WarnAndZero, 2 * dim + pad);
        }
        let tables = ops::Tables::new(vec![table(&mut random, 40, 36, element)], Pooling::None);
        let batch = Batch::new(&mut random, &[40], 300, 4, false);
        compare::<bf16>(stream, &tables, &batch, true, Bounds::Error, 36);
    });
}

#[test]
fn sequences_have_the_bits_of_the_cpu() {
    let Some(device) = gpu() else { return };
    for_each_element(&device, |element, stream, mut random| {
        for dim in [5, 64, 300] {
            let rows = [40, 700];
            let all: Vec<_> = rows.iter().map(|&rows| table(&mut random, rows, dim, element)).collect();
            let tables = ops::Tables::new(all, Pooling::None);
            for (weighted, bounds) in
                [(false, Bounds::Ignore), (true, Bounds::WarnAndZero), (false, Bounds::Error)]
            {
                let batch = Batch::new(&mut random, &rows, 300, 4, bounds != Bounds::Error);
                compare::<f32>(stream, &tables, &batch, weighted, bounds, dim);
            }
        }
    });
}

/// Tables of several columns, elements and poolings in one launch; many short bags; few long ones.
#[test]
fn tables_of_all_kinds_share_a_launch() {
    let Some(device) = gpu() else { return };
    let stream = device.stream().unwrap();
    let mut random = Random(3);
    let kinds =
        [(16, Element::F32), (64, Element::Int8(ops::Scale::F16)), (48, Element::F16), (200, Element::Bf16)];
    let rows: Vec<usize> = kinds.iter().enumerate().map(|(at, _)| 50 + 1000 * at).collect();
    let all = kinds.iter().zip(&rows).map(|(&(dim, element), &rows)| table(&mut random, rows, dim, element));
    let tables = ops::Tables::new(all.collect(), Pooling::Sum).with_pooling(1, Pooling::Mean).unwrap();
    let tables = tables.with_pooling(3, Pooling::Max).unwrap();
    for (bags, most) in [(20_000, 1), (9000, 3), (3, 4000), (1, 0), (5000, 100)] {
        let batch = Batch::new(&mut random, &rows, bags, most, true);
        compare::<f32>(&stream, &tables, &batch, false, Bounds::WarnAndZero, tables.columns());
        compare::<f32>(&stream, &tables, &batch, false, Bounds::Ignore, tables.columns() + 5);
    }
}

#[test]
fn gathers_of_all_orders_have_the_bits_of_the_cpu() {
    let Some(device) = gpu() else { return };
    for_each_element(&device, |element, stream, mut random| {
        for dim in [1, 8, 33, 129, 1030] {
            let host = table(&mut random, 300, dim, element);
            let on_gpu = Table::upload(stream, &host).unwrap();
            let mut indices: Vec<i32> = (0..1001).map(|_| random.below(300) as i32).collect();
            indices[17] = -3;
            indices[900] = 300;
            let mut expected = vec![0.0; 1001 * dim];
            let cpu = steptime_ops::Cpu::new(1).unwrap();
            let order = ops::Order::Rows;
            ops::gather(&cpu, &host, &indices, Bounds::Ignore, order, &mut expected, dim).unwrap();
            let copy = Buffer::from_host(stream, &indices).unwrap();
            let mut pairs: Vec<u64> = indices
                .iter()
                .enumerate()
                .map(|(place, &row)| {
                    u64::try_from(row).ok().filter(|&row| row < 300).unwrap_or(300) << 32 | place as u64
                })
                .collect();
            pairs.sort_unstable();
            let pairs = Buffer::from_host(stream, &pairs).unwrap();
            for order in [GatherOrder::Rows, GatherOrder::Columns { slice: 512 }, GatherOrder::Grouped] {
                let mut gather =
                    Gather::new(stream.device(), &on_gpu, order, 4, dim, Bounds::Ignore).unwrap();
                let mut out = Buffer::from_host(stream, &vec![9.0_f32; 1001 * dim]).unwrap();
                let report = if order == GatherOrder::Grouped {
                    gather.run(stream, &on_gpu, pairs.as_ref(), &mut out.as_mut()).unwrap();
                    gather.check(stream, &on_gpu, pairs.as_ref())
                } else {
                    let indices = Ints::I32(copy.as_ref());
                    gather.run(stream, &on_gpu, indices, &mut out.as_mut()).unwrap();
                    gather.check(stream, &on_gpu, indices)
                };
                let report = report.unwrap();
                assert_eq!((report.out_of_range, report.first.unwrap().lookup), (2, 17), "{element} {dim}");
                assert_eq!(bits(&out.to_host(stream).unwrap()), bits(&expected), "{element} {dim} {order:?}");
            }
        }
    });
}

#[test]
fn what_is_wrong_is_named() {
    let Some(device) = gpu() else { return };
    let stream = device.stream().unwrap();
    let mut random = Random(5);
    let tables =
        ops::Tables::new((0..2).map(|_| table(&mut random, 10, 8, Element::F32)).collect(), Pooling::Sum);
    let on_gpu = tables.try_map(|table| Table::upload(&stream, table)).unwrap();
    let failure = |indices: &[i64], offsets: &[i64]| {
        let (indices, offsets) =
            (Buffer::from_host(&stream, indices).unwrap(), Buffer::from_host(&stream, offsets).unwrap());
        let lookups = steptime_cuda::embedding::Lookups::new(
            2,
            Ints::I64(indices.as_ref()),
            Ints::I64(offsets.as_ref()),
        )
        .unwrap();
        let mut out = Buffer::<f32>::zeros(&stream, 32).unwrap();
        let mut forward =
            Forward::new(&device, &on_gpu, Sizes::from_lookups(&lookups, 16), Bounds::Error).unwrap();
        forward.run(&stream, &on_gpu, &lookups, &mut out.as_mut()).unwrap();
        let failed = forward.check(&stream, &on_gpu, &lookups);
        // The reported errors are reset.
        assert!(forward.check(&stream, &on_gpu, &lookups).is_ok());
        failed.unwrap_err()
    };
    match failure(&[1, 2, 3, 10], &[0, 1, 2, 2, 4]) {
        Error::Embedding(EmbeddingError::Index {
            table: 1, bag: 1, lookup: 3, index: 10, rows: 10, ..
        }) => {}
        other => panic!("{other}"),
    }
    match failure(&[1, 2, 3, 4], &[0, 3, 2, 2, 4]) {
        Error::Embedding(EmbeddingError::Offset { at: 2, value: 2, before: 3, indices: 4 }) => {}
        other => panic!("{other}"),
    }
    match failure(&[1, 2, 3, 4], &[0, 1, 2, 2, 3]) {
        Error::Embedding(EmbeddingError::Offset { at: 4, value: 3, .. }) => {}
        other => panic!("{other}"),
    }
    match failure(&[1, 2, 3, 4], &[1, 1, 2, 2, 4]) {
        Error::Embedding(EmbeddingError::Offset { at: 0, value: 1, .. }) => {}
        other => panic!("{other}"),
    }
}

#[test]
fn a_captured_launch_reads_what_is_there_when_it_is_replayed() {
    let Some(device) = gpu() else { return };
    let stream = device.stream().unwrap();
    let mut random = Random(6);
    let tables = ops::Tables::new(vec![table(&mut random, 100, 32, Element::F32)], Pooling::Sum);
    let on_gpu = tables.try_map(|table| Table::upload(&stream, table)).unwrap();
    let offsets: Vec<i64> = (0..=50).map(|bag| bag * 5).collect();
    let mut indices = Buffer::<i64>::zeros(&stream, 250).unwrap();
    let on_device = Buffer::from_host(&stream, &offsets).unwrap();
    let mut out = Buffer::<f32>::zeros(&stream, 50 * 32).unwrap();
    let graph = {
        let lookups = steptime_cuda::embedding::Lookups::new(
            50,
            Ints::I64(indices.as_ref()),
            Ints::I64(on_device.as_ref()),
        )
        .unwrap();
        let forward =
            Forward::new(&device, &on_gpu, Sizes::from_lookups(&lookups, 32), Bounds::Error).unwrap();
        let graph =
            Graph::capture(&stream, |stream| forward.run(stream, &on_gpu, &lookups, &mut out.as_mut()));
        (graph.unwrap(), forward)
    };
    for _ in 0..3 {
        let batch: Vec<i64> = (0..250).map(|_| random.below(100) as i64).collect();
        indices.as_mut().write(&stream, &batch).unwrap();
        // SAFETY: all buffers and the forward pass live, and the stream is waited for.
        unsafe { graph.0.replay() }.unwrap();
        let lookups = ops::Lookups::new(50, &batch, &offsets).unwrap();
        let mut expected = vec![0.0; 50 * 32];
        ops::forward_reference(&tables, &lookups, Bounds::Error, &mut expected, 32).unwrap();
        assert_eq!(bits(&out.to_host(&stream).unwrap()), bits(&expected));
    }
}

#[test]
fn memory_streams_events_and_the_cache_work() {
    let Some(device) = gpu() else { return };
    let stream = device.stream().unwrap();
    assert!(device.multiprocessors() > 0 && device.l2_bytes() > 0 && device.memory().unwrap().0 > 0);
    let text = "extern \"C\" __global__ void add(float* to, float value, int count) \
                { int at = blockIdx.x * blockDim.x + threadIdx.x; if (at < count) to[at] += value; }";
    let source = Source::new("add.cu", text);
    device.load(&source).unwrap();
    let module = device.load(&source).unwrap();
    if steptime_cuda::CubinCache::usual().folder().is_some() {
        assert_eq!(module.origin(), Origin::Cached);
    }
    assert!(matches!(module.kernel("none"), Err(Error::NoKernel { .. })));
    let add = module.kernel("add").unwrap();
    let mut pinned = steptime_cuda::Pinned::<f32>::zeros(&device, 1000).unwrap();
    pinned.iter_mut().enumerate().for_each(|(at, value)| *value = at as f32);
    let mut buffer = Buffer::<f32>::uninit(&device, 1000).unwrap();
    let (start, end) =
        (steptime_cuda::Event::new(&device).unwrap(), steptime_cuda::Event::new(&device).unwrap());
    stream.record(&start).unwrap();
    // SAFETY: `pinned` is not touched until the stream is waited for.
    unsafe { buffer.as_mut().write_async(&stream, &pinned) }.unwrap();
    let mut to = buffer.as_mut();
    let args = steptime_cuda::Args::new().slice_mut(&mut to).value(0.5_f32).value(1000_i32);
    // SAFETY: the arguments are those of the kernel.
    unsafe { add.launch(&stream, steptime_cuda::Grid::line(8, 128), args) }.unwrap();
    stream.record(&end).unwrap();
    end.synchronize().unwrap();
    assert!(end.since(&start).unwrap().as_nanos() > 0);
    let found = buffer.to_host(&stream).unwrap();
    assert!(found.iter().enumerate().all(|(at, &value)| value == at as f32 + 0.5));
    // Another stream, and the host's memory in place.
    let other = device.stream().unwrap();
    other.wait(&end).unwrap();
    // SAFETY: it does not change until the stream was waited for.
    buffer.as_mut().copy(&other, unsafe { pinned.on_device() }).unwrap();
    assert_eq!(buffer.to_host(&other).unwrap(), &pinned[..]);
    assert!(matches!(buffer.as_mut().write(&stream, &[1.0]), Err(Error::Size { .. })));
    assert!(matches!(Buffer::<u8>::uninit(&device, 1 << 50), Err(Error::OutOfMemory { .. })));
}

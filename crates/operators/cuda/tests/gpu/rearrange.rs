//! Copies, transposes and concatenation on a GPU against the CPU. Without a GPU the tests are skipped with a message.

use crate::support;

use std::fmt::Debug;

use bytemuck::Pod;
use steptime_cuda::rearrange::{Concat, Copy, CopyBatch};
use steptime_cuda::{Buffer, Stream};
use steptime_ops::{Cpu, rearrange};
use steptime_tensor::{Layout, Tensor};

fn gpu() -> Option<Stream> {
    support::device().map(|device| device.stream().unwrap())
}

fn values(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|at| (at * 7919 + seed) as f32).collect()
}

/// Copies between these layouts, and checks every element of the output, including those between the written ones.
fn check<T: Pod + PartialEq + Debug>(
    stream: &Stream,
    from: &Layout,
    to: &Layout,
    value: impl Fn(usize) -> T,
) {
    let given: Vec<T> = (0..from.last().map_or(0, |last| last + 1)).map(&value).collect();
    let poison = vec![value(usize::MAX / 3); to.last().map_or(0, |last| last + 1) + 3];
    let mut expected = poison.clone();
    let shape = from.shape();
    for number in 0..from.len() {
        let index: Vec<usize> = (0..shape.len())
            .map(|axis| number / shape[axis + 1..].iter().product::<usize>() % shape[axis])
            .collect();
        expected[to.position(&index).unwrap()] = given[from.position(&index).unwrap()];
    }
    let copy = Copy::new(stream.device(), from, to).unwrap();
    let input = Buffer::from_host(stream, &given).unwrap();
    let mut out = Buffer::from_host(stream, &poison).unwrap();
    copy.run(stream, input.as_ref(), &mut out.as_mut()).unwrap();
    let found = out.to_host(stream).unwrap();
    let wrong = found.iter().zip(&expected).position(|(found, expected)| found != expected);
    assert_eq!(wrong, None, "{from:?} to {to:?} in {} bytes\n{:?}", size_of::<T>(), copy.geometry());
    if !given.is_empty() {
        assert!(copy.run(stream, input.as_ref().slice(1..given.len()), &mut out.as_mut()).is_err());
    }
}

#[test]
fn permuted_copies_are_those_of_the_cpu() {
    let Some(stream) = gpu() else { return };
    let cpu = Cpu::new(1).unwrap();
    for (shape, order) in [(vec![100, 70], vec![1, 0]), (vec![9, 64, 40], vec![2, 1, 0])] {
        let given = values(shape.iter().product(), 3);
        let tensor = Tensor::from_vec(given.clone(), &shape).unwrap();
        let view = tensor.view().permute(&order).unwrap();
        let expected = rearrange::contiguous(&cpu, &view).unwrap().to_vec();
        let to = Layout::contiguous(view.shape()).unwrap();
        let copy = Copy::new(stream.device(), view.layout(), &to).unwrap();
        let from = Buffer::from_host(&stream, &given).unwrap();
        let mut out = Buffer::from_host(&stream, &vec![f32::NAN; given.len()]).unwrap();
        copy.run(&stream, from.as_ref(), &mut out.as_mut()).unwrap();
        assert_eq!(out.to_host(&stream).unwrap(), expected, "{shape:?} {order:?}");
    }
}

/// Planes that tiles fill and that they do not, narrow ones, small ones, rows that stay whole, one element, none.
#[test]
fn every_element_of_every_size_goes_to_its_place() {
    let Some(stream) = gpu() else { return };
    let cases: [(&[usize], &[usize]); 18] = [
        (&[192, 128], &[1, 0]),
        (&[132, 204], &[1, 0]),
        (&[130, 66], &[1, 0]),
        (&[33, 31], &[1, 0]),
        (&[67, 257], &[1, 0]),
        (&[1000, 4], &[1, 0]),
        (&[5, 777], &[1, 0]),
        (&[3, 27, 128], &[0, 2, 1]),
        (&[3, 128, 27], &[0, 2, 1]),
        (&[9, 64, 40], &[2, 1, 0]),
        (&[9, 64, 40], &[1, 0, 2]),
        (&[50, 16, 12], &[0, 2, 1]),
        (&[2, 3, 17, 19], &[3, 1, 0, 2]),
        (&[2, 40, 3, 48], &[3, 2, 1, 0]),
        (&[5, 6, 27], &[1, 0, 2]),
        (&[5, 8], &[0, 1]),
        (&[1, 1], &[1, 0]),
        (&[0, 8], &[1, 0]),
    ];
    for (shape, order) in cases {
        let from = Layout::contiguous(shape).unwrap().permute(order).unwrap();
        let to = Layout::contiguous(from.shape()).unwrap();
        check(&stream, &from, &to, |at| (at.wrapping_mul(7919) % 251) as u8);
        check(&stream, &from, &to, |at| at.wrapping_mul(7919) as u16);
        check(&stream, &from, &to, |at| at.wrapping_mul(7919) as u32);
        check(&stream, &from, &to, |at| at.wrapping_mul(7919) as u64);
    }
}

/// Parts of larger arrays on both sides, at addresses that are and are not multiples of a vector's; a repeated row.
#[test]
fn parts_of_arrays_are_copied_and_nothing_else() {
    let Some(stream) = gpu() else { return };
    for (start, width) in [(4, 72), (8, 64), (3, 65), (2, 70)] {
        let part = |shape: &[usize]| {
            let last = shape.len() - 1;
            Layout::contiguous(shape).unwrap().slice(last, start..start + width, 1).unwrap()
        };
        let from = part(&[3, 68, 80]).transpose(1, 2).unwrap();
        let to = Layout::contiguous(&[3, 96, 72]).unwrap();
        let to = to.slice(1, 8..8 + width, 1).unwrap().slice(2, 4..72, 1).unwrap();
        check(&stream, &from, &to, |at| at as f32);
        check(&stream, &from, &to, |at| (at % 253) as u8);
        let rows = part(&[3, 68, 80]);
        check(&stream, &rows, &part(&[3, 68, 88]), |at| at as f32);
        check(&stream, &rows, &part(&[3, 68, 88]), |at| at as u16);
        let repeated = Layout::contiguous(&[width]).unwrap().broadcast(&[70, width]).unwrap();
        check(&stream, &repeated, &Layout::contiguous(&[70, width]).unwrap(), |at| at as u64);
        let column = Layout::contiguous(&[70, 1]).unwrap().broadcast(&[70, width]).unwrap();
        check(&stream, &column, &Layout::contiguous(&[70, width]).unwrap(), |at| at as u32);
    }
}

/// Lines of the output that begin and end within sectors: planes longer and shorter than a tile, whole lines, parts of arrays.
#[test]
fn no_element_is_lost_where_lines_begin_within_sectors() {
    let Some(stream) = gpu() else { return };
    for shape in [
        [1, 129, 65],
        [1, 1023, 115],
        [2, 255, 333],
        [3, 209, 50],
        [5, 97, 65],
        [1, 81, 1000],
        [2, 322, 90],
        [1, 208, 161],
        [4, 37, 19],
    ] {
        let from = Layout::contiguous(&shape).unwrap().transpose(1, 2).unwrap();
        let to = Layout::contiguous(from.shape()).unwrap();
        check(&stream, &from, &to, |at| at.wrapping_mul(7919) as u32);
        check(&stream, &from, &to, |at| at.wrapping_mul(7919) as u64);
        let [planes, rows, columns] = shape;
        for start in 1..10 {
            let whole = [planes + 1, rows + 13, columns + 11];
            let from = Layout::contiguous(&whole).unwrap().slice(0, 1..planes + 1, 1).unwrap();
            let from = from.slice(1, start..rows + start, 1).unwrap().slice(2, 2..columns + 2, 1).unwrap();
            let whole = [planes, columns + 3, rows + 14];
            let to = Layout::contiguous(&whole).unwrap().slice(1, 1..columns + 1, 1).unwrap();
            let to = to.slice(2, start..rows + start, 1).unwrap();
            let from = from.transpose(1, 2).unwrap();
            check(&stream, &from, &to, |at| at.wrapping_mul(7919) as u32);
            check(&stream, &from, &to, |at| at.wrapping_mul(7919) as u64);
        }
    }
}

#[test]
fn pieces_are_put_one_after_the_other() {
    let Some(stream) = gpu() else { return };
    let cpu = Cpu::new(1).unwrap();
    for (axis, shapes) in [(1, [[64, 13], [64, 27], [64, 1]]), (0, [[3, 40], [5, 40], [1, 40]])] {
        let inputs: Vec<Tensor<f32>> = (0..3)
            .map(|at| Tensor::from_vec(values(shapes[at].iter().product(), at), &shapes[at]).unwrap())
            .collect();
        let mut shape = shapes[0];
        shape[axis] = shapes.iter().map(|shape| shape[axis]).sum();
        let mut expected = Tensor::zeros(&shape).unwrap();
        let views: Vec<_> = inputs.iter().map(Tensor::view).collect();
        rearrange::concat(&cpu, &views, axis, expected.view_mut().unwrap()).unwrap();
        let layouts: Vec<Layout> = views.iter().map(|view| view.layout().clone()).collect();
        let to = Layout::contiguous(&shape).unwrap();
        let concat = Concat::new(stream.device(), &layouts, axis, &to).unwrap();
        let buffers: Vec<_> =
            inputs.iter().map(|input| Buffer::from_host(&stream, &input.to_vec()).unwrap()).collect();
        let slices: Vec<_> = buffers.iter().map(Buffer::as_ref).collect();
        let mut out = Buffer::from_host(&stream, &vec![f32::NAN; to.len()]).unwrap();
        concat.run(&stream, &slices, &mut out.as_mut()).unwrap();
        assert_eq!(out.to_host(&stream).unwrap(), expected.to_vec());
        assert!(concat.run(&stream, &slices[1..], &mut out.as_mut()).is_err());
    }
}

/// Columns of a wider output from matrices, parts of matrices, a repeated row, a transposed matrix and nothing, as elements of all sizes.
#[test]
fn several_copies_are_those_of_each_alone() {
    let Some(stream) = gpu() else { return };
    let rows = 301;
    let matrix = |width: usize| Layout::contiguous(&[rows, width]).unwrap();
    let part = |width: usize, columns: std::ops::Range<usize>| matrix(width).slice(1, columns, 1).unwrap();
    let repeated = Layout::contiguous(&[8]).unwrap().broadcast(&[rows, 8]).unwrap();
    let turned = Layout::contiguous(&[12, rows]).unwrap().transpose(0, 1).unwrap();
    let tables = (0..26).map(|_| matrix(16));
    let features: Vec<Layout> = [matrix(13)].into_iter().chain(tables).collect();
    let others = vec![part(20, 3..11), matrix(0), repeated, part(40, 8..24), matrix(1)];
    let alone = [features.clone(), vec![turned]].concat();
    for inputs in [features, others, alone] {
        check_batch(&stream, &inputs, |at| (at.wrapping_mul(7919) % 251) as u8);
        check_batch(&stream, &inputs, |at| at.wrapping_mul(7919) as u16);
        check_batch(&stream, &inputs, |at| at.wrapping_mul(7919) as u32);
        check_batch(&stream, &inputs, |at| at.wrapping_mul(7919) as u64);
    }
}

/// Copies layouts to columns of one output, from the second column on, in one batch and one by one.
fn check_batch<T: Pod + PartialEq + Debug>(stream: &Stream, inputs: &[Layout], value: impl Fn(usize) -> T) {
    let rows = inputs[0].shape()[0];
    let width = inputs.iter().map(|layout| layout.shape()[1]).sum::<usize>() + 5;
    let whole = Layout::contiguous(&[rows, width]).unwrap();
    let mut start = 1;
    let mut copies = Vec::new();
    for layout in inputs {
        let end = start + layout.shape()[1];
        copies.push((layout.clone(), whole.slice(1, start..end, 1).unwrap()));
        start = end;
    }
    let given = |at: usize| {
        let len = inputs[at].last().map_or(0, |last| last + 1);
        let values: Vec<T> = (0..len).map(|place| value(1000 * at + place)).collect();
        Buffer::from_host(stream, &values).unwrap()
    };
    let buffers: Vec<_> = (0..inputs.len()).map(given).collect();
    let slices: Vec<_> = buffers.iter().map(Buffer::as_ref).collect();
    let poison = vec![value(usize::MAX / 3); whole.len()];
    let [mut found, mut expected] = [(); 2].map(|()| Buffer::from_host(stream, &poison).unwrap());
    let batch = CopyBatch::new(stream.device(), &copies).unwrap();
    batch.run(stream, &slices, &mut found.as_mut()).unwrap();
    for ((from, to), input) in copies.iter().zip(&slices) {
        let copy = Copy::new(stream.device(), from, to).unwrap();
        copy.run(stream, *input, &mut expected.as_mut()).unwrap();
    }
    let [found, expected] = [found, expected].map(|buffer| buffer.to_host(stream).unwrap());
    let wrong = found.iter().zip(&expected).position(|(found, expected)| found != expected);
    assert_eq!(wrong, None, "{width} columns of {} bytes", size_of::<T>());
    let mut short = Buffer::from_host(stream, &poison[5..]).unwrap();
    assert!(batch.run(stream, &slices, &mut short.as_mut()).is_err());
    let mut whole = Buffer::from_host(stream, &poison).unwrap();
    assert!(batch.run(stream, &slices[1..], &mut whole.as_mut()).is_err());
}

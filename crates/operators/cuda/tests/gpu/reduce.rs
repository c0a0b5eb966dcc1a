//! Sums over dimensions on a GPU against plain loops. Without a GPU the tests are skipped with a message.

use crate::support;

use steptime_cuda::reduce::{Kind, Sum};
use steptime_cuda::{Buffer, Stream};
use steptime_tensor::Layout;

fn gpu() -> Option<Stream> {
    support::device().map(|device| device.stream().unwrap())
}

fn layout(shape: &[usize]) -> Layout {
    Layout::contiguous(shape).unwrap()
}

/// Compares sums and norms with loops in double precision, and two runs with each other.
fn compare(stream: &Stream, from: &Layout, dims: &[usize]) {
    let shape = from.shape();
    let is_summed = |axis: usize| dims.is_empty() || dims.contains(&axis);
    let count: usize = (0..shape.len()).filter(|&axis| !is_summed(axis)).map(|axis| shape[axis]).product();
    let mut random = support::random::Random(17);
    let given: Vec<f32> = (0..from.last().map_or(0, |last| last + 1)).map(|_| random.value() + 0.1).collect();
    // The sum, that of magnitudes, and that of squares.
    let mut sums = vec![[0.0_f64; 3]; count];
    for number in 0..from.len() {
        let (mut rest, mut position, mut result, mut step) = (number, from.offset(), 0, 1);
        for axis in (0..shape.len()).rev() {
            let at = rest % shape[axis];
            rest /= shape[axis];
            position += at * from.strides()[axis];
            if !is_summed(axis) {
                result += at * step;
                step *= shape[axis];
            }
        }
        let x = f64::from(given[position]);
        [x, x.abs(), x * x].iter().zip(&mut sums[result]).for_each(|(x, sum)| *sum += x);
    }
    let input = Buffer::from_host(stream, &given).unwrap();
    for kind in [Kind::Sum, Kind::Norm] {
        let op = Sum::new(stream.device(), from, dims, kind).unwrap();
        assert_eq!(op.results(), count);
        let run = || {
            let mut out = Buffer::from_host(stream, &vec![f32::NAN; count + 3]).unwrap();
            op.run(stream, input.as_ref(), &mut out.as_mut()).unwrap();
            out.to_host(stream).unwrap()
        };
        let found = run();
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&found), bits(&run()), "two runs differ: {from:?} {dims:?}");
        assert!(found[count..].iter().all(|value| value.is_nan()), "{from:?} {dims:?}");
        for (at, (&found, [sum, magnitude, squares])) in found.iter().zip(&sums).enumerate() {
            let (expected, scale) = match kind {
                Kind::Sum => (*sum, *magnitude),
                Kind::Norm => (squares.sqrt(), squares.sqrt()),
            };
            let error = (f64::from(found) - expected).abs();
            // One rounding to single precision, and those of the double sums.
            let allowed = expected.abs() * 6e-8 + scale * 1e-11;
            assert!(error <= allowed, "{kind:?} {from:?} {dims:?} {at}: {found} for {expected}");
        }
    }
}

#[test]
fn sums_are_those_of_loops() {
    let Some(stream) = gpu() else { return };
    for (shape, dims) in [
        (vec![20_000, 128], vec![0]),
        (vec![20_001, 13], vec![0]),
        (vec![4096, 1], vec![0]),
        (vec![300, 1000], vec![0]),
        (vec![3, 5000], vec![0]),
        (vec![4099, 128], vec![1]),
        (vec![4099, 3], vec![1]),
        (vec![77, 5000], vec![1]),
        (vec![5, 40_000], vec![1]),
        (vec![100, 27], vec![1]),
        (vec![1_000_003], vec![]),
        (vec![1000, 333], vec![]),
        (vec![1000, 333], vec![0, 1]),
        (vec![7], vec![]),
        (vec![1], vec![0]),
        (vec![], vec![]),
        (vec![9, 70, 33], vec![1]),
        (vec![9, 70, 33], vec![0, 2]),
        (vec![9, 70, 33], vec![0]),
        (vec![4, 5, 6, 7], vec![3, 1]),
        (vec![300, 1, 40], vec![1]),
        (vec![5, 0], vec![1]),
        (vec![0, 5], vec![1]),
        (vec![0, 5], vec![0]),
    ] {
        compare(&stream, &layout(&shape), &dims);
    }
}

#[test]
fn parts_and_turned_layouts_are_summed() {
    let Some(stream) = gpu() else { return };
    let turned = layout(&[640, 333]).transpose(0, 1).unwrap();
    let part = layout(&[2000, 80]).slice(1, 5..70, 1).unwrap().slice(0, 3..1999, 2).unwrap();
    let repeated = layout(&[37, 1]).broadcast(&[37, 500]).unwrap();
    for from in [turned, part, repeated] {
        for dims in [vec![0], vec![1], vec![]] {
            compare(&stream, &from, &dims);
        }
    }
    let permuted = layout(&[8, 130, 40]).permute(&[2, 0, 1]).unwrap();
    for dims in [vec![0], vec![1], vec![2], vec![0, 1], vec![1, 2], vec![0, 2]] {
        compare(&stream, &permuted, &dims);
    }
}

/// Two streams take turns with the workspace of one sum.
#[test]
fn streams_do_not_disturb_each_other() {
    let Some(stream) = gpu() else { return };
    let other = stream.device().stream().unwrap();
    let op = Sum::new(stream.device(), &layout(&[1 << 20]), &[], Kind::Sum).unwrap();
    let inputs = [1.0, 2.0].map(|value| Buffer::from_host(&stream, &vec![value; 1 << 20]).unwrap());
    let mut results: Vec<_> = (0..20).map(|_| Buffer::<f32>::zeros(&stream, 1).unwrap()).collect();
    stream.synchronize().unwrap();
    for (at, result) in results.iter_mut().enumerate() {
        let stream = [&stream, &other][at % 2];
        op.run(stream, inputs[at % 2].as_ref(), &mut result.as_mut()).unwrap();
    }
    for (at, result) in results.iter().enumerate() {
        let expected = [1_048_576.0, 2_097_152.0][at % 2];
        assert_eq!(result.to_host(&stream).unwrap(), [expected], "{at}");
    }
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let Some(stream) = gpu() else { return };
    assert!(Sum::new(stream.device(), &layout(&[3, 4]), &[2], Kind::Sum).is_err());
    let op = Sum::new(stream.device(), &layout(&[3, 4]), &[0], Kind::Sum).unwrap();
    let from = Buffer::<f32>::zeros(&stream, 12).unwrap();
    let mut to = Buffer::<f32>::zeros(&stream, 4).unwrap();
    let mut to = to.as_mut();
    assert!(op.run(&stream, from.as_ref(), &mut to).is_ok());
    let error = op.run(&stream, from.as_ref().slice(0..11), &mut to).unwrap_err();
    assert!(error.to_string().contains("12 are needed"), "{error}");
    let error = op.run(&stream, from.as_ref(), &mut to.slice(0..3)).unwrap_err();
    assert!(error.to_string().contains("4 are needed"), "{error}");
}

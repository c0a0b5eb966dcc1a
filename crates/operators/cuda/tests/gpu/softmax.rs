//! Logarithms of softmax on a GPU against the definitions in double precision. Without a GPU the tests are skipped with a
//! message.

use crate::support;
use crate::support::random::Random;

use steptime_cuda::softmax::LogSoftmax;
use steptime_cuda::{Buffer, Error, Stream};

fn gpu() -> Option<Stream> {
    support::device().map(|device| device.stream().unwrap())
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

/// The logarithm of the softmax of a row.
fn forward(row: &[f32]) -> Vec<f64> {
    let row = wide(row);
    let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let all = most + row.iter().map(|x| (x - most).exp()).sum::<f64>().ln();
    row.iter().map(|x| x - all).collect()
}

/// The gradient of a row's input.
fn backward(grad: &[f32], output: &[f32]) -> Vec<f64> {
    let (grad, output) = (wide(grad), wide(output));
    let sum: f64 = grad.iter().sum();
    grad.iter().zip(output).map(|(grad, output)| grad - output.exp() * sum).collect()
}

/// Fails where a row differs by more than 1e-6 of the largest of `scale`.
fn close(found: &[f32], expected: &[f64], scale: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len());
    let largest = scale.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    for (at, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let off = (f64::from(found) - expected).abs();
        assert!(off <= 1e-6 * largest, "{what}, {at}: {found} for {expected}");
    }
}

/// Rows of a warp and of a block, with and without full turns of their lanes.
#[test]
fn both_passes_are_right_at_any_width() {
    let Some(stream) = gpu() else { return };
    let mut random = Random(1);
    for (rows, width) in [
        (1, 1),
        (9, 2),
        (300, 10),
        (77, 32),
        (16, 129),
        (33, 1000),
        (8, 1024),
        (5, 1025),
        (3, 4096),
        (2, 50_257),
        (0, 10),
    ] {
        let op = LogSoftmax::new(stream.device(), rows, width).unwrap();
        let from: Vec<f32> = (0..rows * width).map(|_| 30.0 * random.value()).collect();
        let grad: Vec<f32> = (0..rows * width).map(|_| random.value()).collect();
        let on_gpu = [&from, &grad].map(|values| Buffer::from_host(&stream, values).unwrap());
        let [mut output, mut to] =
            [(); 2].map(|()| Buffer::from_host(&stream, &vec![f32::NAN; rows * width]).unwrap());
        let mut run = || {
            op.forward(&stream, on_gpu[0].as_ref(), &mut output.as_mut()).unwrap();
            op.backward(&stream, on_gpu[1].as_ref(), output.as_ref(), &mut to.as_mut()).unwrap();
            [output.to_host(&stream).unwrap(), to.to_host(&stream).unwrap()]
        };
        let [output, to] = run();
        for row in 0..rows {
            let of = |values: &'_ [f32]| values[row * width..][..width].to_vec();
            let what = format!("{rows} x {width}, row {row}");
            // The logarithm of one class is exactly 0.
            let expected = forward(&of(&from));
            close(&of(&output), &expected, &expected, &what);
            let expected = backward(&of(&grad), &of(&output));
            let scale: Vec<f64> = wide(&of(&grad)).into_iter().chain(expected.iter().copied()).collect();
            close(&of(&to), &expected, &scale, &format!("gradient of {what}"));
        }
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        let again = run();
        assert_eq!((bits(&again[0]), bits(&again[1])), (bits(&output), bits(&to)), "{rows} x {width}");
    }
}

#[test]
fn large_inputs_neither_overflow_nor_vanish() {
    let Some(stream) = gpu() else { return };
    let op = LogSoftmax::new(stream.device(), 2, 3).unwrap();
    let from = [1e30, 1e30, -1e30, 0.0, f32::NEG_INFINITY, -1000.0];
    let from = Buffer::from_host(&stream, &from).unwrap();
    let mut to = Buffer::zeros(&stream, 6).unwrap();
    op.forward(&stream, from.as_ref(), &mut to.as_mut()).unwrap();
    let found = to.to_host(&stream).unwrap();
    assert_eq!(found[3..], [0.0, f32::NEG_INFINITY, -1000.0], "{found:?}");
    assert!(found[2] == -2e30 && found[0] == found[1] && found[0].is_finite(), "{found:?}");
}

#[test]
fn operands_of_other_sizes_are_refused() {
    let Some(stream) = gpu() else { return };
    assert!(matches!(LogSoftmax::new(stream.device(), 3, 0), Err(Error::Unsupported { .. })));
    let op = LogSoftmax::new(stream.device(), 2, 3).unwrap();
    let five = Buffer::<f32>::zeros(&stream, 5).unwrap();
    let mut six = Buffer::zeros(&stream, 6).unwrap();
    let error = op.forward(&stream, five.as_ref(), &mut six.as_mut()).unwrap_err().to_string();
    assert_eq!(error, "the input of a softmax: 5 elements, but 6 are needed");
    let mut to = Buffer::zeros(&stream, 6).unwrap();
    let error = op.backward(&stream, six.as_ref(), five.as_ref(), &mut to.as_mut()).unwrap_err().to_string();
    assert_eq!(error, "the output of a softmax: 5 elements, but 6 are needed");
}

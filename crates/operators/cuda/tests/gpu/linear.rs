//! The slope of a layer and the sums of its bias against double precision, for operands of 32 and 16 bits. Without a GPU
//! the tests are skipped, and counted.

use crate::support;
use crate::support::number::{Number, numbers};
use crate::support::random::Random;

use half::bf16;
use steptime_cuda::linear::{Operands, Results, Rows, Slope};
use steptime_cuda::{Buffer, Stream};

/// Compares a pass over rows with padding before and between them.
fn compare<T: Number, D: Number>(
    stream: &Stream,
    [rows, columns]: [usize; 2],
    results: Results,
    aligned: bool,
) {
    let pad = if aligned { 8 } else { 3 };
    let place = Rows { start: pad, stride: columns.next_multiple_of(if aligned { 8 } else { 1 }) + pad };
    let count = place.start + rows * place.stride;
    let mut random = Random(rows as u64);
    let (dy, y) = (numbers::<T>(count, &mut random), numbers::<D>(count, &mut random));
    let before = vec![D::rounded(-7.0); count];
    let converts = size_of::<T>() != size_of::<D>();
    let mut slope = Slope::<T, D>::new(stream.device(), [rows, columns], results, aligned).unwrap();
    let (on_gpu, output) = (Buffer::from_host(stream, &dy).unwrap(), Buffer::from_host(stream, &y).unwrap());
    let mut run = || {
        let mut dz = Buffer::from_host(stream, &before).unwrap();
        let mut sums = Buffer::<f32>::zeros(stream, columns).unwrap();
        let operands = Operands {
            dy: (on_gpu.as_ref(), place),
            y: results.slope.then(|| (output.as_ref(), place)),
            dz: (results.slope || converts).then(|| (dz.as_mut(), place)),
            sums: results.sums.then(|| sums.as_mut()),
        };
        slope.run(stream, operands).unwrap();
        (dz.to_host(stream).unwrap(), sums.to_host(stream).unwrap())
    };
    let (dz, sums) = run();
    assert!((dz.clone(), sums.clone()) == run(), "two runs differ");
    let (mut expected, mut total) = (before, vec![0.0_f64; columns]);
    for row in 0..rows {
        for (column, total) in total.iter_mut().enumerate() {
            let at = place.start + row * place.stride + column;
            let passes = !results.slope || y[at].value() > 0.0;
            let gradient = if passes { dy[at].value() } else { 0.0 };
            if results.slope || converts {
                expected[at] = D::rounded(gradient);
            }
            *total += f64::from(gradient);
        }
    }
    assert!(dz == expected, "{rows} x {columns} {results:?} {aligned}");
    if results.sums {
        let mut wrong = sums.iter().zip(&total).map(|(&found, right)| (f64::from(found) - right).abs());
        assert!(wrong.all(|own| own < 1e-6 * rows as f64), "{rows} x {columns} {results:?} {aligned}");
    }
}

#[test]
fn slopes_and_sums_are_those_of_every_type() {
    let Some(device) = support::device() else { return };
    let stream = device.stream().unwrap();
    for [rows, columns] in [[1, 1], [700, 13], [65, 12], [3000, 64], [2048, 1024]] {
        for [slope, sums] in [[true, true], [true, false], [false, true]] {
            for aligned in [false, true] {
                let results = Results { slope, sums };
                compare::<f32, f32>(&stream, [rows, columns], results, aligned);
                compare::<bf16, bf16>(&stream, [rows, columns], results, aligned);
                compare::<f32, bf16>(&stream, [rows, columns], results, aligned);
            }
        }
        let conversion = Results { slope: false, sums: false };
        compare::<f32, bf16>(&stream, [rows, columns], conversion, true);
    }
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let Some(device) = support::device() else { return };
    let stream = device.stream().unwrap();
    let results = Results { slope: false, sums: true };
    let mut slope = Slope::<f32, bf16>::new(&device, [4, 8], results, true).unwrap();
    let dy = Buffer::<f32>::zeros(&stream, 40).unwrap();
    let mut dz = Buffer::<bf16>::zeros(&stream, 40).unwrap();
    let mut sums = Buffer::<f32>::zeros(&stream, 8).unwrap();
    let at = |start| Rows { start, stride: 8 };
    let mut error = |dy, place: Option<Rows>| {
        let dz = place.map(|place| (dz.as_mut(), place));
        let operands = Operands { dy, y: None, dz, sums: Some(sums.as_mut()) };
        slope.run(&stream, operands).unwrap_err().to_string()
    };
    assert!(error((dy.as_ref(), at(0)), None).contains("conversion"));
    assert!(error((dy.as_ref(), at(0)), Some(at(4))).contains("not aligned"));
    assert!(error((dy.as_ref(), at(9)), Some(at(0))).contains("41 are needed"));
}

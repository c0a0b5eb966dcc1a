//! Copies of matrices in another type, element by element. Without a GPU the tests are skipped, and counted.

use crate::support;
use crate::support::number::{Number, numbers};
use crate::support::random::Random;

use half::bf16;
use steptime_cuda::cast::{Cast, Matrix};
use steptime_cuda::{Buffer, Slice, SliceMut, Stream};

/// Compares all copies in one launch, of matrices that begin `before` elements from the starts of their buffers.
fn compare<T: Number, D: Number>(stream: &Stream, matrices: &[Matrix], before: usize) {
    let mut random = Random(7);
    let inputs: Vec<Vec<T>> =
        matrices.iter().map(|matrix| numbers(before + matrix.lengths()[0], &mut random)).collect();
    let empty: Vec<Vec<D>> =
        matrices.iter().map(|matrix| vec![D::rounded(-9.0); before + matrix.lengths()[1] + 5]).collect();
    let on_gpu: Vec<_> = inputs.iter().map(|input| Buffer::from_host(stream, input).unwrap()).collect();
    let mut results: Vec<_> = empty.iter().map(|result| Buffer::from_host(stream, result).unwrap()).collect();
    let operands: Vec<(Slice<'_, T>, SliceMut<'_, D>)> = on_gpu
        .iter()
        .zip(&mut results)
        .map(|(from, to)| (from.as_ref().slice(before..from.len()), to.as_mut().split_at(before).1))
        .collect();
    Cast::new(stream.device(), matrices).unwrap().run(stream, operands).unwrap();
    for (((matrix, input), mut expected), result) in matrices.iter().zip(&inputs).zip(empty).zip(&results) {
        let [rows, columns] = matrix.shape;
        for row in 0..rows {
            for column in 0..columns {
                let [to_row, to_column] = if matrix.transposed { [column, row] } else { [row, column] };
                let value = input[before + row * matrix.strides[0] + column].value();
                expected[before + to_row * matrix.strides[1] + to_column] = D::rounded(value);
            }
        }
        assert!(result.to_host(stream).unwrap() == expected, "{matrix:?} {before}");
    }
}

#[test]
fn matrices_are_rounded_and_widened_at_any_address() {
    let Some(device) = support::device() else { return };
    let stream = device.stream().unwrap();
    let mut matrices = Vec::new();
    for shape in [[1, 1], [1, 1024], [512, 13], [64, 64], [65, 129], [479, 1024], [0, 3], [3, 0], [256, 512]]
    {
        for transposed in [false, true] {
            matrices.push(Matrix::new(shape, transposed, 8));
            let padded = Matrix::new(shape, transposed, 1);
            matrices.push(Matrix { strides: padded.strides.map(|stride| stride + 3), ..padded });
        }
    }
    for before in [0, 1, 4, 8] {
        compare::<f32, bf16>(&stream, &matrices, before);
        compare::<bf16, f32>(&stream, &matrices, before);
    }
    compare::<f32, bf16>(&stream, &[], 0);
    compare::<f32, bf16>(&stream, &[Matrix::new([0, 7], true, 8)], 0);
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let Some(device) = support::device() else { return };
    let stream = device.stream().unwrap();
    let cast = Cast::<f32, bf16>::new(&device, &[Matrix::new([4, 6], false, 8)]).unwrap();
    let from = Buffer::<f32>::zeros(&stream, 24).unwrap();
    let mut to = Buffer::<bf16>::zeros(&stream, 30).unwrap();
    let error = |operands: Vec<(Slice<'_, f32>, SliceMut<'_, bf16>)>| {
        cast.run(&stream, operands).map_err(|error| error.to_string())
    };
    assert!(error(vec![]).unwrap_err().contains("matrices of a cast"));
    assert!(error(vec![(from.as_ref().slice(1..24), to.as_mut())]).unwrap_err().contains("24 are needed"));
    assert!(error(vec![(from.as_ref(), to.as_mut().slice(0..29))]).unwrap_err().contains("30 are needed"));
    assert!(error(vec![(from.as_ref(), to.as_mut())]).is_ok());
    let many = vec![Matrix::new([4, 6], false, 8); 501];
    assert!(Cast::<f32, bf16>::new(&device, &many).unwrap_err().to_string().contains("at most 500"));
}

//! Elements at rows and columns on a GPU against plain loops. Without a GPU the tests are skipped with a message.

use crate::support;

use steptime_cuda::index::Pairs;
use steptime_cuda::{Buffer, Stream};

use support::random::Random;

fn gpu() -> Option<Stream> {
    support::device().map(|device| device.stream().unwrap())
}

/// Matrices in memory.
#[derive(Debug, Clone, Copy)]
struct Case {
    batch: usize,
    sizes: [usize; 2],
    strides: [usize; 3],
    offset: usize,
}

impl Case {
    fn length(&self) -> usize {
        let Case { batch, sizes: [rows, columns], strides, offset } = *self;
        let reach = |size: usize, stride: usize| (size - 1) * stride;
        offset + reach(batch, strides[0]) + reach(rows, strides[1]) + reach(columns, strides[2]) + 1
    }

    /// Position of an element, unless it is outside.
    fn position(&self, sample: usize, row: i64, column: i64) -> Option<usize> {
        let inside = |at: i64, size: usize| usize::try_from(at).ok().filter(|&at| at < size);
        let (row, column) = (inside(row, self.sizes[0])?, inside(column, self.sizes[1])?);
        Some(self.offset + sample * self.strides[0] + row * self.strides[1] + column * self.strides[2])
    }
}

fn cases() -> [Case; 5] {
    [
        Case { batch: 50, sizes: [27, 27], strides: [729, 27, 1], offset: 0 },
        Case { batch: 33, sizes: [5, 8], strides: [64, 1, 6], offset: 7 },
        // Rows of all samples between each other.
        Case { batch: 20, sizes: [4, 9], strides: [9, 180, 1], offset: 2 },
        Case { batch: 3000, sizes: [3, 3], strides: [9, 3, 1], offset: 0 },
        Case { batch: 1, sizes: [1, 1], strides: [1, 1, 1], offset: 0 },
    ]
}

/// Pairs below the diagonal, or any ones with repetitions, some of them outside.
fn pairs(case: &Case, any: Option<usize>) -> [Vec<i64>; 2] {
    let [rows, columns] = case.sizes;
    if let Some(count) = any {
        let mut random = Random(5);
        let mut next = |size: usize| (0..count).map(|_| random.below(size + 2) as i64 - 1).collect();
        return [next(rows), next(columns)];
    }
    (0..rows)
        .flat_map(|row| (0..row.min(columns)).map(move |column| (row as i64, column as i64)))
        .unzip()
        .into()
}

#[test]
fn gathered_elements_and_additions_are_those_of_a_loop() {
    let Some(stream) = gpu() else { return };
    for case in cases() {
        for any in [None, Some(1), Some(40), Some(700)] {
            let [rows, columns] = pairs(&case, any);
            let (count, mut random) = (rows.len(), Random(3));
            let from: Vec<f32> = (0..case.length()).map(|_| random.value()).collect();
            let Case { batch, sizes, strides, offset } = case;
            let op = Pairs::new(stream.device(), batch, sizes, strides, offset, count).unwrap();
            let [r, c] = [&rows, &columns].map(|pairs| Buffer::from_host(&stream, pairs).unwrap());
            let [r, c] = [r.as_ref(), c.as_ref()];

            let mut expected = vec![7.0_f32; batch * count + 3];
            for (at, to) in expected[..batch * count].iter_mut().enumerate() {
                let (sample, pair) = (at / count, at % count);
                if let Some(position) = case.position(sample, rows[pair], columns[pair]) {
                    *to = from[position];
                }
            }
            let matrices = Buffer::from_host(&stream, &from).unwrap();
            let mut out = Buffer::from_host(&stream, &vec![7.0_f32; batch * count + 3]).unwrap();
            op.gather(&stream, matrices.as_ref(), r, c, &mut out.as_mut()).unwrap();
            assert_eq!(out.to_host(&stream).unwrap(), expected, "{case:?} {any:?}");

            for [down, right] in [[count, 1], [count + 5, 1], [1, batch], [0, 1]] {
                let length = (batch - 1) * down + count.saturating_sub(1) * right + 1;
                let values: Vec<f32> = (0..length).map(|_| random.value()).collect();
                let mut expected = from.clone();
                for sample in 0..batch {
                    for (pair, (&row, &column)) in rows.iter().zip(&columns).enumerate() {
                        if let Some(position) = case.position(sample, row, column) {
                            expected[position] += values[sample * down + pair * right];
                        }
                    }
                }
                let values = Buffer::from_host(&stream, &values).unwrap();
                let mut out = Buffer::from_host(&stream, &from).unwrap();
                op.add(&stream, values.as_ref(), [down, right], r, c, &mut out.as_mut()).unwrap();
                assert_eq!(out.to_host(&stream).unwrap(), expected, "{case:?} {any:?} {down} {right}");
            }
        }
    }
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let Some(stream) = gpu() else { return };
    let op = Pairs::new(stream.device(), 2, [3, 3], [9, 3, 1], 0, 4).unwrap();
    let mut matrices = Buffer::<f32>::zeros(&stream, 18).unwrap();
    let indices = Buffer::<i64>::zeros(&stream, 4).unwrap();
    let mut values = Buffer::<f32>::zeros(&stream, 8).unwrap();
    let i = indices.as_ref();
    let error = |result: Result<(), steptime_cuda::Error>| result.unwrap_err().to_string();
    let m = matrices.as_ref();
    assert!(op.gather(&stream, m, i, i, &mut values.as_mut()).is_ok());
    assert!(error(op.gather(&stream, m.slice(0..17), i, i, &mut values.as_mut())).contains("18 are needed"));
    assert!(error(op.gather(&stream, m, i.slice(0..3), i, &mut values.as_mut())).contains("rows of pairs"));
    assert!(error(op.gather(&stream, m, i, i, &mut values.as_mut().slice(0..7))).contains("8 are needed"));
    let v = values.as_ref();
    assert!(op.add(&stream, v, [4, 1], i, i, &mut matrices.as_mut()).is_ok());
    assert!(error(op.add(&stream, v, [5, 1], i, i, &mut matrices.as_mut())).contains("9 are needed"));
    let overlapping = Pairs::new(stream.device(), 2, [3, 3], [0, 3, 1], 0, 4).unwrap();
    let result = overlapping.add(&stream, v, [4, 1], i, i, &mut matrices.as_mut());
    assert!(error(result).contains("place of its own"));
    assert!(overlapping.gather(&stream, matrices.as_ref(), i, i, &mut values.as_mut()).is_ok());
}

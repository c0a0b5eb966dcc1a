//! Dot interaction on a GPU against the definition in double precision. Without a GPU the tests are skipped with a
//! message.

use crate::support;
use crate::support::number::Number;

use half::bf16;
use steptime_cuda::interaction::{Features, FeaturesMut, Interaction, Strides};
use steptime_cuda::{Buffer, Event, Stream};
use steptime_ops::interaction::{Interaction as Shape, reference};

fn gpu() -> Option<Stream> {
    support::device().map(|device| device.stream().unwrap())
}

fn values<T: Number>(count: usize, seed: usize) -> Vec<T> {
    let value = |at: usize| ((at * 7919 + seed * 104_729) % 65_521) as f32 / 32_760.5 - 1.0;
    (0..count).map(|at| T::rounded(value(at))).collect()
}

/// Relative error in the Euclidean norm.
fn error<T: Number>(found: &[T], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let off = found.iter().zip(expected).map(|(found, right)| (f64::from(found.value()) - right).powi(2));
    let off: f64 = off.sum();
    let size: f64 = expected.iter().map(|right| right * right).sum();
    (off / size.max(f64::MIN_POSITIVE)).sqrt()
}

/// Both passes with stacked vectors, `pad` elements between samples and vectors.
fn compare<T: Number>(stream: &Stream, shape: Shape, samples: usize, pad: usize, aligned: bool) {
    // Sums of 32 bits; results of 16 bits are rounded, by at most 2^-9 of their size.
    let most = if size_of::<T>() == 2 { 2e-3 } else { 1e-6 };
    let (f, d) = (shape.features(), shape.dim());
    let (vector, stride) = (d + pad, shape.columns() + pad);
    let sample = f * vector;
    let stored = values::<T>(samples * sample, 1);
    let gradient = values::<T>(samples * stride, 2);
    let wide = |values: &[T], row: usize, columns: usize| -> Vec<f64> {
        values
            .chunks_exact(row)
            .flat_map(|row| row[..columns].iter().map(|&value| f64::from(value.value())))
            .collect()
    };
    let features = wide(&stored, vector, d);
    let on_gpu = Buffer::from_host(stream, &stored).unwrap();
    let strides = Strides { sample, vector };
    let op = Interaction::<T>::new(stream.device(), shape, aligned).unwrap();
    let (dense, others) = (on_gpu.as_ref(), on_gpu.as_ref().slice(vector.min(stored.len())..stored.len()));
    let split = Features::split(dense, sample, others, strides);
    let mut out = Buffer::from_host(stream, &vec![T::rounded(f32::NAN); samples * stride]).unwrap();
    op.forward(stream, samples, &split, &mut out.as_mut(), stride).unwrap();
    let found = out.to_host(stream).unwrap();
    assert!(
        found.chunks_exact(stride).flat_map(|row| &row[shape.columns()..]).all(|pad| pad.value().is_nan())
    );
    let found: Vec<T> = found.chunks_exact(stride).flat_map(|row| row[..shape.columns()].to_vec()).collect();
    let off = error(&found, &reference::forward(&shape, samples, &features));
    assert!(off < most, "forward of {shape:?}: {off}");
    let given = Buffer::from_host(stream, &gradient).unwrap();
    // The dense gradients and the others go to two buffers.
    let mut to_dense = Buffer::from_host(stream, &vec![T::rounded(f32::NAN); samples * vector]).unwrap();
    let mut to_others = Buffer::from_host(stream, &vec![T::rounded(f32::NAN); samples * sample]).unwrap();
    let mut to = FeaturesMut::split(to_dense.as_mut(), vector, to_others.as_mut(), strides);
    op.backward(stream, samples, &split, given.as_ref(), stride, &mut to).unwrap();
    let (dense, others) = (to_dense.to_host(stream).unwrap(), to_others.to_host(stream).unwrap());
    let mut found = Vec::new();
    for at in 0..samples {
        found.extend_from_slice(&dense[at * vector..][..d]);
        for i in 0..f - 1 {
            found.extend_from_slice(&others[at * sample + i * vector..][..d]);
        }
    }
    let expected = reference::backward(&shape, samples, &features, &wide(&gradient, stride, shape.columns()));
    let off = error(&found, &expected);
    assert!(off < most, "backward of {shape:?}: {off}");
}

#[test]
fn both_passes_are_right_at_any_size() {
    let Some(stream) = gpu() else { return };
    compare_sizes::<f32>(&stream);
}

#[test]
fn both_passes_of_16_bit_vectors_are_right_at_any_size() {
    let Some(stream) = gpu() else { return };
    compare_sizes::<bf16>(&stream);
}

fn compare_sizes<T: Number>(stream: &Stream) {
    for (f, d, own, samples, pad) in [
        (27, 128, false, 65, 0),
        (27, 128, true, 7, 4),
        (27, 128, true, 9, 8),
        (16, 72, false, 6, 0),
        (1, 1, true, 3, 0),
        (2, 5, false, 9, 1),
        (33, 36, true, 5, 0),
        (9, 130, false, 6, 3),
        (60, 64, false, 3, 0),
        (27, 260, false, 2, 0),
    ] {
        let shape = Shape::new(f, d, own).unwrap();
        compare::<T>(stream, shape, samples, pad, false);
        let whole = |elements: usize| (elements * size_of::<T>()).is_multiple_of(16);
        if whole(d) && whole(pad) {
            compare::<T>(stream, shape, samples, pad, true);
        }
    }
}

#[test]
fn short_operands_are_refused() {
    let Some(stream) = gpu() else { return };
    let op = Interaction::<f32>::new(stream.device(), Shape::new(3, 8, false).unwrap(), true).unwrap();
    let mut buffer = Buffer::zeros(&stream, 100).unwrap();
    let others = Buffer::zeros(&stream, 31).unwrap();
    let features = Features::split(others.as_ref(), 8, others.as_ref(), Strides { sample: 16, vector: 8 });
    let error = op.forward(&stream, 2, &features, &mut buffer.as_mut(), 11).unwrap_err().to_string();
    assert!(error.contains("32 are needed"), "{error}");
    let features = Features::split(others.as_ref(), 9, others.as_ref(), Strides { sample: 12, vector: 4 });
    let error = op.forward(&stream, 2, &features, &mut buffer.as_mut(), 11).unwrap_err().to_string();
    assert!(error.contains("not aligned"), "{error}");
}

/// Prints the times of the batch that DLRM's benchmarks use; nothing is asserted about them.
#[test]
fn times_are_printed() {
    let Some(stream) = gpu() else { return };
    for samples in [2048, 65_536] {
        print_times::<f32>(&stream, samples);
        print_times::<bf16>(&stream, samples);
    }
}

fn print_times<T: Number>(stream: &Stream, samples: usize) {
    let shape = Shape::new(27, 128, false).unwrap();
    let op = Interaction::<T>::new(stream.device(), shape, true).unwrap();
    let count = samples * 27 * 128;
    let few: Vec<Vec<T>> = (0..4).map(|seed| values(27 * 128 * 2048, seed)).collect();
    let inputs: Vec<_> = few
        .iter()
        .map(|few| {
            let mut input = Buffer::<T>::zeros(stream, count).unwrap();
            for start in (0..count).step_by(few.len()) {
                input.as_mut().slice(start..start + few.len()).write(stream, few).unwrap();
            }
            input
        })
        .collect();
    // Rows of the output begin at multiples of 16 bytes.
    let stride = shape.columns().next_multiple_of(8);
    let mut out = Buffer::<T>::zeros(stream, samples * stride).unwrap();
    let mut to = Buffer::<T>::zeros(stream, count).unwrap();
    let strides = Strides { sample: 27 * 128, vector: 128 };
    // Many launches between two events, so that the host's speed does not matter.
    const LAUNCHES: usize = 20;
    let (mut forward, mut backward) = (Vec::new(), Vec::new());
    for _ in 0..20 {
        let events: Vec<Event> = (0..3).map(|_| Event::new(stream.device()).unwrap()).collect();
        stream.record(&events[0]).unwrap();
        for turn in 0..2 * LAUNCHES {
            let input = inputs[turn % 4].as_ref();
            let features = Features::split(input, 27 * 128, input.slice(128..count), strides);
            if turn < LAUNCHES {
                op.forward(stream, samples, &features, &mut out.as_mut(), stride).unwrap();
                continue;
            }
            if turn == LAUNCHES {
                stream.record(&events[1]).unwrap();
            }
            let mut all = to.as_mut();
            let after = 128 * size_of::<T>() as u64;
            // SAFETY: the part behind the first vector, which the kernel writes to other addresses than the first.
            let rest = unsafe { steptime_cuda::SliceMut::from_raw(all.address() + after, count - 128) };
            let mut to = FeaturesMut::split(all.slice(0..count), 27 * 128, rest, strides);
            op.backward(stream, samples, &features, out.as_ref(), stride, &mut to).unwrap();
        }
        stream.record(&events[2]).unwrap();
        events[2].synchronize().unwrap();
        forward.push(events[1].since(&events[0]).unwrap() / LAUNCHES as u32);
        backward.push(events[2].since(&events[1]).unwrap() / LAUNCHES as u32);
    }
    forward.sort();
    backward.sort();
    let bits = 8 * size_of::<T>();
    println!("{samples} x 27 x 128 of {bits} bits: forward {:?}, backward {:?}", forward[10], backward[10]);
    op.geometry(samples).unwrap().iter().for_each(|geometry| println!("{geometry}"));
}

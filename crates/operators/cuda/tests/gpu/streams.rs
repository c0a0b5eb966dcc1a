//! Buffers used in two streams: the second one waits, unless both only read.

use crate::support;

use steptime_cuda::{Args, Buffer, Grid, Kernel, Source, Stream};
use support::device;

/// Number of values in a buffer.
const COUNT: usize = 1 << 16;

/// Clocks that a kernel waits before it works: some ten milliseconds, far longer than the time between launches.
const CLOCKS: i64 = 20_000_000;

/// `to[i] = from[i] + value`, late.
const TEXT: &str = "
extern \"C\" __global__ void late(const float* from, float* to, float value, int count, long long clocks) {
    long long start = clock64();
    while (clock64() - start < clocks) {}
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count) to[at] = from[at] + value;
}";

/// Kernels that add in place, or into another buffer.
struct Late {
    kernel: Kernel,
    streams: [Stream; 2],
}

impl Late {
    fn new() -> Option<Late> {
        let device = device()?;
        let kernel = device.load(&Source::new("late.cu", TEXT)).unwrap().kernel("late").unwrap();
        Some(Late { kernel, streams: [device.stream().unwrap(), device.stream().unwrap()] })
    }

    fn in_place(&self, stream: usize, values: &mut Buffer<f32>, value: f32) {
        let mut to = values.as_mut();
        let from = to.as_ref().address();
        let args = Args::new().value(from).slice_mut(&mut to).value(value).value(COUNT as i32).value(CLOCKS);
        // SAFETY: the arguments are those of the kernel; the buffer has as many values, and is named.
        unsafe { self.kernel.launch(&self.streams[stream], Grid::line(COUNT as u32 / 256, 256), args) }
            .unwrap();
    }

    fn from(&self, stream: usize, from: &Buffer<f32>, to: &mut Buffer<f32>, value: f32) {
        let mut to = to.as_mut();
        let args = Args::new()
            .slice(from.as_ref())
            .slice_mut(&mut to)
            .value(value)
            .value(COUNT as i32)
            .value(CLOCKS);
        // SAFETY: as above; both buffers are named.
        unsafe { self.kernel.launch(&self.streams[stream], Grid::line(COUNT as u32 / 256, 256), args) }
            .unwrap();
    }
}

fn all(values: &[f32], value: f32) -> bool {
    values.len() == COUNT && values.iter().all(|&found| found == value)
}

#[test]
fn a_write_in_another_stream_comes_after_the_first() {
    let Some(late) = Late::new() else { return };
    let mut values = Buffer::from_host(&late.streams[0], &vec![0.0; COUNT]).unwrap();
    for round in 0..4 {
        late.in_place(round % 2, &mut values, 1.0);
    }
    assert!(all(&values.to_host(&late.streams[1]).unwrap(), 4.0));
    late.in_place(0, &mut values, 1.0);
    assert!(all(&values.to_host(&late.streams[1]).unwrap(), 5.0), "a copy to the host waits too");
}

#[test]
fn what_a_kernel_reads_is_not_written_under_it() {
    let Some(late) = Late::new() else { return };
    let mut from = Buffer::from_host(&late.streams[0], &vec![1.0; COUNT]).unwrap();
    let mut to = Buffer::uninit(late.streams[0].device(), COUNT).unwrap();
    late.from(0, &from, &mut to, 1.0);
    from.as_mut().write(&late.streams[1], &vec![50.0; COUNT]).unwrap();
    assert!(all(&to.to_host(&late.streams[0]).unwrap(), 2.0));
    late.from(0, &from, &mut to, 1.0);
    from.as_mut().fill_bytes(&late.streams[1], 0).unwrap();
    assert!(all(&to.to_host(&late.streams[0]).unwrap(), 51.0));
    assert!(all(&from.to_host(&late.streams[0]).unwrap(), 0.0));
}

#[test]
fn two_streams_may_read_at_once() {
    let Some(late) = Late::new() else { return };
    let from = Buffer::from_host(&late.streams[0], &vec![1.0; COUNT]).unwrap();
    let mut to = [0, 1].map(|_| Buffer::uninit(late.streams[0].device(), COUNT).unwrap());
    for (stream, to) in to.iter_mut().enumerate() {
        late.from(stream, &from, to, stream as f32);
    }
    for (stream, to) in to.iter().enumerate() {
        assert!(all(&to.to_host(&late.streams[stream]).unwrap(), 1.0 + stream as f32));
    }
}

#[test]
fn memory_is_freed_after_its_last_kernel() {
    let Some(late) = Late::new() else { return };
    for _ in 0..8 {
        let mut values = Buffer::from_host(&late.streams[0], &vec![7.0; COUNT]).unwrap();
        late.in_place(0, &mut values, 1.0);
        drop(values);
        // The allocation often returns the memory of the other buffer.
        let next = Buffer::<f32>::zeros(&late.streams[1], COUNT).unwrap();
        late.streams[0].synchronize().unwrap();
        assert!(all(&next.to_host(&late.streams[1]).unwrap(), 0.0));
    }
}

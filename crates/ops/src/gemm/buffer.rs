//! Room for packed operands, kept from call to call: fresh pages would cost more than the packing.

use std::cell::Cell;

/// Floats in a cache line.
const LINE: usize = 16;

thread_local! {
    static KEPT: Cell<Vec<Buffer>> = const { Cell::new(Vec::new()) };
}

/// Floats that start at a cache line.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    data: Vec<f32>,
}

impl Buffer {
    /// The first `len` floats, whatever they are.
    pub(crate) fn floats(&mut self, len: usize) -> &mut [f32] {
        if self.data.len() < len + LINE {
            // Growing would copy what nobody needs.
            self.data = vec![0.0; len + LINE];
        }
        let skip = self.data.as_ptr().align_offset(LINE * size_of::<f32>()).min(LINE);
        &mut self.data[skip..skip + len]
    }

    /// The first `len` floats, as last written.
    pub(crate) fn written(&self, len: usize) -> &[f32] {
        let skip = self.data.as_ptr().align_offset(LINE * size_of::<f32>()).min(LINE);
        &self.data[skip..skip + len]
    }
}

/// Lends the work a buffer of this thread, of `len` floats with any content.
pub(crate) fn lend<R>(len: usize, work: impl FnOnce(&mut [f32]) -> R) -> R {
    let mut kept = KEPT.take();
    let mut buffer = kept.pop().unwrap_or_default();
    KEPT.set(kept);
    let result = work(buffer.floats(len));
    let mut kept = KEPT.take();
    kept.push(buffer);
    KEPT.set(kept);
    result
}

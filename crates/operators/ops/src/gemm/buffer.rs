//! Memory for packed operands, kept from call to call: fresh pages would cost more than the packing.

use std::cell::Cell;

use crate::huge::HugeBuffer;

/// Floats in a cache line.
pub(super) const LINE: usize = 16;

thread_local! {
    static KEPT: Cell<Vec<Buffer>> = const { Cell::new(Vec::new()) };
}

/// Bytes from which a huge page is used: tiles touch a page every few steps of k.
const LARGE: usize = 128 << 10;
const HUGE_PAGE: usize = 2 << 20;

/// Floats that start at a cache line.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    small: Vec<f32>,
    /// Memory in huge pages; if present, it is used instead of `small`.
    huge: Option<HugeBuffer>,
}

impl Buffer {
    /// Returns the first `len` floats, with arbitrary values.
    pub(crate) fn floats(&mut self, len: usize) -> &mut [f32] {
        if self.all().len() < len + LINE {
            let bytes = (len + LINE) * size_of::<f32>();
            // Growing would copy data that is not needed.
            self.huge =
                if bytes < LARGE { None } else { HugeBuffer::zeroed(bytes.next_multiple_of(HUGE_PAGE)).ok() };
            self.small = if self.huge.is_some() { Vec::new() } else { vec![0.0; len + LINE] };
        }
        let skip = self.skip();
        match &mut self.huge {
            Some(huge) => &mut huge.as_mut_slice()[skip..skip + len],
            None => &mut self.small[skip..skip + len],
        }
    }

    /// The first `len` floats, as last written.
    pub(crate) fn written(&self, len: usize) -> &[f32] {
        &self.all()[self.skip()..][..len]
    }

    fn all(&self) -> &[f32] {
        self.huge.as_ref().map_or(&self.small, HugeBuffer::as_slice)
    }

    /// Number of floats before the first that starts a cache line.
    fn skip(&self) -> usize {
        self.all().as_ptr().align_offset(LINE * size_of::<f32>()).min(LINE)
    }
}

/// Calls the work with a buffer of this thread, of `len` floats with arbitrary values.
pub(crate) fn with_buffer<R>(len: usize, work: impl FnOnce(&mut [f32]) -> R) -> R {
    let mut kept = KEPT.take();
    let mut buffer = kept.pop().unwrap_or_default();
    KEPT.set(kept);
    let result = work(buffer.floats(len));
    let mut kept = KEPT.take();
    kept.push(buffer);
    KEPT.set(kept);
    result
}

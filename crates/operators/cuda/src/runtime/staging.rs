//! Inputs that are copied to the device while kernels of the work before still run.
//!
//! The host writes into pinned memory. `send` copies the changed parts on a stream of its own into a second buffer on the device, and `place`,
//! in the order of the work, from there to their place.

use std::ops::Range;

use cudarc::driver::result;

use super::{Buffer, Device, Error, Event, Pinned, Slice, SliceMut, Stream};

/// Largest distance of two changed parts that are copied together, bytes.
const GAP: usize = 4096;

/// Bytes of the host and their copies on the way to the device.
#[derive(Debug)]
pub struct Staging {
    host: Pinned<u8>,
    next: Buffer<u8>,
    stream: Stream,
    /// The copy from the host is done, and the host may write again.
    uploaded: Event,
    /// The copy on the device is done, and the second buffer is free.
    consumed: Event,
    changed: Vec<Range<usize>>,
    /// Parts in the second buffer that are not at their place.
    sent: Vec<Range<usize>>,
    uploading: bool,
}

impl Staging {
    /// `bytes` zeros.
    ///
    /// # Errors
    ///
    /// Not enough memory.
    pub fn new(device: &Device, bytes: usize) -> Result<Staging, Error> {
        let stream = device.stream()?;
        Ok(Staging {
            host: Pinned::zeros(device, bytes)?,
            next: Buffer::uninit(device, bytes)?,
            uploaded: Event::new(device)?,
            consumed: Event::new(device)?,
            changed: Vec::new(),
            sent: Vec::new(),
            uploading: false,
            stream,
        })
    }

    /// Number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.host.len()
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.host.is_empty()
    }

    /// A range of the host's bytes, which the next upload copies. Waits for the upload before.
    ///
    /// # Errors
    ///
    /// A copy failed.
    ///
    /// # Panics
    ///
    /// The range is out of bounds.
    pub fn change(&mut self, range: Range<usize>) -> Result<&mut [u8], Error> {
        if self.uploading {
            self.uploaded.synchronize()?;
            self.uploading = false;
        }
        self.changed.push(range.clone());
        Ok(&mut self.host[range])
    }

    /// Starts to copy the changed parts to the second buffer, while the work before still runs.
    ///
    /// # Errors
    ///
    /// The driver refuses.
    pub fn send(&mut self) -> Result<(), Error> {
        let parts = joined(std::mem::take(&mut self.changed));
        if parts.is_empty() {
            return Ok(());
        }
        self.stream.device().bind()?;
        self.stream.wait(&self.consumed)?;
        let next = self.next.as_ref().address();
        for part in &parts {
            // SAFETY: `change` writes the host's bytes only after the event `uploaded`, and the second buffer is written only after the
            // event `consumed`; `drop` waits for both streams' copies.
            unsafe {
                result::memcpy_htod_async(
                    next + part.start as u64,
                    &self.host[part.clone()],
                    self.stream.raw(),
                )
            }
            .map_err(Error::driver("copying inputs"))?;
        }
        self.stream.record(&self.uploaded)?;
        self.uploading = true;
        self.sent.extend(parts);
        Ok(())
    }

    /// Copies the parts that were sent to the same positions of `to`. In `stream`, later work sees them and earlier work does not.
    ///
    /// # Errors
    ///
    /// Another number of bytes; the driver refuses.
    pub fn place(&mut self, stream: &Stream, to: &mut SliceMut<'_, u8>) -> Result<(), Error> {
        super::slice::same("a copy of inputs", to.len(), self.len())?;
        let parts = joined(std::mem::take(&mut self.sent));
        if parts.is_empty() {
            return Ok(());
        }
        to.before_writing(stream)?;
        stream.wait(&self.uploaded)?;
        let next = self.next.as_ref().address();
        for part in &parts {
            let (target, source) = (to.address() + part.start as u64, next + part.start as u64);
            // SAFETY: both buffers have the bytes of the part, which `change` checked. `stream` waits for the upload, and no other stream
            // uses `to` since `before_writing`.
            unsafe { result::memcpy_dtod_async(target, source, part.len(), stream.raw()) }
                .map_err(Error::driver("copying inputs on the GPU"))?;
        }
        stream.record(&self.consumed)
    }

    /// Starts to copy the changed parts to the same positions of `to`. In `stream`, later work sees them and earlier work does not.
    ///
    /// # Errors
    ///
    /// Another number of bytes; the driver refuses.
    pub fn upload(&mut self, stream: &Stream, to: &mut SliceMut<'_, u8>) -> Result<(), Error> {
        self.send()?;
        self.place(stream, to)
    }

    /// The second buffer: all bytes that were sent. It is valid until the next [`Staging::send`], for work after that of [`Staging::stream`].
    #[must_use]
    pub fn sent(&self) -> Slice<'_, u8> {
        self.next.as_ref()
    }

    /// The stream of the copies from the host.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        &self.stream
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // After a failed kernel there is nothing to wait for.
        let _ = self.stream.synchronize();
        let _ = self.consumed.synchronize();
    }
}

/// Ranges in order, joined where they are close.
fn joined(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    let mut all: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match all.last_mut() {
            Some(last) if range.start <= last.end + GAP => last.end = last.end.max(range.end),
            _ => all.push(range),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_parts_are_one() {
        let far = GAP + 1000;
        assert_eq!(
            joined(vec![500..600, 0..8, 10..20, 7..9, far + 600..far + 601]),
            [0..600, far + 600..far + 601]
        );
        assert!(joined(vec![3..3, 9..9]).is_empty());
    }
}

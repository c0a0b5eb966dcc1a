//! Results that the device copies to the host while the host goes on.

use bytemuck::Pod;

use super::{Device, Error, Event, Pinned, Slice, Stream};

/// Elements that are copied to the host without waiting.
#[derive(Debug)]
pub struct Readback<T> {
    host: Pinned<T>,
    copied: Event,
    pending: bool,
}

impl<T: Pod> Readback<T> {
    /// Room for `len` elements.
    ///
    /// # Errors
    ///
    /// The system cannot pin that much memory.
    pub fn new(device: &Device, len: usize) -> Result<Readback<T>, Error> {
        Ok(Readback { host: Pinned::zeros(device, len)?, copied: Event::new(device)?, pending: false })
    }

    /// Starts to copy the elements, after the preceding work of the stream. Waits for the copy before, if there is one.
    ///
    /// # Errors
    ///
    /// Another number of elements; a kernel failed.
    pub fn start(&mut self, stream: &Stream, from: Slice<'_, T>) -> Result<(), Error> {
        self.finish()?;
        // SAFETY: the memory is used again only after `finish` has waited for the event that follows the copy.
        unsafe { from.read_async(stream, &mut self.host)? };
        self.pending = true;
        stream.record(&self.copied)
    }

    /// The elements that were copied last, after waiting for the copy.
    ///
    /// # Errors
    ///
    /// A kernel failed.
    pub fn get(&mut self) -> Result<&[T], Error> {
        self.finish()?;
        Ok(&self.host)
    }

    fn finish(&mut self) -> Result<(), Error> {
        if self.pending {
            self.copied.synchronize()?;
            self.pending = false;
        }
        Ok(())
    }
}

impl<T> Drop for Readback<T> {
    fn drop(&mut self) {
        if self.pending {
            // After a failed kernel there is nothing to wait for.
            let _ = self.copied.synchronize();
        }
    }
}

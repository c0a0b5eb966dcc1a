//! Queues of work, and points in them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use cudarc::driver::result;
use cudarc::driver::sys;

use super::{Device, Error};

/// A queue of work on a device. Clones are the same queue.
#[derive(Debug, Clone)]
pub struct Stream(Arc<Queue>);

#[derive(Debug)]
struct Queue {
    device: Device,
    stream: sys::CUstream,
    own: bool,
    number: u64,
}

/// The number of all streams of others.
const OF_OTHERS: u64 = 0;

/// The number of the next stream made here.
static NEXT: AtomicU64 = AtomicU64::new(1);

// SAFETY: the driver's handles may be used from every thread.
unsafe impl Send for Queue {}
// SAFETY: as above.
unsafe impl Sync for Queue {}

impl Device {
    /// A new stream, which does not wait for the null stream.
    ///
    /// # Errors
    ///
    /// The driver refuses.
    pub fn stream(&self) -> Result<Stream, Error> {
        self.bind()?;
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking)
            .map_err(Error::driver("making a stream"))?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Ok(Stream(Arc::new(Queue { device: self.clone(), stream, own: true, number })))
    }
}

impl Stream {
    /// A stream of others, such as the current one of another library; 0 is the null stream.
    ///
    /// # Safety
    ///
    /// It is a stream of this device's primary context and outlives every clone. Where a buffer, or an operator that
    /// keeps memory from launch to launch (a grouping, an optimizer, a product), is used in several streams of others,
    /// these are ordered by whom they belong to: nothing waits between them, so that they can be captured.
    #[must_use]
    pub unsafe fn from_raw(device: &Device, stream: u64) -> Stream {
        let stream = std::ptr::with_exposed_provenance_mut(stream as usize);
        Stream(Arc::new(Queue { device: device.clone(), stream, own: false, number: OF_OTHERS }))
    }

    /// Its device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// What memory keeps of it.
    pub(super) fn user(&self) -> User {
        let number = self.0.number;
        // Streams of others may end before the memory does.
        User { number, queue: if self.0.own { Arc::downgrade(&self.0) } else { Weak::new() } }
    }

    pub(crate) fn raw(&self) -> sys::CUstream {
        self.0.stream
    }

    /// Waits until everything in it is done.
    ///
    /// # Errors
    ///
    /// A kernel failed.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.device().bind()?;
        // SAFETY: the stream lives.
        unsafe { result::stream::synchronize(self.raw()) }.map_err(Error::driver("waiting for a stream"))
    }

    /// Marks this point.
    ///
    /// # Errors
    ///
    /// The driver refuses.
    pub fn record(&self, event: &Event) -> Result<(), Error> {
        self.device().bind()?;
        // SAFETY: both live.
        unsafe { result::event::record(event.event, self.raw()) }.map_err(Error::driver("recording an event"))
    }

    /// Lets what follows wait for a point in another stream.
    ///
    /// # Errors
    ///
    /// The driver refuses.
    pub fn wait(&self, event: &Event) -> Result<(), Error> {
        self.device().bind()?;
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: both live.
        unsafe { result::stream::wait_event(self.raw(), event.event, flags) }
            .map_err(Error::driver("waiting for an event"))
    }
}

/// A stream that uses memory, which does not keep it.
#[derive(Debug)]
pub(super) struct User {
    /// Another for each stream made here, one for all those of others.
    number: u64,
    /// Nothing for those of others.
    queue: Weak<Queue>,
}

impl User {
    /// Whether both are one stream; those of others count as one.
    pub(super) fn is(&self, other: &User) -> bool {
        self.number == other.number
    }

    /// Waits for what is in the stream; for the device where that is not to be had any more.
    pub(super) fn wait(&self, device: &Device) -> Result<(), Error> {
        match self.queue.upgrade() {
            Some(queue) => Stream(queue).synchronize(),
            // What was in a stream that is gone may not be done.
            None => device.synchronize(),
        }
    }

    /// Of a stream that is gone.
    #[cfg(test)]
    pub(super) fn gone(number: u64) -> User {
        User { number, queue: Weak::new() }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if self.own && self.device.bind().is_ok() {
            // SAFETY: made once; the driver finishes what is in it.
            let _ = unsafe { result::stream::destroy(self.stream) };
        }
    }
}

/// A point in a stream, with its time.
#[derive(Debug)]
pub struct Event {
    device: Device,
    event: sys::CUevent,
}

// SAFETY: the driver's handles may be used from every thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// One that is not recorded yet.
    ///
    /// # Errors
    ///
    /// The driver refuses.
    pub fn new(device: &Device) -> Result<Event, Error> {
        device.bind()?;
        let event = result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT)
            .map_err(Error::driver("making an event"))?;
        Ok(Event { device: device.clone(), event })
    }

    /// Waits until the stream has come to it.
    ///
    /// # Errors
    ///
    /// A kernel failed.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.device.bind()?;
        // SAFETY: the event lives.
        unsafe { result::event::synchronize(self.event) }.map_err(Error::driver("waiting for an event"))
    }

    /// The time from another point, once both are reached.
    ///
    /// # Errors
    ///
    /// One of them is not recorded or not reached; a kernel failed.
    pub fn since(&self, start: &Event) -> Result<Duration, Error> {
        self.device.bind()?;
        // SAFETY: both events live.
        let ms = unsafe { result::event::elapsed(start.event, self.event) }
            .map_err(Error::driver("reading the time between events"))?;
        Ok(Duration::from_secs_f64(f64::from(ms.max(0.0)) * 1e-3))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: made once.
            let _ = unsafe { result::event::destroy(self.event) };
        }
    }
}

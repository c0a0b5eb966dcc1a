//! Queues of work, and points in them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use cudarc::driver::result;
use cudarc::driver::sys;

use super::{Device, Error};

/// A queue of work on a device. Clones refer to the same queue.
#[derive(Debug, Clone)]
pub struct Stream(Arc<Queue>);

#[derive(Debug)]
struct Queue {
    device: Device,
    stream: sys::CUstream,
    own: bool,
    number: u64,
}

/// The common number of all streams that were not made here.
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
        Ok(self.own(stream))
    }

    /// A new stream whose blocks of threads begin before those of others.
    ///
    /// # Errors
    ///
    /// The driver refuses.
    pub fn urgent_stream(&self) -> Result<Stream, Error> {
        self.bind()?;
        let (mut least, mut greatest, mut stream) = (0, 0, std::ptr::null_mut());
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the driver writes two numbers, and makes a stream of the context that is bound.
        unsafe {
            sys::cuCtxGetStreamPriorityRange(&raw mut least, &raw mut greatest)
                .result()
                .and_then(|()| sys::cuStreamCreateWithPriority(&raw mut stream, flags, greatest).result())
        }
        .map_err(Error::driver("making a stream"))?;
        Ok(self.own(stream))
    }

    /// A stream that was made here.
    fn own(&self, stream: sys::CUstream) -> Stream {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Stream(Arc::new(Queue { device: self.clone(), stream, own: true, number }))
    }
}

impl Stream {
    /// A stream of another library, for example its current one; 0 is the null stream.
    ///
    /// # Safety
    ///
    /// It is a stream of this device's primary context and outlives every clone. Where a buffer, or an operator that
    /// keeps memory from launch to launch (a grouping, an optimizer, a product), is used in several streams of others,
    /// their owner orders them: nothing waits between them, so that they can be captured.
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

    /// The reference to this stream that memory keeps.
    pub(super) fn user(&self) -> User {
        let number = self.0.number;
        // Streams of others may be destroyed before the memory is.
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
        // SAFETY: the stream is alive.
        unsafe { result::stream::synchronize(self.raw()) }.map_err(Error::driver("waiting for a stream"))
    }

    /// Records an event at this point.
    ///
    /// # Errors
    ///
    /// The driver refuses.
    pub fn record(&self, event: &Event) -> Result<(), Error> {
        self.device().bind()?;
        // SAFETY: both are alive.
        unsafe { result::event::record(event.event, self.raw()) }.map_err(Error::driver("recording an event"))
    }

    /// Makes later work wait for a point in another stream.
    ///
    /// # Errors
    ///
    /// The driver refuses.
    pub fn wait(&self, event: &Event) -> Result<(), Error> {
        self.device().bind()?;
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: both are alive.
        unsafe { result::stream::wait_event(self.raw(), event.event, flags) }
            .map_err(Error::driver("waiting for an event"))
    }
}

/// A weak reference to a stream that uses memory.
#[derive(Debug)]
pub(super) struct User {
    /// Unique for each stream made here; one number for all streams of others.
    number: u64,
    /// Empty for streams of others.
    queue: Weak<Queue>,
}

impl User {
    /// Whether both are one stream; streams of others count as one.
    pub(super) fn is(&self, other: &User) -> bool {
        self.number == other.number
    }

    /// Waits for the work in the stream, or for the device if the stream no longer exists.
    pub(super) fn wait(&self, device: &Device) -> Result<(), Error> {
        match self.queue.upgrade() {
            Some(queue) => Stream(queue).synchronize(),
            // Work of a destroyed stream may not be done.
            None => device.synchronize(),
        }
    }

    /// A reference to a stream that no longer exists.
    #[cfg(test)]
    pub(super) fn gone(number: u64) -> User {
        User { number, queue: Weak::new() }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if self.own && self.device.bind().is_ok() {
            // SAFETY: made once; the driver finishes the remaining work.
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
    /// An event that is not recorded yet.
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

    /// Waits until the stream has reached the event.
    ///
    /// # Errors
    ///
    /// A kernel failed.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.device.bind()?;
        // SAFETY: the event is alive.
        unsafe { result::event::synchronize(self.event) }.map_err(Error::driver("waiting for an event"))
    }

    /// Time since another event, once both are reached.
    ///
    /// # Errors
    ///
    /// One of them is not recorded or not reached; a kernel failed.
    pub fn since(&self, start: &Event) -> Result<Duration, Error> {
        self.device.bind()?;
        // SAFETY: both events are alive.
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

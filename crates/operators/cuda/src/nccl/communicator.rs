//! One rank of a group of GPUs.

use std::ffi::{c_int, c_void};
use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::library::{Functions, ID_BYTES, RawCommunicator, RawId, RawStream};
use crate::{Device, Error, Float, Slice, SliceMut, Stream};

/// Identity of a group: one rank makes it, and all receive it before they join.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct UniqueId([u8; ID_BYTES]);

impl UniqueId {
    /// A new identity.
    ///
    /// # Errors
    ///
    /// NCCL is missing, or finds no network.
    pub fn new() -> Result<UniqueId, Error> {
        let functions = Functions::load()?;
        let mut id = RawId([0; ID_BYTES]);
        // SAFETY: the library writes one id.
        let status = unsafe { (functions.unique_id)(&raw mut id) };
        functions.check("making the identity of a group", status)?;
        Ok(UniqueId(id.0))
    }

    /// An identity that another rank sent.
    #[must_use]
    pub fn from_bytes(bytes: [u8; ID_BYTES]) -> UniqueId {
        UniqueId(bytes)
    }

    /// Its bytes, for other ranks.
    #[must_use]
    pub fn bytes(&self) -> &[u8; ID_BYTES] {
        &self.0
    }
}

impl fmt::Debug for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UniqueId")
    }
}

/// Arithmetic of an all-reduce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduction {
    /// The sum over all ranks.
    Sum,
    /// The mean over all ranks.
    Mean,
}

impl Reduction {
    fn code(self) -> c_int {
        match self {
            Reduction::Sum => 0,
            Reduction::Mean => 4,
        }
    }
}

/// A rank of a group, on its own GPU. Clones refer to the same rank.
#[derive(Debug, Clone)]
pub struct Communicator(Arc<Member>);

struct Member {
    functions: &'static Functions,
    device: Device,
    rank: usize,
    ranks: usize,
    raw: RawCommunicator,
    aborted: AtomicBool,
    /// Held while an exchange is put into a stream: the library takes them one at a time.
    launching: Mutex<()>,
}

// SAFETY: the library takes calls for a communicator from any thread, one at a time: `launching`. An abort may come at any time.
unsafe impl Send for Member {}
// SAFETY: as above.
unsafe impl Sync for Member {}

impl Communicator {
    /// Joins a group as rank `rank` of `ranks`, and waits for all others.
    ///
    /// # Errors
    ///
    /// NCCL is missing, there is no such rank, or the GPUs cannot reach each other.
    pub fn join(device: &Device, id: UniqueId, rank: usize, ranks: usize) -> Result<Communicator, Error> {
        let functions = Functions::load()?;
        let number = |value: usize| c_int::try_from(value).ok();
        let (Some(place), Some(count), true) = (number(rank), number(ranks), rank < ranks) else {
            let what = format!("rank {rank} of {ranks}");
            return Err(Error::Unsupported { what, remedy: "ranks are numbered from 0" });
        };
        device.bind()?;
        let mut raw = ptr::null_mut();
        // SAFETY: the library writes one communicator, for the GPU whose context is bound.
        let status = unsafe { (functions.init_rank)(&raw mut raw, count, RawId(id.0), place) };
        functions.check("joining a group of GPUs", status)?;
        let (aborted, launching) = (AtomicBool::new(false), Mutex::new(()));
        let device = device.clone();
        Ok(Communicator(Arc::new(Member { functions, device, rank, ranks, raw, aborted, launching })))
    }

    /// Its number in the group.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.0.rank
    }

    /// Number of ranks.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.0.ranks
    }

    /// Its GPU.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// Replaces elements by their sum or mean over all ranks.
    ///
    /// # Errors
    ///
    /// The library refuses, or the group was aborted.
    pub fn all_reduce<T: Float>(
        &self,
        stream: &Stream,
        values: &mut SliceMut<'_, T>,
        reduction: Reduction,
    ) -> Result<(), Error> {
        values.before_writing(stream)?;
        let (to, count) = (address(values.address()), values.len());
        self.launch("adding over all GPUs", || {
            // SAFETY: the elements are in this GPU's memory; the stream has waited for others that use them.
            unsafe {
                (self.0.functions.all_reduce)(
                    to,
                    to,
                    count,
                    T::NCCL,
                    reduction.code(),
                    self.0.raw,
                    raw(stream),
                )
            }
        })
    }

    /// Replaces elements by those of the rank `root`.
    ///
    /// # Errors
    ///
    /// As [`Communicator::all_reduce`].
    pub fn broadcast<T: Float>(
        &self,
        stream: &Stream,
        values: &mut SliceMut<'_, T>,
        root: usize,
    ) -> Result<(), Error> {
        values.before_writing(stream)?;
        let (to, count) = (address(values.address()), values.len());
        let root = self.peer(root)?;
        self.launch("sending to all GPUs", || {
            // SAFETY: as in `all_reduce`.
            unsafe { (self.0.functions.broadcast)(to, to, count, T::NCCL, root, self.0.raw, raw(stream)) }
        })
    }

    /// Sends each rank its part of `from`, and receives the parts of all ranks in their order. `sent` and `received` have the number of elements
    /// of each rank's part; the part of the own rank is copied beside the others.
    ///
    /// # Errors
    ///
    /// As [`Communicator::all_reduce`]; parts of another number or length.
    pub fn all_to_all<T: Float>(
        &self,
        stream: &Stream,
        (from, sent): (Slice<'_, T>, &[usize]),
        (to, received): (&mut SliceMut<'_, T>, &[usize]),
    ) -> Result<(), Error> {
        let Member { functions, rank, ranks, raw: communicator, .. } = *self.0;
        for (parts, len) in [(sent, from.len()), (received, to.len())] {
            same("the parts of an exchange", parts.len(), ranks)?;
            same("an exchange between GPUs", len, parts.iter().sum())?;
        }
        same("the part of the own rank", received[rank], sent[rank])?;
        from.before_reading(stream)?;
        to.before_writing(stream)?;
        let starts = |parts: &[usize]| -> Vec<usize> {
            parts.iter().scan(0, |end, part| Some(std::mem::replace(end, *end + part))).collect()
        };
        let (first, begin) = (starts(sent), starts(received));
        let (source, target) = (from.address(), to.address());
        let at = |base: u64, start: usize| address(base + (start * size_of::<T>()) as u64);
        self.launch("exchanging between GPUs", || {
            let send = |peer: usize| {
                let part = at(source, first[peer]);
                // SAFETY: the part is within `from`, in this GPU's memory; the stream has waited for others that write it.
                unsafe {
                    (functions.send)(part, sent[peer], T::NCCL, peer as c_int, communicator, raw(stream))
                }
            };
            let receive = |peer: usize| {
                let part = at(target, begin[peer]);
                // SAFETY: the part is within `to`, in this GPU's memory; the stream has waited for others that use it.
                unsafe {
                    (functions.receive)(
                        part,
                        received[peer],
                        T::NCCL,
                        peer as c_int,
                        communicator,
                        raw(stream),
                    )
                }
            };
            // SAFETY: it is ended below, in this thread.
            let mut status = unsafe { (functions.group_start)() };
            for peer in 0..ranks {
                if sent[peer] > 0 && status == 0 {
                    status = send(peer);
                }
                if received[peer] > 0 && status == 0 {
                    status = receive(peer);
                }
            }
            // SAFETY: begun above.
            let ended = unsafe { (functions.group_end)() };
            if status == 0 { ended } else { status }
        })
    }

    /// Ends all exchanges that wait for other ranks, from any thread. Later ones fail, and so do those that were in progress: their results are
    /// arbitrary.
    pub fn abort(&self) {
        self.0.abort();
    }

    /// Whether the group was aborted.
    #[must_use]
    pub fn is_aborted(&self) -> bool {
        self.0.aborted.load(Ordering::Acquire)
    }

    /// Reports an error of an exchange that is in progress, such as a lost connection.
    ///
    /// # Errors
    ///
    /// The error.
    pub fn check(&self) -> Result<(), Error> {
        self.alive()?;
        let mut status = 0;
        // SAFETY: the communicator is alive, and the library writes one number.
        let asked = unsafe { (self.0.functions.async_error)(self.0.raw, &raw mut status) };
        self.0.functions.check("watching a group of GPUs", asked)?;
        self.0.functions.check("exchanging between GPUs", status)
    }

    fn alive(&self) -> Result<(), Error> {
        if self.is_aborted() {
            let why = "the group was aborted".to_owned();
            return Err(Error::Nccl { what: "exchanging between GPUs", why });
        }
        Ok(())
    }

    fn launch(&self, what: &'static str, call: impl FnOnce() -> c_int) -> Result<(), Error> {
        let _one = self.0.launching.lock().unwrap_or_else(PoisonError::into_inner);
        self.alive()?;
        self.0.functions.check(what, call())
    }

    fn peer(&self, rank: usize) -> Result<c_int, Error> {
        let place = c_int::try_from(rank).ok().filter(|_| rank < self.0.ranks);
        let what = || format!("rank {rank} of {}", self.0.ranks);
        place.ok_or_else(|| Error::Unsupported { what: what(), remedy: "ranks are numbered from 0" })
    }
}

impl Member {
    fn abort(&self) {
        if !self.aborted.swap(true, Ordering::AcqRel) {
            // SAFETY: the communicator is alive: only the first abort and, without one, `drop` free it.
            let _ = unsafe { (self.functions.abort)(self.raw) };
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if !*self.aborted.get_mut() && self.device.bind().is_ok() {
            // SAFETY: made once, and not aborted.
            let _ = unsafe { (self.functions.destroy)(self.raw) };
        }
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {} on {:?}", self.rank, self.ranks, self.device)
    }
}

fn raw(stream: &Stream) -> RawStream {
    stream.raw().cast()
}

fn address(at: u64) -> *mut c_void {
    ptr::with_exposed_provenance_mut(at as usize)
}

fn same(what: &'static str, found: usize, needed: usize) -> Result<(), Error> {
    if found == needed { Ok(()) } else { Err(Error::Size { what, found, needed }) }
}

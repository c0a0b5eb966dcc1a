//! The ranks of a process, with the signals between their GPUs.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cudarc::driver::sys;

use super::Rows;
use crate::{Buffer, Device, Error, Stream};

/// Largest number of exchanges of a group.
const EXCHANGES: usize = 1024;

/// A number that no wait of an exchange exceeds.
const RELEASED: u8 = 0x7f;

/// Phase of an exchange, which a rank signals to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Its operands are complete, and the places of its results are free.
    Ready,
    /// It has copied.
    Done,
}

/// Signals that a rank receives.
#[derive(Debug)]
pub struct Mailbox {
    signals: Buffer<u32>,
    stream: Stream,
    ranks: usize,
}

/// The place of a rank's mailbox, which all others need.
#[derive(Debug, Clone)]
pub struct Address {
    device: Device,
    signals: u64,
}

impl Mailbox {
    /// The mailbox of a rank on a GPU, of a number of ranks.
    ///
    /// # Errors
    ///
    /// Not enough memory.
    pub fn new(device: &Device, ranks: usize) -> Result<Mailbox, Error> {
        let stream = device.stream()?;
        let signals = Buffer::zeros(&stream, 2 * EXCHANGES * ranks.max(1))?;
        stream.synchronize()?;
        Ok(Mailbox { signals, stream, ranks })
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> Address {
        Address { device: self.signals.device().clone(), signals: self.signals.as_ref().address() }
    }
}

/// A rank among ranks on GPUs that reach the memory of one another. Clones refer to the same rank.
#[derive(Clone)]
pub struct Peers(Arc<Member>);

struct Member {
    rank: usize,
    mailbox: Mailbox,
    all: Vec<Address>,
    /// Number of exchanges so far.
    exchanges: AtomicUsize,
    aborted: AtomicBool,
}

impl Peers {
    /// Whether GPUs reach the memory of one another; a GPU reaches its own.
    ///
    /// # Errors
    ///
    /// The driver refuses.
    pub fn reach(devices: &[Device]) -> Result<bool, Error> {
        let pairs = devices.iter().flat_map(|one| devices.iter().map(move |other| (one, other)));
        for (one, other) in pairs.filter(|(one, other)| one.ordinal() != other.ordinal()) {
            let mut can = 0;
            // SAFETY: the driver writes one number.
            unsafe { sys::cuDeviceCanAccessPeer(&raw mut can, one.raw(), other.raw()) }
                .result()
                .map_err(Error::driver("looking for links between GPUs"))?;
            if can == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Joins a group as rank `rank`, with the mailboxes of all ranks in their order.
    ///
    /// # Errors
    ///
    /// The driver refuses access to another GPU; another number of mailboxes than of ranks.
    pub fn join(mailbox: Mailbox, rank: usize, all: Vec<Address>) -> Result<Peers, Error> {
        if all.len() != mailbox.ranks || rank >= all.len() {
            return Err(Error::Size {
                what: "the mailboxes of a group",
                found: all.len(),
                needed: mailbox.ranks,
            });
        }
        let own = mailbox.signals.device().clone();
        own.bind()?;
        for other in all.iter().filter(|other| other.device.ordinal() != own.ordinal()) {
            // SAFETY: the context is retained as long as the device lives, which the group keeps.
            let status = unsafe { sys::cuCtxEnablePeerAccess(other.device.context(), 0) };
            if status != sys::CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED {
                status.result().map_err(Error::driver("reaching the memory of another GPU"))?;
            }
        }
        let (exchanges, aborted) = (AtomicUsize::new(0), AtomicBool::new(false));
        Ok(Peers(Arc::new(Member { rank, mailbox, all, exchanges, aborted })))
    }

    /// Its number in the group.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.0.rank
    }

    /// Number of ranks.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.0.all.len()
    }

    /// The number of a new exchange. All ranks have the same one, as they prepare their exchanges in the same order.
    ///
    /// # Errors
    ///
    /// There are too many.
    pub fn new_exchange(&self) -> Result<usize, Error> {
        let number = self.0.exchanges.fetch_add(1, Ordering::Relaxed);
        let what = || format!("more than {EXCHANGES} exchanges");
        let remedy = "exchange larger buckets";
        if number < EXCHANGES { Ok(number) } else { Err(Error::Unsupported { what: what(), remedy }) }
    }

    /// Signals to another rank, after the preceding work of the stream, that this one has reached a phase of an exchange for the `turn`-th time.
    ///
    /// # Errors
    ///
    /// The driver refuses, or the group was aborted.
    pub fn signal(
        &self,
        stream: &Stream,
        to: usize,
        (exchange, phase): (usize, Phase),
        turn: u32,
    ) -> Result<(), Error> {
        self.alive()?;
        stream.device().bind()?;
        let place = self.0.all[to].signals + self.place(exchange, phase, self.rank());
        // SAFETY: the number is in the mailbox of a rank of the group, which lives as long as any member.
        unsafe { sys::cuStreamWriteValue32_v2(stream.raw(), place, turn, 0) }
            .result()
            .map_err(Error::driver("signalling to another GPU"))
    }

    /// Makes later work of the stream wait for the signal of another rank.
    ///
    /// # Errors
    ///
    /// The driver refuses, or the group was aborted.
    pub fn wait(
        &self,
        stream: &Stream,
        from: usize,
        (exchange, phase): (usize, Phase),
        turn: u32,
    ) -> Result<(), Error> {
        self.alive()?;
        stream.device().bind()?;
        let place = self.0.all[self.rank()].signals + self.place(exchange, phase, from);
        let at_least = sys::CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_GEQ as u32;
        // SAFETY: the number is in the own mailbox.
        unsafe { sys::cuStreamWaitValue32_v2(stream.raw(), place, turn, at_least) }
            .result()
            .map_err(Error::driver("waiting for another GPU"))
    }

    /// Copies rows to the memory of a rank.
    ///
    /// # Errors
    ///
    /// The driver refuses, or the group was aborted.
    ///
    /// # Safety
    ///
    /// `to` has as many rows, at least as long. The memory of both lives until the stream has passed the copy; other uses of it are ordered by signals,
    /// or by events of this stream.
    pub unsafe fn copy(&self, stream: &Stream, from: &Rows, to: &Rows) -> Result<(), Error> {
        self.alive()?;
        // SAFETY: by the caller.
        unsafe { from.copy(stream, to) }
    }

    /// Ends all waits for other ranks, from any thread; later exchanges fail. Results of exchanges in progress are arbitrary. A signal of another rank
    /// may make a stream wait again: call it until the stream ends.
    pub fn abort(&self) {
        self.0.aborted.store(true, Ordering::Release);
        let signals = self.0.mailbox.signals.as_ref();
        if self.0.mailbox.stream.device().bind().is_ok() {
            // SAFETY: the mailbox lives; streams and other GPUs write its numbers at any time.
            let _ = unsafe {
                sys::cuMemsetD8Async(
                    signals.address(),
                    RELEASED,
                    4 * signals.len(),
                    self.0.mailbox.stream.raw(),
                )
            };
        }
    }

    /// Whether the group was aborted.
    #[must_use]
    pub fn is_aborted(&self) -> bool {
        self.0.aborted.load(Ordering::Acquire)
    }

    fn alive(&self) -> Result<(), Error> {
        if self.is_aborted() { Err(Error::Aborted) } else { Ok(()) }
    }

    /// Distance of a signal from the begin of a mailbox, in bytes.
    fn place(&self, exchange: usize, phase: Phase, from: usize) -> u64 {
        (4 * ((2 * exchange + phase as usize) * self.ranks() + from)) as u64
    }
}

impl fmt::Debug for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = self.0.mailbox.signals.device();
        write!(f, "rank {} of {} on {device:?}", self.rank(), self.ranks())
    }
}

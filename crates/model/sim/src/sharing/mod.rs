//! Kernels of several streams that run at once share the GPU.
//!
//! Three things are shared:
//!
//! - *Room* on the multiprocessors: places for blocks, warps, registers, shared memory. Blocks that are placed stay until they are
//!   done. Of those that wait the smallest are placed first, of equal ones those of the kernel that came first: a place that
//!   becomes free is enough for a small block, not for a large one. A large grid so keeps later ones out until its last
//!   wave, the *leftover policy* of NVIDIA's block scheduler.
//! - *Issue slots* of each multiprocessor. Kernels on the same one share them by their warps. Alone a kernel uses `UNIT` of those
//!   of the multiprocessors that it covers.
//! - *Bandwidth* of device memory, shared by warps, too. A kernel that is limited by it reaches it with fewer blocks than fit:
//!   `SPARE` of them are spare.
//!
//! What one cannot use the others have. A kernel for which there is no room when it is launched is late by `LATE`.
//! A kernel alone runs as fast as alone. The three constants were fitted to nine pairs of kernels measured on an H200, and
//! scored on nine others (`benches/overlap.py`, `tests/overlap.rs`).

mod beside;
mod room;

use std::cmp::Ordering;

use steptime_cost::Demand;
use steptime_trace::Nanos;

pub use self::beside::{beside, is_one_wave};
use self::room::{Room, divided};

/// The share of a multiprocessor's issue slots that a kernel uses which has it alone.
const UNIT: f64 = 0.92;
/// The share of its blocks that a kernel limited by bandwidth can do without.
const SPARE: f64 = 0.55;
/// How much later a kernel is done for which there was no room when it was launched: blocks of a full multiprocessor end one
/// after the other, and the next ones begin only then.
const LATE: Nanos = Nanos(2_000);
/// Time that is none, ns.
const NONE: f64 = 0.5;

/// A kernel that runs.
#[derive(Debug, Clone, Copy)]
struct Kernel<Id> {
    id: Id,
    demand: Demand,
    /// How long it would still run alone, ns.
    left: f64,
    /// How long its last wave runs alone, ns; infinite where that is its only one.
    tail: f64,
    /// Blocks of a full wave, and of the last one.
    waves: [f64; 2],
    /// Whether all blocks of its last wave are placed.
    placed: bool,
}

/// Kernels that run at once, in the order in which they began.
#[derive(Debug, Clone)]
pub struct Running<Id> {
    multiprocessors: f64,
    kernels: Vec<Kernel<Id>>,
    rates: Vec<f64>,
    now: Nanos,
}

impl<Id: Copy> Running<Id> {
    /// None, before all time.
    #[must_use]
    pub fn on(multiprocessors: u32) -> Running<Id> {
        let multiprocessors = f64::from(multiprocessors.max(1));
        Running { multiprocessors, kernels: Vec::new(), rates: Vec::new(), now: Nanos(i64::MIN / 4) }
    }

    /// Up to when all is known.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Begins a kernel that would take so long alone, at a time between [`Running::now`] and the next change.
    pub fn begin(&mut self, id: Id, at: Nanos, alone: Nanos, demand: Demand) {
        self.advance(at);
        let left = alone.0 as f64;
        let full = demand.resident() * self.multiprocessors;
        let waves = (demand.blocks / full - 1e-9).ceil().max(1.0);
        let tail = if waves > 1.0 { left / waves } else { f64::INFINITY };
        let last = demand.blocks - (waves - 1.0) * full;
        let kernel = Kernel { id, demand, left, tail, waves: [full, last], placed: false };
        self.kernels.push(kernel);
        self.share();
        if let Some(kernel) = self.kernels.last_mut().filter(|kernel| !kernel.placed) {
            kernel.left += LATE.0 as f64;
        }
    }

    /// When what runs changes next: a kernel ends, or comes to its last wave.
    #[must_use]
    pub fn next_change(&self) -> Option<Nanos> {
        let each = self.kernels.iter().zip(&self.rates).filter(|(_, rate)| **rate > 0.0);
        each.map(|(kernel, rate)| self.now + Nanos((kernel.until_change() / rate).round() as i64)).min()
    }

    /// Goes on to the next change; gives the kernels that end there, the first to begin first.
    pub fn change(&mut self) -> Vec<Id> {
        let Some(at) = self.next_change() else { return Vec::new() };
        self.advance(at);
        // Past the latest time nothing goes on: what still runs ends there.
        let over = self.now == Nanos::MAX;
        let mut ended = Vec::new();
        self.kernels.retain(|kernel| {
            let ends = over || kernel.left < NONE;
            if ends {
                ended.push(kernel.id);
            }
            !ends
        });
        self.share();
        ended
    }

    fn advance(&mut self, to: Nanos) {
        let time = (to - self.now).0.max(0) as f64;
        for (kernel, rate) in self.kernels.iter_mut().zip(&self.rates) {
            kernel.left -= time * rate;
        }
        self.now = self.now.max(to);
    }

    /// Divides the GPU among the kernels: how fast each runs, 1 as alone.
    fn share(&mut self) {
        if let [alone] = &mut *self.kernels {
            alone.placed = true;
            self.rates = vec![1.0];
            return;
        }
        let mut room = Room::of(self.multiprocessors);
        let mut order: Vec<usize> = (0..self.kernels.len()).collect();
        order.sort_by(|&one, &other| self.kernels[one].before(&self.kernels[other]));
        let mut placed = vec![0.0; self.kernels.len()];
        for at in order {
            let kernel = &mut self.kernels[at];
            placed[at] = room.place(at, &kernel.demand, kernel.blocks());
            kernel.placed |= placed[at] >= kernel.blocks() - 1e-6;
        }
        let kernels = &self.kernels;
        let covered = |at: usize| (kernels[at].blocks() / self.multiprocessors).max(1.0);
        let mut rates = room.issued(kernels.len(), UNIT, covered, |at| kernels[at].demand.warps);
        for (rate, kernel) in rates.iter_mut().zip(kernels) {
            *rate = (*rate / kernel.blocks() / (1.0 - SPARE * kernel.demand.memory)).min(1.0);
        }
        let asked: Vec<f64> =
            rates.iter().zip(kernels).map(|(rate, kernel)| rate * kernel.demand.memory).collect();
        let warps: Vec<f64> =
            placed.iter().zip(kernels).map(|(blocks, kernel)| blocks * kernel.demand.warps).collect();
        let given = divided(&asked, &warps);
        for ((rate, asked), given) in rates.iter_mut().zip(asked).zip(given) {
            if asked > given {
                *rate *= given / asked;
            }
        }
        self.rates = rates;
    }
}

impl<Id> Kernel<Id> {
    /// Whether it has not come to its last wave.
    fn is_full(&self) -> bool {
        self.left > self.tail + NONE
    }

    /// The blocks that it would have on the GPU alone, now.
    fn blocks(&self) -> f64 {
        if self.is_full() { self.waves[0] } else { self.waves[1] }
    }

    /// Whose blocks are placed first: those that are there, then the smallest that wait, in the order in which kernels began.
    fn before(&self, other: &Kernel<Id>) -> Ordering {
        let waits = |kernel: &Kernel<Id>| kernel.is_full() || !kernel.placed;
        let size = |kernel: &Kernel<Id>| if waits(kernel) { kernel.demand.size() } else { 0.0 };
        waits(self).cmp(&waits(other)).then(size(self).total_cmp(&size(other)))
    }

    /// How long it would run alone until it ends or comes to its last wave, ns.
    fn until_change(&self) -> f64 {
        if self.is_full() { self.left - self.tail } else { self.left.max(0.0) }
    }
}

//! Kernels of several streams that run at once share the GPU.
//!
//! Three things are shared:
//!
//! - *Room* on the multiprocessors: places for blocks, warps, registers, shared memory. Placed blocks stay until they are
//!   done. Of the waiting ones the smallest are placed first, and of equal ones those of the earliest kernel: a place that
//!   becomes free is enough for a small block, not for a large one. A large grid so keeps later ones out until its last
//!   wave, the *leftover policy* of NVIDIA's block scheduler.
//! - *Issue slots* of each multiprocessor. Kernels on the same one share them by their warps. A kernel alone uses `UNIT` of those
//!   of the multiprocessors that it covers.
//! - *Bandwidth* of device memory, shared by warps, too. A kernel that is limited by it reaches it with fewer blocks than fit:
//!   `SPARE` of them are spare.
//!
//! Capacity that one kernel cannot use goes to the others. A kernel without room at its launch is late by `LATE`.
//! A kernel alone keeps its own duration. The three constants were fitted to nine pairs of kernels measured on an H200, and
//! scored on nine others (`benches/overlap.py`, `tests/sim/overlap.rs`).

mod block_placement;
mod collective_slowdown;

use std::cmp::Ordering;

use steptime_cost::Demand;
use steptime_trace::Nanos;

use self::block_placement::{Room, divided};
pub use self::collective_slowdown::{beside, is_one_wave};

/// Share of a multiprocessor's issue slots that a kernel uses if it has it alone.
const UNIT: f64 = 0.92;
/// Least share of `UNIT` that a kernel is simulated with.
const LEAST_BUSY: f64 = 1e-3;
/// Share of its blocks that a kernel limited by bandwidth can do without.
const SPARE: f64 = 0.55;
/// Delay of a kernel without room at its launch: blocks of a full multiprocessor end one after the other, and the next ones
/// begin only then.
const LATE: Nanos = Nanos(2_000);
/// Time that counts as zero, ns.
const NONE: f64 = 0.5;

/// A running kernel.
#[derive(Debug, Clone, Copy)]
struct Kernel<Id> {
    id: Id,
    demand: Demand,
    /// Remaining time alone, ns.
    left: f64,
    /// Time of its last wave alone, ns; infinite if that is its only one.
    tail: f64,
    /// Blocks of a full wave, and of the last one.
    waves: [f64; 2],
    /// Whether all blocks of its last wave are placed.
    placed: bool,
}

/// Kernels that run at once, in the order in which they began.
#[derive(Debug, Clone)]
pub struct RunningKernels<Id> {
    multiprocessors: f64,
    late: Nanos,
    kernels: Vec<Kernel<Id>>,
    rates: Vec<f64>,
    now: Nanos,
}

impl<Id: Copy> RunningKernels<Id> {
    /// Creates an empty set, before all times.
    #[must_use]
    pub fn on(multiprocessors: u32) -> RunningKernels<Id> {
        let multiprocessors = f64::from(multiprocessors.max(1));
        RunningKernels {
            multiprocessors,
            late: LATE,
            kernels: Vec::new(),
            rates: Vec::new(),
            now: Nanos(i64::MIN / 4),
        }
    }

    /// The same for nodes of one CUDA graph: the time from node to node has the delay of a kernel without room.
    #[must_use]
    pub fn of_nodes(self) -> RunningKernels<Id> {
        RunningKernels { late: Nanos::ZERO, ..self }
    }

    /// Returns the time up to which all changes are known.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Begins a kernel with the duration `alone`, at a time between [`RunningKernels::now`] and the next change.
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
            kernel.left += self.late.0 as f64;
        }
    }

    /// Returns the time of the next change: a kernel ends, or reaches its last wave.
    #[must_use]
    pub fn next_change(&self) -> Option<Nanos> {
        let each = self.kernels.iter().zip(&self.rates).filter(|(_, rate)| **rate > 0.0);
        each.map(|(kernel, rate)| self.now + Nanos((kernel.until_change() / rate).round() as i64)).min()
    }

    /// Advances to the next change; returns the kernels that end there, the first to begin first.
    pub fn change(&mut self) -> Vec<Id> {
        let Some(at) = self.next_change() else { return Vec::new() };
        self.advance(at);
        // At the latest representable time, all running kernels end.
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

    /// Divides the GPU among the kernels: computes the rate of each, 1 for a kernel alone.
    fn share(&mut self) {
        if let [alone] = &mut *self.kernels {
            alone.placed = true;
            self.rates = vec![1.0];
            return;
        }
        let mut room = Room::new(self.multiprocessors);
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
        let mut rates = room.issued(
            kernels.len(),
            |at| UNIT * kernels[at].demand.busy.max(LEAST_BUSY),
            covered,
            |at| kernels[at].demand.warps,
        );
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
    /// Whether it has not reached its last wave.
    fn is_full(&self) -> bool {
        self.left > self.tail + NONE
    }

    /// Returns the number of blocks that it would now have on the GPU alone.
    fn blocks(&self) -> f64 {
        if self.is_full() { self.waves[0] } else { self.waves[1] }
    }

    /// Order of placement: blocks that are there, then the smallest that wait, in the order in which kernels began.
    fn before(&self, other: &Kernel<Id>) -> Ordering {
        let waits = |kernel: &Kernel<Id>| kernel.is_full() || !kernel.placed;
        let size = |kernel: &Kernel<Id>| if waits(kernel) { kernel.demand.size() } else { 0.0 };
        waits(self).cmp(&waits(other)).then(size(self).total_cmp(&size(other)))
    }

    /// Returns the time alone until it ends or reaches its last wave, ns.
    fn until_change(&self) -> f64 {
        if self.is_full() { self.left - self.tail } else { self.left.max(0.0) }
    }
}

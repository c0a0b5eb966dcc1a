//! Slow-down of a kernel that runs next to a collective.
//!
//! A collective's kernel has a block on each of some multiprocessors from the arrival of its rank until all leave, whether it waits or
//! moves data. A kernel next to it has the rest, and its slow-down depends on its blocks:
//!
//! - A kernel of a few waves of large blocks, such as a matrix product, takes a whole wave more if its blocks no longer fit. If they
//!   fit, it is slower by the fullest multiprocessor: a block that shares it costs `ANOTHER` of one alone.
//! - With many waves, the loss is in proportion to the multiprocessors taken; with small blocks it is a part of that, because they
//!   mostly wait for memory.
//!
//! The constants were fitted to every second of 257 kernels that ran beside collectives in eleven recorded jobs on H200s, and
//! scored on the others (`benches/beside.py`, `tests/sim/beside.rs`).

use steptime_cost::Demand;

use super::block_placement::Room;

/// Time that a block adds to those that share its multiprocessor, relative to its time alone.
const ANOTHER: f64 = 0.5;
/// Blocks with a smaller share of the registers count as small.
const SMALL: f64 = 0.12;
/// Part of the loss of multiprocessors that small blocks feel.
const MISSED: f64 = 0.6;
/// Number of waves from which the last one does not matter.
const MANY: f64 = 3.0;

/// Returns the ratio of a kernel's time next to `stay` to its time alone; infinite if these leave it no room.
#[must_use]
pub fn beside<'d>(demand: &Demand, stay: impl IntoIterator<Item = &'d Demand>, multiprocessors: u32) -> f64 {
    let all = f64::from(multiprocessors.max(1));
    let mut room = Room::new(all);
    for (at, other) in stay.into_iter().enumerate() {
        room.place(at, other, other.blocks.min(all));
    }
    let (alone, left) = (Room::new(all).places(demand), room.places(demand));
    let [whole, rest] = [&alone, &left].map(|places| capacity(places));
    if rest < 1.0 {
        return f64::INFINITY;
    }
    let times = if demand.block[2] < SMALL {
        let waves = |places: f64| (demand.blocks / places).max(1.0);
        1.0 + MISSED * (waves(rest) / waves(whole) - 1.0)
    } else {
        takes(demand.blocks, &left) / takes(demand.blocks, &alone)
    };
    times.max(1.0)
}

/// Whether all blocks of a kernel alone on the GPU begin at once.
#[must_use]
pub fn is_one_wave(demand: &Demand, multiprocessors: u32) -> bool {
    demand.blocks <= demand.resident() * f64::from(multiprocessors)
}

/// Pairs of a number of multiprocessors and the blocks that fit on each.
type Places = [(f64, f64)];

fn capacity(places: &Places) -> f64 {
    places.iter().map(|(count, blocks)| count * blocks).sum()
}

/// Returns the time of blocks on these places, in units of a block that has a multiprocessor alone.
fn takes(blocks: f64, places: &Places) -> f64 {
    let most = places.iter().map(|&(_, blocks)| blocks).fold(0.0, f64::max);
    let shared = |by: f64| 1.0 + ANOTHER * (by - 1.0);
    let waves = blocks / capacity(places);
    if waves > MANY {
        return waves * shared(most);
    }
    let full = (waves + 1e-9).floor();
    let last = blocks - full * capacity(places);
    let rest = if last > 1e-6 { shared(fullest(last, places, most)) } else { 0.0 };
    full * shared(most) + rest
}

/// Returns the number of blocks on the fullest multiprocessor if they are spread evenly.
fn fullest(blocks: f64, places: &Places, most: f64) -> f64 {
    let spread = |each: f64| places.iter().map(|(count, fit)| count * fit.min(each)).sum::<f64>();
    let mut each = 1.0;
    while each < most && spread(each) < blocks - 1e-6 {
        each += 1.0;
    }
    each
}

//! Memory plan: the place of each piece of memory in one of three regions.
//!
//! Temporary tensors share one arena: two of them have the same bytes only where their lifetimes, in instructions, do not overlap. Each is placed
//! at the lowest free offset, in the best of several orders. The plan depends on the program alone.

use std::cmp::Reverse;

use crate::places::{Memory, MemoryId};
use crate::slices::Region;

/// Alignment of every piece, bytes: a line of the cache.
const ALIGN: usize = 64;

/// A piece of memory in its region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placement {
    /// The region.
    pub region: Region,
    /// First byte within the region.
    pub start: usize,
    /// Number of bytes, a multiple of 64.
    pub bytes: usize,
    /// First and last instruction that uses it; `None` for unused memory.
    pub life: Option<[usize; 2]>,
}

/// Places of all memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryPlan {
    pieces: Vec<Placement>,
    /// Bytes of each region.
    sizes: [usize; 4],
}

/// Sharing of the arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reuse {
    /// Tensors with disjoint lifetimes share bytes.
    #[default]
    ByLifetime,
    /// Every tensor has its own bytes.
    Never,
}

impl MemoryPlan {
    /// Places memory; `region` returns the region of each piece.
    pub(crate) fn new(memories: &[Memory], region: impl Fn(MemoryId) -> Region, reuse: Reuse) -> MemoryPlan {
        let mut sizes = [0; 4];
        let mut pieces: Vec<Placement> = memories
            .iter()
            .enumerate()
            .map(|(at, memory)| Placement {
                region: region(MemoryId(at)),
                start: 0,
                bytes: usize::try_from(memory.bytes).unwrap_or(usize::MAX / 2).next_multiple_of(ALIGN),
                life: memory.life,
            })
            .collect();
        let shared = |piece: &Placement| piece.region == Region::Arena && reuse == Reuse::ByLifetime;
        for piece in pieces.iter_mut().filter(|piece| !shared(piece) && piece.life.is_some()) {
            let size = &mut sizes[piece.region as usize];
            piece.start = *size;
            *size = size.saturating_add(piece.bytes);
        }
        let all: Vec<usize> =
            (0..pieces.len()).filter(|&at| shared(&pieces[at]) && pieces[at].life.is_some()).collect();
        let starts = ORDERS.iter().map(|first| {
            let mut order = all.clone();
            order.sort_by_key(|&at| {
                (Reverse(first(&pieces[at])), Reverse(pieces[at].bytes), pieces[at].life, at)
            });
            placed(&pieces, &order)
        });
        if let Some((size, starts)) = starts.min_by_key(|(size, _)| *size) {
            starts.into_iter().for_each(|(at, start)| pieces[at].start = start);
            sizes[Region::Arena as usize] += size;
        }
        MemoryPlan { pieces, sizes }
    }

    /// The place of a piece of memory.
    pub(crate) fn piece(&self, memory: MemoryId) -> &Placement {
        &self.pieces[memory.0]
    }

    /// All pieces.
    #[must_use]
    pub fn pieces(&self) -> &[Placement] {
        &self.pieces
    }

    /// Bytes of a region.
    #[must_use]
    pub fn bytes(&self, region: Region) -> usize {
        self.sizes[region as usize]
    }

    /// Bytes of all regions on the device: the peak of the step.
    #[must_use]
    pub fn peak(&self) -> usize {
        Region::ON_DEVICE.iter().map(|&region| self.bytes(region)).sum()
    }

    /// Moves kept memory to the host, and closes the gaps.
    pub(crate) fn move_to_host(&mut self, moved: &[MemoryId]) {
        moved.iter().for_each(|memory| self.pieces[memory.0].region = Region::Host);
        for region in [Region::Kept, Region::Host] {
            let mut size = 0;
            let own = |piece: &&mut Placement| piece.region == region && piece.life.is_some();
            for piece in self.pieces.iter_mut().filter(own) {
                piece.start = size;
                size += piece.bytes;
            }
            self.sizes[region as usize] = size;
        }
    }

    /// Largest number of bytes that temporary tensors need at one time: no plan of the arena is smaller.
    #[must_use]
    pub fn least_arena(&self) -> usize {
        let mut events: Vec<(usize, bool, usize)> = Vec::new();
        for piece in self.pieces.iter().filter(|piece| piece.region == Region::Arena) {
            let Some([first, last]) = piece.life else { continue };
            events.extend([(first, true, piece.bytes), (last + 1, false, piece.bytes)]);
        }
        events.sort_unstable();
        let (mut now, mut most) = (0usize, 0);
        for (_, begins, bytes) in events {
            now = if begins { now + bytes } else { now - bytes };
            most = most.max(now);
        }
        most
    }
}

/// Orders in which pieces are placed, the largest number first. The order with the smallest arena is taken.
const ORDERS: [fn(&Placement) -> usize; 4] = [
    |piece| piece.bytes,
    // Bytes times instructions.
    |piece| piece.bytes.saturating_mul(piece.life.map_or(0, |[first, last]| last - first + 1)),
    // Instructions.
    |piece| piece.life.map_or(0, |[first, last]| last - first),
    // Earlier pieces first.
    |piece| usize::MAX - piece.life.map_or(0, |[first, _]| first),
];

/// The size of the arena, and the offset of each piece, by placing each at the lowest free offset.
fn placed(pieces: &[Placement], order: &[usize]) -> (usize, Vec<(usize, usize)>) {
    let mut starts: Vec<(usize, usize)> = Vec::with_capacity(order.len());
    let mut size = 0;
    for &at in order {
        let piece = &pieces[at];
        let mut start = 0;
        for &(other, begin) in starts.iter().filter(|(other, _)| overlap(&pieces[*other], piece)) {
            if begin >= start + piece.bytes {
                break;
            }
            start = start.max(begin + pieces[other].bytes);
        }
        size = size.max(start + piece.bytes);
        let place = starts.partition_point(|&(_, begin)| begin <= start);
        starts.insert(place, (at, start));
    }
    (size, starts)
}

fn overlap(one: &Placement, other: &Placement) -> bool {
    match (one.life, other.life) {
        (Some([first, last]), Some([begin, end])) => first <= end && begin <= last,
        _ => false,
    }
}

//! Memory plan: the place of each piece of memory in one of three regions.
//!
//! Temporary tensors share one arena: two of them have the same bytes only where their lifetimes, in instructions, do not overlap. The largest
//! are placed first, each at the lowest free offset. The plan depends on the program alone.

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
    sizes: [usize; 3],
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
        let mut sizes = [0; 3];
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
        let mut order: Vec<usize> =
            (0..pieces.len()).filter(|&at| shared(&pieces[at]) && pieces[at].life.is_some()).collect();
        order.sort_by_key(|&at| (std::cmp::Reverse(pieces[at].bytes), pieces[at].life, at));
        let mut placed: Vec<usize> = Vec::with_capacity(order.len());
        for at in order {
            let start = lowest(&pieces, &placed, &pieces[at]);
            pieces[at].start = start;
            let size = &mut sizes[Region::Arena as usize];
            *size = (*size).max(start + pieces[at].bytes);
            let place = placed.partition_point(|&other| pieces[other].start <= start);
            placed.insert(place, at);
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

    /// Bytes of all regions: the peak of the step.
    #[must_use]
    pub fn peak(&self) -> usize {
        self.sizes.iter().sum()
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

/// The lowest offset at which a piece fits; `placed` is sorted by offset.
fn lowest(pieces: &[Placement], placed: &[usize], piece: &Placement) -> usize {
    let mut start = 0;
    for other in placed.iter().map(|&at| &pieces[at]).filter(|other| overlap(other, piece)) {
        if other.start >= start + piece.bytes {
            break;
        }
        start = start.max(other.start + other.bytes);
    }
    start
}

fn overlap(one: &Placement, other: &Placement) -> bool {
    match (one.life, other.life) {
        (Some([first, last]), Some([begin, end])) => first <= end && begin <= last,
        _ => false,
    }
}

//! Distribution of the bags of a forward pass over a GPU: several to a group of lanes, groups to warps, warps to blocks.

use crate::Lanes;
use crate::lanes::WARP;

/// Least number of warps per multiprocessor: below it, short bags are not put together but spread over more warps.
pub const WARPS_WANTED: usize = 16;

/// Threads of a block of bags: few, so that a block's warps work on bags near each other, and the tail is short.
pub const BAG_THREADS: usize = 64;

/// Number of lookups from which a bag is a stream of its own.
const LONG: usize = 4;

/// Short bags put together at most.
const MOST_TOGETHER: usize = 8;

/// Bytes of rows that a lane has in flight at most.
const BYTES_IN_FLIGHT: usize = 128;

/// Bags that a group of lanes walks over as one stream of lookups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Streams {
    /// Bags of a stream: 1, 2, 4 or 8.
    pub together: usize,
    /// Rows of a stream in flight at once.
    pub in_flight: usize,
}

impl Streams {
    /// Streams for `bags` bags and `lookups` lookups of all tables together, with rows in `lanes`, on this number of multiprocessors.
    #[must_use]
    pub fn new(lanes: &Lanes, bags: usize, lookups: usize, multiprocessors: u32) -> Streams {
        let length = lookups.div_ceil(bags.max(1)).max(1);
        let warps = bags.div_ceil(lanes.groups());
        let wanted = if length >= LONG { 1 } else { MOST_TOGETHER };
        let enough = (multiprocessors as usize).saturating_mul(WARPS_WANTED);
        let fits = |&many: &usize| many <= wanted && many <= lanes.lanes && warps / many >= enough;
        let together = [wanted, 4, 2].into_iter().find(fits).unwrap_or(1);
        let most = (BYTES_IN_FLIGHT / (lanes.bytes * lanes.passes)).clamp(1, 8);
        let in_flight = if together > 1 { most.min(4) } else { most.min(length) };
        Streams { together, in_flight }
    }
}

/// Bags of one table per block.
#[must_use]
pub fn bags_of_block(lanes: &Lanes, streams: Streams) -> usize {
    BAG_THREADS / WARP * lanes.groups() * streams.together
}

/// Blocks for `bags` bags of one table.
#[must_use]
pub fn bag_blocks(lanes: &Lanes, streams: Streams, bags: usize) -> usize {
    bags.div_ceil(bags_of_block(lanes, streams))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::RowLayout;

    fn floats(dim: usize) -> Lanes {
        Lanes::aligned(&RowLayout { dim, bits: 32, header: 0, payload: 4 * dim, align: 16 })
    }

    #[test]
    fn short_bags_are_put_together_where_there_are_many() {
        let of = |bags, length| {
            let streams = Streams::new(&floats(128), bags, bags * length, 132);
            (streams.together, streams.in_flight)
        };
        assert_eq!([of(100_000, 1), of(9000, 1), of(2048, 1)], [(8, 4), (4, 4), (1, 1)]);
        assert_eq!([of(2048, 20), of(100_000, 5)], [(1, 8), (1, 5)]);
    }

    proptest! {
        #[test]
        fn every_bag_has_one_block_and_more_multiprocessors_never_longer_streams(
            dim in 1_usize..2000, bags in 0_usize..1 << 20, length in 0_usize..40, multiprocessors in 1_u32..300,
        ) {
            let lanes = floats(dim);
            let streams = Streams::new(&lanes, bags, bags * length, multiprocessors);
            let (blocks, each) = (bag_blocks(&lanes, streams, bags), bags_of_block(&lanes, streams));
            prop_assert!(blocks * each >= bags && blocks.saturating_sub(1) * each < bags.max(1));
            prop_assert!(streams.in_flight >= 1 && streams.in_flight * lanes.bytes * lanes.passes <= BYTES_IN_FLIGHT);
            let more = Streams::new(&lanes, bags, bags * length, 2 * multiprocessors);
            prop_assert!(more.together <= streams.together);
            if streams.together > 1 {
                let warps = bags.div_ceil(lanes.groups() * streams.together);
                prop_assert!(warps >= multiprocessors as usize * WARPS_WANTED, "{streams:?}: {warps} warps");
            }
        }
    }
}

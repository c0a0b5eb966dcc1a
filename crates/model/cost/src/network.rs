//! Duration of a collective once all its ranks are there: a family of curves over a topology.
//!
//! ```text
//! time = alpha + root * sqrt(v) + v / rate        v: bytes over each GPU's link
//! ```
//!
//! `alpha` is the round trip, `root` the loss because chunks follow one another. Curves were fitted for the GPUs of
//! `profiles/collectives.toml`, by operation and number of ranks of one node; between these numbers they are interpolated. Over
//! several nodes the rate is that of the slower of a node's links and its network, by specification.

mod profile;

use steptime_graph::CollectiveKind;
use steptime_trace::{Bytes, Nanos};

use self::profile::Curve;
pub use self::profile::{NetworkError, Topology, systems};

/// Share of its specified rate that a network reaches: rings over 4 to 128 nodes of eight H100 (published nccl-tests).
const NETWORK_SHARE: f64 = 0.92;
/// Share that it reaches if each rank sends to each other rank.
const ALL_TO_ALL_SHARE: f64 = 0.8;
/// Addition to the round trip per doubling of the nodes, microseconds: the same tables.
const NODES_US: f64 = 9.5;
/// Addition to the round trip of all-to-all per rank beyond the fitted ranks of a curve, microseconds.
const PEER_US: f64 = 0.2;
/// Half-widths of 90 % (logarithm), which add in quadrature: of another host than that of the curve's measurement
/// (a sweep of 76 collectives on two H200s of another), of a curve of another GPU, of one extended to more ranks, of an
/// operation without a curve of its own, and of transfers across nodes.
const OTHER_HOST: f64 = 0.15;
const OTHER_GPU: f64 = 0.25;
const MORE_RANKS: f64 = 0.15;
const OTHER_OP: f64 = 0.2;
const NODES: f64 = 0.4;

/// A collective to price.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CollectiveCall {
    pub kind: CollectiveKind,
    /// Number of ranks that take part.
    pub ranks: u32,
    /// The larger buffer of the rank with the largest: for an all-reduce the buffer, for an all-gather the output, for a
    /// reduce-scatter and an all-to-all the input, else the message.
    pub bytes: Bytes,
}

/// Duration of a collective, and its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CollectiveTime {
    /// Median.
    pub time: Nanos,
    /// Half-width of 90 %, logarithm of a factor.
    pub half_width: f64,
    /// Bytes over each GPU's link.
    pub moved: Bytes,
    /// Part of the time that moves bytes at the highest rate; the rest is latency and the loss between chunks.
    pub at_rate: Nanos,
}

impl Topology {
    /// Prices a collective whose ranks fill node after node.
    #[must_use]
    pub fn price(&self, call: &CollectiveCall) -> CollectiveTime {
        let ranks = call.ranks.max(1);
        let moved = volume(call.kind, ranks, call.bytes);
        if ranks == 1 {
            return CollectiveTime {
                time: Nanos::ZERO,
                half_width: 0.0,
                moved: Bytes(0),
                at_rate: Nanos::ZERO,
            };
        }
        let near = ranks.min(self.gpus);
        let (op, own_op) = stands_for(call.kind);
        let (mut curve, extended) = self.curve(op, near);
        let nodes = ranks.div_ceil(self.gpus);
        let mut width = curve.half_width.hypot(OTHER_HOST);
        if nodes > 1 {
            curve = self.over_nodes(curve, call.kind, near, nodes);
            width = width.hypot(NODES);
        }
        for (is, half_width) in [(self.borrowed, OTHER_GPU), (extended, MORE_RANKS), (!own_op, OTHER_OP)] {
            width = if is { width.hypot(half_width) } else { width };
        }
        let bytes = moved.0 as f64;
        let at_rate = bytes / (curve.gbs * 1e3);
        let time = curve.alpha_us + curve.root_us * (bytes / 1024.0).sqrt() + at_rate;
        let us = Nanos::from_micros_f64;
        CollectiveTime { time: us(time), half_width: width, moved, at_rate: us(at_rate) }
    }

    /// Prices it in a training step, where ranks arrive one after the other and kernels run at the same time.
    #[must_use]
    pub fn in_step(&self, call: &CollectiveCall) -> CollectiveTime {
        let alone = self.price(call);
        let [times, half_width] = profile::in_step(call.kind);
        let scaled = |time: Nanos| Nanos((time.0 as f64 * times) as i64);
        CollectiveTime {
            time: scaled(alone.time),
            at_rate: scaled(alone.at_rate),
            half_width: alone.half_width.hypot(half_width),
            moved: alone.moved,
        }
    }

    /// Extends a curve of one node over several: the network limits the traffic that leaves the node.
    fn over_nodes(&self, curve: Curve, kind: CollectiveKind, near: u32, nodes: u32) -> Curve {
        let (near, nodes) = (f64::from(near), f64::from(nodes));
        let rate = match kind {
            // The traffic of each GPU to other nodes goes over its own part of the network.
            CollectiveKind::AllToAll => {
                let ranks = near * nodes;
                let leaves = (ranks - near) / (ranks - 1.0);
                self.network_gbs * ALL_TO_ALL_SHARE / leaves
            }
            CollectiveKind::SendReceive => self.network_gbs * NETWORK_SHARE,
            // Rings cross a node once for each of its GPUs.
            _ => self.network_gbs * NETWORK_SHARE * near,
        };
        let peers = if kind == CollectiveKind::AllToAll { PEER_US * near * (nodes - 1.0) } else { 0.0 };
        Curve {
            alpha_us: curve.alpha_us + NODES_US * nodes.log2() + peers,
            gbs: curve.gbs.min(rate),
            ..curve
        }
    }
}

/// Returns the operation whose curve is used, and whether that is its own.
fn stands_for(kind: CollectiveKind) -> (CollectiveKind, bool) {
    use CollectiveKind as K;
    match kind {
        K::AllReduce | K::ReduceScatter | K::AllGather | K::AllToAll => (kind, true),
        K::Broadcast | K::Reduce => (K::AllReduce, false),
        K::Gather | K::Scatter | K::SendReceive => (K::AllToAll, false),
        K::Barrier | K::Other => (K::AllReduce, false),
    }
}

/// Returns the bytes over each GPU's link.
fn volume(kind: CollectiveKind, ranks: u32, bytes: Bytes) -> Bytes {
    let others = f64::from(ranks.max(1) - 1) / f64::from(ranks.max(1));
    let share = match kind {
        CollectiveKind::AllReduce | CollectiveKind::Other => 2.0 * others,
        CollectiveKind::Broadcast | CollectiveKind::Reduce | CollectiveKind::SendReceive => 1.0,
        CollectiveKind::Barrier => 0.0,
        _ => others,
    };
    Bytes((bytes.0 as f64 * share) as u64)
}

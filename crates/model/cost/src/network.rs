//! How long a collective takes once all its ranks are there: a family of curves over a topology.
//!
//! ```text
//! time = alpha + root * sqrt(v) + v / rate        v: bytes over each GPU's link
//! ```
//!
//! `alpha` is the way there and back, `root` what is lost because chunks follow one another. Curves were fitted for the GPUs of
//! `profiles/collectives.toml`, by operation and number of ranks of one node; between these numbers they are interpolated. Over
//! several nodes the slower of a node's links and its network is the rate, by specification.

mod profile;

use steptime_graph::CollectiveKind;
use steptime_trace::{Bytes, Nanos};

use self::profile::Curve;
pub use self::profile::{NetworkError, Topology, systems};

/// What a network reaches of its specified rate: rings over 4 to 128 nodes of eight H100 (published nccl-tests).
const NETWORK_SHARE: f64 = 0.92;
/// What it reaches of it where each rank sends to each other rank.
const ALL_TO_ALL_SHARE: f64 = 0.8;
/// What a doubling of the nodes adds to the way there and back, microseconds: the same tables.
const NODES_US: f64 = 9.5;
/// What a rank adds to it where a curve is extended beyond the ranks it was fitted for, of all-to-all, microseconds.
const PEER_US: f64 = 0.2;
/// Half-widths of 90 % (logarithm), which add in quadrature: of a curve of another GPU, of one extended to more ranks, of an
/// operation that has no curve of its own, of what crosses nodes, and of a host that is not the one that a curve was measured on
/// (a sweep of 76 collectives on two H200s of another).
const OTHER_HOST: f64 = 0.15;
const OTHER_GPU: f64 = 0.25;
const MORE_RANKS: f64 = 0.15;
const OTHER_OP: f64 = 0.2;
const NODES: f64 = 0.4;

/// A collective to be priced.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CollectiveCall {
    /// What is done.
    pub kind: CollectiveKind,
    /// How many ranks take part.
    pub ranks: u32,
    /// The larger buffer of the rank with the largest: of an all-reduce the buffer, of an all-gather the output, of a
    /// reduce-scatter and an all-to-all the input, else the message.
    pub bytes: Bytes,
}

/// How long a collective takes, and how well that is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CollectiveTime {
    /// The median.
    pub time: Nanos,
    /// Half-width of 90 %, logarithm of a factor.
    pub half_width: f64,
    /// What goes over each GPU's link.
    pub moved: Bytes,
    /// What of the time moves bytes at the highest rate; the rest is latency and what chunks lose.
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

    /// The same in a training step, where ranks come one after the other and kernels run beside it.
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

    /// A curve of one node over several: the network is in the way of what leaves the node.
    fn over_nodes(&self, curve: Curve, kind: CollectiveKind, near: u32, nodes: u32) -> Curve {
        let (near, nodes) = (f64::from(near), f64::from(nodes));
        let rate = match kind {
            // What each GPU sends to other nodes goes over its own part of the network.
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

/// The operation whose curve is taken, and whether that is its own.
fn stands_for(kind: CollectiveKind) -> (CollectiveKind, bool) {
    use CollectiveKind as K;
    match kind {
        K::AllReduce | K::ReduceScatter | K::AllGather | K::AllToAll => (kind, true),
        K::Broadcast | K::Reduce => (K::AllReduce, false),
        K::Gather | K::Scatter | K::SendReceive => (K::AllToAll, false),
        K::Barrier | K::Other => (K::AllReduce, false),
    }
}

/// What goes over each GPU's link.
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

//! Times of collectives among GPUs.

use serde::Serialize;
use steptime_cost::network::{CollectiveCall, Topology};
use steptime_graph::CollectiveKind;
use steptime_predict::{INTERVAL_LEVEL, Score, uncertainty};
use steptime_trace::Bytes;

use super::shared::SCHEMA;
use super::validate::Errors;

/// Collectives priced for GPUs of one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CollectivePricesReport {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `collectives`.
    pub command: &'static str,
    /// Name of the GPU.
    pub device: String,
    /// Interconnect of a node's GPUs.
    pub link: String,
    /// Bandwidth of a GPU's link in one direction, by specification, GB/s.
    pub link_gbs: f64,
    /// Bandwidth of its network in one direction, by specification, GB/s.
    pub network_gbs: f64,
    /// GPUs per node.
    pub gpus_per_node: u32,
    /// Whether the curves are transferred from another GPU, scaled.
    pub borrowed: bool,
    /// The level of intervals.
    pub interval_level: f64,
    /// One row per collective.
    pub rows: Vec<PricedCollective>,
    /// Errors against a sweep, where one is given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<SweepScore>,
}

/// One collective.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PricedCollective {
    /// `all_reduce`, `all_to_all`, ...
    pub op: &'static str,
    /// Number of ranks.
    pub ranks: u32,
    /// Larger buffer of a rank, bytes.
    pub bytes: u64,
    /// Time once all ranks have arrived, microseconds.
    pub time_us: f64,
    /// Interval of that time, microseconds.
    pub interval_us: [f64; 2],
    /// Traffic over each GPU's link in that time, GB/s.
    pub bus_gbs: f64,
    /// Its time within a training step, microseconds.
    pub in_step_us: f64,
    /// Measured time, microseconds, where a sweep is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_us: Option<f64>,
}

/// Errors of one operation's collectives against a sweep.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SweepScore {
    /// The operation.
    pub op: &'static str,
    /// Number of rows.
    pub rows: usize,
    /// Part of the sweep's times that is not the collective: its launch, microseconds. Found from small sizes; zero for kernels.
    pub launch_us: f64,
    /// Relative errors.
    #[serde(flatten)]
    pub errors: Errors,
    /// Share of rows inside their interval.
    pub inside: f64,
}

/// A measured collective.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredCollective {
    /// The measured call.
    pub call: CollectiveCall,
    /// Measured time, microseconds.
    pub us: f64,
    /// Whether that is the time of the kernel alone; else from one event to the next.
    pub kernel: bool,
}

impl CollectivePricesReport {
    /// Prices collectives.
    #[must_use]
    pub fn price(topology: &Topology, calls: &[CollectiveCall]) -> CollectivePricesReport {
        CollectivePricesReport {
            schema: SCHEMA,
            command: "collectives",
            device: topology.name.clone(),
            link: topology.link.clone(),
            link_gbs: topology.link_gbs,
            network_gbs: topology.network_gbs,
            gpus_per_node: topology.gpus,
            borrowed: topology.borrowed,
            interval_level: INTERVAL_LEVEL,
            rows: calls.iter().map(|call| PricedCollective::price(topology, call)).collect(),
            against: Vec::new(),
        }
    }

    /// Prices the collectives of a sweep and compares them with the measured times.
    #[must_use]
    pub fn against(topology: &Topology, swept: &[MeasuredCollective]) -> CollectivePricesReport {
        let calls: Vec<CollectiveCall> = swept.iter().map(|row| row.call).collect();
        let mut answer = CollectivePricesReport::price(topology, &calls);
        let mut kinds: Vec<CollectiveKind> = calls.iter().map(|call| call.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        for kind in kinds {
            let of_kind: Vec<usize> = (0..swept.len()).filter(|&at| swept[at].call.kind == kind).collect();
            let launch_us = launch_us(&of_kind, swept, &answer.rows);
            for &at in &of_kind {
                let amiss = uncertainty().collectives.launch;
                let launch = if swept[at].kernel { 0.0 } else { launch_us };
                let row = &mut answer.rows[at];
                row.time_us += launch;
                // Part of a launch may overlap the collective.
                let [low, high] = row.interval_us;
                row.interval_us = [low + launch * (1.0 - amiss), high + launch * (1.0 + amiss)];
                row.measured_us = Some(swept[at].us);
            }
            let errors = of_kind.iter().map(|&at| answer.rows[at].time_us / swept[at].us - 1.0);
            let inside = |at: &&usize| {
                let [low, high] = answer.rows[**at].interval_us;
                (low..=high).contains(&swept[**at].us)
            };
            let inside = of_kind.iter().filter(inside).count() as f64 / of_kind.len().max(1) as f64;
            let errors = Errors::new(&Score::from_errors(errors));
            answer.against.push(SweepScore {
                op: kind.name(),
                rows: of_kind.len(),
                launch_us,
                errors,
                inside,
            });
        }
        answer
    }
}

impl PricedCollective {
    fn price(topology: &Topology, call: &CollectiveCall) -> PricedCollective {
        let price = topology.price(call);
        let time_us = price.time.as_micros();
        PricedCollective {
            op: call.kind.name(),
            ranks: call.ranks,
            bytes: call.bytes.0,
            time_us,
            interval_us: [time_us * (-price.half_width).exp(), time_us * price.half_width.exp()],
            bus_gbs: if time_us > 0.0 { price.moved.0 as f64 / time_us / 1e3 } else { 0.0 },
            in_step_us: topology.in_step(call).time.as_micros(),
            measured_us: None,
        }
    }
}

/// Launch time in sweeps timed from event to event: the median of what small collectives take beyond their curve.
fn launch_us(of_kind: &[usize], swept: &[MeasuredCollective], rows: &[PricedCollective]) -> f64 {
    let small = of_kind.iter().filter(|&&at| {
        !swept[at].kernel && swept[at].call.bytes <= Bytes(uncertainty().collectives.small_bytes)
    });
    let mut more: Vec<f64> = small.map(|&at| swept[at].us - rows[at].time_us).collect();
    more.sort_by(f64::total_cmp);
    more.get(more.len() / 2).copied().unwrap_or(0.0).max(0.0)
}

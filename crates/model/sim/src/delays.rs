//! Delays between host and device, in nanoseconds.

use steptime_cost::HostCosts;
use steptime_graph::TiVec;
use steptime_trace::Nanos;

/// Deepest launch queue that is simulated. Each stream keeps a ring buffer of this size.
const DEEPEST_QUEUE: u32 = 1 << 16;

/// Delays of a simulation, taken from the costs of a host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delays {
    pub launch: Nanos,
    pub queue: Nanos,
    pub sync_own: Nanos,
    pub sync_return: Nanos,
    pub copy_lead: Nanos,
    pub lead_excess: Nanos,
    /// Whether recorded delays of single copies and activities are used instead of these.
    pub recorded: bool,
    pub depth: usize,
}

impl Delays {
    pub fn from_host(host: &HostCosts) -> Delays {
        let coupling = &host.coupling;
        let us = Nanos::from_micros_f64;
        Delays {
            launch: us(coupling.launch_to_start_us),
            queue: us(coupling.queue_gap_us),
            sync_own: us(coupling.sync_own_us),
            sync_return: us(coupling.sync_return_us),
            copy_lead: us(coupling.copy_lead_us),
            lead_excess: host.lead_excess,
            recorded: host.recorded_delays,
            depth: coupling.queue_depth.clamp(1, DEEPEST_QUEUE) as usize,
        }
    }
}

/// Makes a dense list of values from pairs of index and value.
pub(crate) fn dense<Id: Copy + From<usize>>(sparse: &[(Id, Nanos)], len: usize) -> TiVec<Id, Option<Nanos>>
where
    usize: From<Id>,
{
    let mut all: TiVec<Id, Option<Nanos>> = vec![None; len].into();
    for &(at, value) in sparse {
        if let Some(place) = all.get_mut(at) {
            *place = Some(value);
        }
    }
    all
}

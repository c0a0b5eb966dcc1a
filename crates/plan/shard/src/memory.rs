//! Whether memory holds a plan: that of each GPU, and that of the host of each node.

use steptime_trace::Bytes;

use crate::problem::{Load, Problem};

/// Memory that is too small.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("table {table} needs {} in {cut} {}, where {} are left of {}: {}", gib(*needs), place(*on), gib(*left), gib(*of), remedy(*on))]
pub struct DoesNotFit {
    /// Its number.
    pub table: usize,
    /// How it would be cut.
    pub cut: String,
    /// Which memory is too small.
    pub on: On,
    /// What its smallest part needs; of the host of a node what all parts there need.
    pub needs: Bytes,
    /// What the emptiest GPU has left, or the emptiest host.
    pub left: Bytes,
    /// What tables may take of each.
    pub of: Bytes,
}

/// Whose memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// A GPU's.
    Gpu,
    /// A GPU's, of a table that may not lie in hosts' memory though others may.
    Uncached,
    /// A GPU's, for a cache of the table's rows: the rows would lie in the host's.
    Cache,
    /// The host's of a node.
    Host,
}

fn place(on: On) -> &'static str {
    match on {
        On::Gpu | On::Uncached => "on a GPU",
        On::Cache => "for a cache of its rows on a GPU",
        On::Host => "in the memory of a host",
    }
}

fn remedy(on: On) -> &'static str {
    match on {
        On::Gpu => "take more GPUs, or GPUs with more memory, or let tables lie in the hosts' memory",
        On::Uncached => {
            "take more GPUs, or GPUs with more memory; of its rows a cache would have to hold most, so it does not lie in the hosts' memory"
        }
        On::Cache => {
            "take more GPUs, or GPUs with more memory, or smaller batches, which want fewer rows at once"
        }
        On::Host => "allow more of the hosts' memory, or take more nodes or more GPUs",
    }
}

fn gib(bytes: Bytes) -> String {
    format!("{:.2} GiB", bytes.0 as f64 / f64::from(1 << 30))
}

impl Problem {
    /// How many GPUs share a host.
    pub(crate) fn on_a_host(&self) -> u32 {
        if self.node > 0 { self.node } else { self.gpus.max(1) }
    }

    /// What is taken of the memory of each node's host.
    #[must_use]
    pub fn hosts(&self, loads: &[Load]) -> Vec<Bytes> {
        let of_node = |loads: &[Load]| Bytes(loads.iter().map(|load| load.host_memory.0).sum());
        loads.chunks(self.on_a_host() as usize).map(of_node).collect()
    }

    /// Whether memory holds what each GPU is asked for.
    #[must_use]
    pub fn holds(&self, loads: &[Load]) -> bool {
        loads.iter().all(|load| load.memory <= self.memory)
            && self.hosts(loads).iter().all(|taken| *taken <= self.host_memory)
    }
}

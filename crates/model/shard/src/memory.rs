//! Memory limits: of each GPU, and of the host of each node.

use steptime_trace::Bytes;

use crate::problem::{Load, Problem};

/// Memory that is too small.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("table {table} needs {} in {cut} {}, where {} are left of {}: {}", gib(*needs), place(*on), gib(*left), gib(*of), remedy(*on))]
pub struct DoesNotFit {
    /// Index of the table.
    pub table: usize,
    /// Cut that was tried.
    pub cut: String,
    /// Kind of the memory that is too small.
    pub on: ScarceMemory,
    /// Memory that its smallest part needs; for the host of a node, the memory that all parts on it need.
    pub needs: Bytes,
    /// Free memory of the emptiest GPU or host.
    pub left: Bytes,
    /// Memory of each that tables may use.
    pub of: Bytes,
}

/// Memory that is too small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScarceMemory {
    /// Memory of a GPU.
    Gpu,
    /// Memory of a GPU, for a table that must not be in host memory although others may.
    Uncached,
    /// Memory of a GPU, for a cache of the table's rows: the rows would be in host memory.
    Cache,
    /// Memory of the host of a node.
    Host,
}

fn place(on: ScarceMemory) -> &'static str {
    match on {
        ScarceMemory::Gpu | ScarceMemory::Uncached => "on a GPU",
        ScarceMemory::Cache => "for a cache of its rows on a GPU",
        ScarceMemory::Host => "in the memory of a host",
    }
}

fn remedy(on: ScarceMemory) -> &'static str {
    match on {
        ScarceMemory::Gpu => "use more GPUs, or GPUs with more memory, or allow tables in host memory",
        ScarceMemory::Uncached => {
            "use more GPUs, or GPUs with more memory; host memory does not help, as a cache would have to hold most rows"
        }
        ScarceMemory::Cache => {
            "use more GPUs, or GPUs with more memory, or smaller batches, which need fewer rows at once"
        }
        ScarceMemory::Host => "allow more host memory, or use more nodes or more GPUs",
    }
}

fn gib(bytes: Bytes) -> String {
    format!("{:.2} GiB", bytes.0 as f64 / f64::from(1 << 30))
}

impl Problem {
    /// Returns the number of GPUs that share a host.
    pub(crate) fn on_a_host(&self) -> u32 {
        if self.node > 0 { self.node } else { self.gpus.max(1) }
    }

    /// Returns the memory used on the host of each node.
    #[must_use]
    pub fn hosts(&self, loads: &[Load]) -> Vec<Bytes> {
        let of_node = |loads: &[Load]| Bytes(loads.iter().map(|load| load.host_memory.0).sum());
        loads.chunks(self.on_a_host() as usize).map(of_node).collect()
    }

    /// Whether all loads fit into the memory of GPUs and hosts.
    #[must_use]
    pub fn holds(&self, loads: &[Load]) -> bool {
        loads.iter().all(|load| load.memory <= self.memory)
            && self.hosts(loads).iter().all(|taken| *taken <= self.host_memory)
    }
}

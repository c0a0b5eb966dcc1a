//! Problem of the search, and the cost of a plan.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

use steptime_trace::{Bytes, Nanos};

/// Load of a part of a table on its GPU, per step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    /// Time of the host that launches its kernels.
    pub host: Nanos,
    /// Time of the device.
    pub device: Nanos,
    /// Memory of weights, gradients and the optimizer's state.
    pub memory: Bytes,
    /// Memory of its node's host: weights and optimizer state that are stored there.
    pub host_memory: Bytes,
    /// Columns of each sample that are sent to other GPUs.
    pub columns: u64,
}

/// Cut of a table into parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cut {
    /// The whole table on one GPU.
    Whole,
    /// N groups of columns.
    Columns(u32),
    /// Some rows on every GPU.
    Rows,
    /// N groups of columns, the rows of each group over the GPUs of a node.
    Grid(u32),
    /// A copy on every GPU.
    Copies,
}

/// Way to place a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// Cut into parts.
    pub cut: Cut,
    /// Number of rows that the GPU of each part caches, if all rows are in host memory; `None` if the GPU stores all rows.
    pub cached: Option<u64>,
    /// Load of each part on its GPU, one per part; empty if all GPUs have the same load.
    pub parts: Vec<Load>,
    /// Load on every GPU.
    pub each: Load,
}

impl Way {
    /// Returns the way that places the table whole on one GPU.
    #[must_use]
    pub fn whole(load: Load) -> Way {
        Way { cut: Cut::Whole, cached: None, parts: vec![load], each: Load::default() }
    }

    /// Returns the cut, and whether the rows are cached.
    pub(crate) fn manner(&self) -> (Cut, bool) {
        (self.cut, self.cached.is_some())
    }
}

/// A table and the ways in which it may be placed; at least one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// Ways to place it.
    pub ways: Vec<Way>,
}

/// Tables to place, and the GPUs and memory available to them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problem {
    /// Number of GPUs.
    pub gpus: u32,
    /// Number of GPUs per node, with consecutive numbers; 0 if nodes do not matter.
    pub node: u32,
    /// Memory of each GPU that tables may use.
    pub memory: Bytes,
    /// Memory of each node's host that tables of all its GPUs together may use.
    pub host_memory: Bytes,
    /// Load of each GPU without any table.
    pub base: Load,
    /// Time to exchange one column of all samples, on the GPU that sends or receives the most.
    pub exchange: Nanos,
    /// Tables to place.
    pub tables: Vec<Table>,
}

/// Placement of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TablePlacement {
    /// Index of its way.
    pub way: usize,
    /// The GPU of each part.
    pub gpus: Vec<u32>,
}

/// Placement of all tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Placements, in the order of tables.
    pub tables: Vec<TablePlacement>,
}

impl Problem {
    /// Returns the load of each GPU under a plan.
    #[must_use]
    pub fn loads(&self, plan: &Plan) -> Vec<Load> {
        let mut loads = vec![self.base; self.gpus as usize];
        for (table, placed) in self.tables.iter().zip(&plan.tables) {
            let way = &table.ways[placed.way];
            loads.iter_mut().for_each(|load| *load += way.each);
            for (&gpu, part) in placed.gpus.iter().zip(&way.parts) {
                loads[gpu as usize] += *part;
            }
        }
        loads
    }

    /// Returns the distinct manners of all ways, in order of first occurrence.
    pub(crate) fn manners(&self) -> Vec<(Cut, bool)> {
        let mut manners = Vec::new();
        for way in self.tables.iter().flat_map(|table| &table.ways) {
            if !manners.contains(&way.manner()) {
                manners.push(way.manner());
            }
        }
        manners
    }

    /// Returns the cost of a plan: the time of the GPU that is busy longest.
    #[must_use]
    pub fn cost(&self, plan: &Plan) -> Nanos {
        self.loads(plan).iter().map(|load| self.time(load)).max().unwrap_or_default()
    }

    /// Returns the busy time of a GPU: of its host or its device, whichever is longer, plus its part of the exchange.
    #[must_use]
    pub fn time(&self, load: &Load) -> Nanos {
        let columns = i64::try_from(load.columns).unwrap_or(i64::MAX);
        load.host.max(load.device) + Nanos(self.exchange.0.saturating_mul(columns))
    }
}

impl Add for Load {
    type Output = Load;

    fn add(self, other: Load) -> Load {
        Load {
            host: self.host + other.host,
            device: self.device + other.device,
            memory: Bytes(self.memory.0.saturating_add(other.memory.0)),
            host_memory: Bytes(self.host_memory.0.saturating_add(other.host_memory.0)),
            columns: self.columns + other.columns,
        }
    }
}

impl Sub for Load {
    type Output = Load;

    fn sub(self, other: Load) -> Load {
        Load {
            host: self.host - other.host,
            device: self.device - other.device,
            memory: Bytes(self.memory.0.saturating_sub(other.memory.0)),
            host_memory: Bytes(self.host_memory.0.saturating_sub(other.host_memory.0)),
            columns: self.columns.saturating_sub(other.columns),
        }
    }
}

impl AddAssign for Load {
    fn add_assign(&mut self, other: Load) {
        *self = *self + other;
    }
}

impl SubAssign for Load {
    fn sub_assign(&mut self, other: Load) {
        *self = *self - other;
    }
}

impl Sum for Load {
    fn sum<I: Iterator<Item = Load>>(loads: I) -> Load {
        loads.fold(Load::default(), Add::add)
    }
}

impl std::fmt::Display for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Cut::Whole => f.write_str("one piece"),
            Cut::Columns(parts) => write!(f, "{parts} groups of columns"),
            Cut::Rows => f.write_str("rows over all GPUs"),
            Cut::Grid(1) => f.write_str("rows over the GPUs of a node"),
            Cut::Grid(parts) => write!(f, "{parts} groups of columns, their rows over the GPUs of a node"),
            Cut::Copies => f.write_str("a copy on every GPU"),
        }
    }
}

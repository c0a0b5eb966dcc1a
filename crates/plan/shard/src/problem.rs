//! What is searched, and what a plan costs.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

use steptime_trace::{Bytes, Nanos};

/// What a part of a table asks of its GPU in a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    /// Of the host that launches for it.
    pub host: Nanos,
    /// Of the device.
    pub device: Nanos,
    /// Memory of weights, gradients and the optimizer's state.
    pub memory: Bytes,
    /// Memory of its node's host: weights and the optimizer's state of what lies there.
    pub host_memory: Bytes,
    /// Columns of each sample that it sends to other GPUs.
    pub columns: u64,
}

/// How a table is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cut {
    /// It lies whole on one GPU.
    Whole,
    /// It is cut into so many groups of columns.
    Columns(u32),
    /// Every GPU has some of its rows.
    Rows,
    /// It is cut into so many groups of columns, and the rows of each over the GPUs of a node.
    Grid(u32),
    /// Every GPU has all of it.
    Copies,
}

/// A way for a table to lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// How it is cut.
    pub cut: Cut,
    /// How many rows the GPU of each part holds, where all rows lie in its host's memory; `None` where the GPU has them.
    pub cached: Option<u64>,
    /// What each of its parts asks of the GPU that it lies on: as many as it is cut into; none where all GPUs have the same.
    pub parts: Vec<Load>,
    /// What it asks of every GPU.
    pub each: Load,
}

impl Way {
    /// A whole table.
    #[must_use]
    pub fn whole(load: Load) -> Way {
        Way { cut: Cut::Whole, cached: None, parts: vec![load], each: Load::default() }
    }

    /// How tables that lie so are cut, and whether behind caches.
    pub(crate) fn manner(&self) -> (Cut, bool) {
        (self.cut, self.cached.is_some())
    }
}

/// A table, and the ways in which it may lie; at least one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// These ways.
    pub ways: Vec<Way>,
}

/// Tables to be placed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problem {
    /// How many GPUs there are.
    pub gpus: u32,
    /// How many of them a node has, those of a node one after the other; none where nodes play no part.
    pub node: u32,
    /// Memory of each that tables may take.
    pub memory: Bytes,
    /// Memory of the host of each node that tables may take, those of all its GPUs together.
    pub host_memory: Bytes,
    /// What each GPU has to do without any table.
    pub base: Load,
    /// What it takes to exchange a column of all samples, on the GPU that sends or receives the most.
    pub exchange: Nanos,
    /// The tables.
    pub tables: Vec<Table>,
}

/// Where a table lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The number of its way.
    pub way: usize,
    /// The GPU of each part.
    pub gpus: Vec<u32>,
}

/// Where each table lies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// In the order of tables.
    pub tables: Vec<Placed>,
}

impl Problem {
    /// What each GPU is asked for by a plan.
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

    /// The manners in which tables may lie, each once, in the order in which tables name them.
    pub(crate) fn manners(&self) -> Vec<(Cut, bool)> {
        let mut manners = Vec::new();
        for way in self.tables.iter().flat_map(|table| &table.ways) {
            if !manners.contains(&way.manner()) {
                manners.push(way.manner());
            }
        }
        manners
    }

    /// What a plan costs: the time of the GPU that is busy longest.
    #[must_use]
    pub fn cost(&self, plan: &Plan) -> Nanos {
        self.loads(plan).iter().map(|load| self.time(load)).max().unwrap_or_default()
    }

    /// How long a GPU is busy: its host or its device, whichever is longer, and its part of the exchange.
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

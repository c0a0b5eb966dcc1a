//! What ran on the device.

use super::StreamId;
use crate::columns::columns;
use crate::strings::NameId;
use crate::units::Nanos;

/// What the device did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ActivityKind {
    /// Ran a kernel.
    Kernel,
    /// Copied memory.
    Memcpy,
    /// Filled memory.
    Memset,
}

/// How a kernel was launched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LaunchShape {
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y and z.
    pub block: [u32; 3],
    /// Registers a thread.
    pub registers: u32,
    /// Shared memory of a block, in bytes.
    pub shared_memory: u32,
}

columns! {
    /// Kernels, copies and fills, with launch shapes in a table of their own.
    pub struct ActivityRows of Activity {
        /// Kernel, copy or fill.
        kind: ActivityKind,
        /// The kernel, or what is copied from where to where.
        name: NameId,
        /// Where it ran.
        stream: StreamId,
        /// When it began.
        start: Nanos,
        /// How long it took.
        dur: Nanos,
        /// Ties it to the call that started it; all kernels of a graph share one; 0 is none.
        correlation: u64,
        /// The `External id` of the op; 0 is none. False in some older traces.
        external_id: u64,
        /// Bytes copied or filled; 0 for kernels.
        bytes: u64,
        /// The position of its launch shape, see [`Activities::launch_shape`].
        launch: u32,
        /// The node of the graph it belongs to; 0 is none.
        graph_node: u64,
    }
}

/// Kernels, copies and fills on the device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Activities {
    rows: ActivityRows,
    /// Distinct launch shapes, in order of first appearance.
    pub shapes: Vec<LaunchShape>,
}

impl std::ops::Deref for Activities {
    type Target = ActivityRows;

    fn deref(&self) -> &ActivityRows {
        &self.rows
    }
}

impl std::ops::DerefMut for Activities {
    fn deref_mut(&mut self) -> &mut ActivityRows {
        &mut self.rows
    }
}

impl Activities {
    /// How row `index` was launched; all zero for copies and fills.
    ///
    /// # Panics
    /// When `index` is not below the number of rows.
    #[must_use]
    pub fn launch_shape(&self, index: usize) -> &LaunchShape {
        &self.shapes[self.launch[index] as usize]
    }

    /// When row `index` ended.
    ///
    /// # Panics
    /// When `index` is not below the number of rows.
    #[must_use]
    pub fn end(&self, index: usize) -> Nanos {
        self.start[index] + self.dur[index]
    }
}

columns! {
    /// Annotations of the host as seen on the device: from the first to the last kernel within.
    pub struct GpuAnnotations of GpuAnnotation {
        /// Its name.
        name: NameId,
        /// Where its kernels ran.
        stream: StreamId,
        /// When the first began.
        start: Nanos,
        /// Until the last ended.
        dur: Nanos,
        /// The `External id` of the annotation; 0 is none.
        external_id: u64,
    }
}

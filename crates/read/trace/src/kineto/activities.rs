//! Events of the device.

use super::StreamId;
use crate::columns::columns;
use crate::strings::NameId;
use crate::units::Nanos;

/// Kind of a device activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ActivityKind {
    /// Kernel.
    Kernel,
    /// Copy of memory.
    Memcpy,
    /// Fill of memory.
    Memset,
}

/// Launch configuration of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LaunchShape {
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y and z.
    pub block: [u32; 3],
    /// Registers per thread.
    pub registers: u32,
    /// Shared memory of a block, in bytes.
    pub shared_memory: u32,
}

columns! {
    /// Kernels, copies and fills, with launch shapes in a separate table.
    pub struct ActivityRows of Activity {
        /// Kernel, copy or fill.
        kind: ActivityKind,
        /// Name of the kernel, or source and destination of a copy.
        name: NameId,
        /// Stream that it ran on.
        stream: StreamId,
        /// Start time.
        start: Nanos,
        /// Duration.
        dur: Nanos,
        /// Correlation with the call that launched it; all kernels of a graph share one; 0 if there is none.
        correlation: u64,
        /// `External id` of the op; 0 if there is none. Wrong in some older traces.
        external_id: u64,
        /// Bytes copied or filled; 0 for kernels.
        bytes: u64,
        /// Index of its launch shape, see [`Activities::launch_shape`].
        launch: u32,
        /// Graph node that it belongs to; 0 if there is none.
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
    /// Returns the launch shape of row `index`; all zero for copies and fills.
    ///
    /// # Panics
    /// If `index` is not below the number of rows.
    #[must_use]
    pub fn launch_shape(&self, index: usize) -> &LaunchShape {
        &self.shapes[self.launch[index] as usize]
    }

    /// Returns the end time of row `index`.
    ///
    /// # Panics
    /// If `index` is not below the number of rows.
    #[must_use]
    pub fn end(&self, index: usize) -> Nanos {
        self.start[index] + self.dur[index]
    }
}

columns! {
    /// Host annotations on the device: from the first to the last kernel inside.
    pub struct GpuAnnotations of GpuAnnotation {
        /// Name of the annotation.
        name: NameId,
        /// Stream of its kernels.
        stream: StreamId,
        /// Start time of the first kernel.
        start: Nanos,
        /// Duration until the end of the last kernel.
        dur: Nanos,
        /// `External id` of the annotation; 0 if there is none.
        external_id: u64,
    }
}

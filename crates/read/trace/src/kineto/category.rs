//! Categories of events, under their present and former names.

use super::ActivityKind;

/// Category of a complete event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Category {
    Op,
    Annotation,
    Runtime,
    Driver,
    Kernel,
    Memcpy,
    Memset,
    GpuAnnotation,
    Sync,
    Overhead,
    PythonFunction,
    Span,
    Unknown,
}

impl Category {
    pub(crate) fn parse(name: &[u8]) -> Category {
        match name {
            b"cpu_op" | b"Operator" | b"operator" => Category::Op,
            b"user_annotation" => Category::Annotation,
            b"Runtime" | b"runtime" => Category::Runtime,
            b"Driver" | b"driver" => Category::Driver,
            b"kernel" | b"Kernel" => Category::Kernel,
            b"gpu_memcpy" | b"Memcpy" => Category::Memcpy,
            b"gpu_memset" | b"Memset" => Category::Memset,
            b"gpu_user_annotation" => Category::GpuAnnotation,
            b"cuda_sync" => Category::Sync,
            b"overhead" | b"Overhead" => Category::Overhead,
            b"python_function" | b"python function" => Category::PythonFunction,
            b"Trace" => Category::Span,
            // Of any vendor: `cuda_runtime`, `hip_runtime`, `sycl_runtime`.
            _ if name.ends_with(b"_runtime") => Category::Runtime,
            _ if name.ends_with(b"_driver") => Category::Driver,
            _ => Category::Unknown,
        }
    }

    /// Whether its events happen on a device, and not on the host.
    pub(crate) fn is_of_device(self) -> bool {
        self.activity().is_some() || matches!(self, Category::GpuAnnotation | Category::Sync)
    }

    /// Returns the kind of device activity; `None` for other categories.
    pub(crate) fn activity(self) -> Option<ActivityKind> {
        match self {
            Category::Kernel => Some(ActivityKind::Kernel),
            Category::Memcpy => Some(ActivityKind::Memcpy),
            Category::Memset => Some(ActivityKind::Memset),
            _ => None,
        }
    }
}

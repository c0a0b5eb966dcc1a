//! Names in traces of profilers other than PyTorch's, converted to Kineto's names.

/// Profiler that wrote a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Origin {
    /// PyTorch's profiler, through Kineto.
    #[default]
    Kineto,
    /// XLA's profiler, as written by JAX: `trace.json.gz`.
    Xla,
    /// Nsight Systems, exported to SQLite.
    Nsight,
    /// A run of `steptime-train`, which times its own ops: no profiler lengthens the host's times.
    Train,
}

impl Origin {
    /// Name of the program `steptime-train` in the member `program` of its recordings.
    pub const TRAIN: &str = "steptime-train";
}

/// Name of a fill.
pub(crate) const MEMSET: &str = "Memset (Device)";
/// Name of a copy within a device, or between two.
pub(crate) const WITHIN_DEVICE: &str = "Memcpy DtoD (Device -> Device)";

/// Returns the name of a copy to the device, from pinned memory or not, if that is known.
pub(crate) fn to_device(pinned: Option<bool>) -> &'static str {
    match pinned {
        Some(true) => "Memcpy HtoD (Pinned -> Device)",
        Some(false) => "Memcpy HtoD (Pageable -> Device)",
        None => "Memcpy HtoD",
    }
}

/// Returns the name of a copy from the device.
pub(crate) fn to_host(pinned: Option<bool>) -> &'static str {
    match pinned {
        Some(true) => "Memcpy DtoH (Device -> Pinned)",
        Some(false) => "Memcpy DtoH (Device -> Pageable)",
        None => "Memcpy DtoH",
    }
}

/// Prefix of the name of a step's mark in PyTorch's profiler; the number of the step follows.
pub const STEP_MARK: &str = "ProfilerStep#";

/// Returns the name of a step's mark in PyTorch's profiler.
pub(crate) fn step_name(number: i64) -> String {
    format!("{STEP_MARK}{}", number.max(0))
}

/// Whether this is the name of a step's mark.
pub(crate) fn is_step_name(name: &str) -> bool {
    name.starts_with(STEP_MARK)
}

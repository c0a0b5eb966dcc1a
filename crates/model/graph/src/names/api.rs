//! Kinds of runtime and driver calls, by name.

/// Kind of a CUDA or HIP runtime (or driver) call, as far as a replay needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApiKind {
    /// Launches one kernel into a stream and returns.
    Launch,
    /// Launches a captured graph: one call, many device activities.
    GraphLaunch,
    /// Copies asynchronously; from or to pageable memory it may still block.
    Copy,
    /// Copies, and returns when the data have arrived.
    BlockingCopy,
    /// Fills device memory.
    Memset,
    /// Waits for one stream.
    StreamSync,
    /// Waits for one event.
    EventSync,
    /// Waits for the whole device.
    DeviceSync,
    /// Frees memory, once the whole device is idle.
    Free,
    /// Marks a point in a stream.
    EventRecord,
    /// Makes a stream wait for an event; the host continues.
    StreamWait,
    /// Queries the attributes of a kernel: many driver queries.
    FunctionQuery,
    /// Anything else: other queries, error checks, allocations.
    Other,
}

impl ApiKind {
    /// Recognises a call by its name, CUDA or HIP, runtime or driver, with or without a version suffix.
    pub fn from_name(name: &str) -> ApiKind {
        let stem = ["cuda", "hip", "cu"].iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
        let stem = stem.trim_end_matches("_ptsz").trim_end_matches("_v2");
        match stem {
            "DeviceSynchronize" | "CtxSynchronize" => ApiKind::DeviceSync,
            "Free" | "MemFree" => ApiKind::Free,
            "StreamSynchronize" => ApiKind::StreamSync,
            "EventSynchronize" => ApiKind::EventSync,
            "StreamWaitEvent" => ApiKind::StreamWait,
            "FuncGetAttributes" => ApiKind::FunctionQuery,
            "LaunchHostFunc" => ApiKind::Other,
            _ if stem.starts_with("GraphLaunch") => ApiKind::GraphLaunch,
            _ if stem.contains("Launch") && stem.contains("Kernel") => ApiKind::Launch,
            _ if stem.starts_with("EventRecord") => ApiKind::EventRecord,
            _ if stem.starts_with("Memset") => ApiKind::Memset,
            _ if stem.starts_with("Memcpy") && stem.contains("Async") => ApiKind::Copy,
            _ if stem.starts_with("Memcpy") => ApiKind::BlockingCopy,
            _ => ApiKind::Other,
        }
    }

    /// Whether the call launches work on the device.
    pub fn launches(self) -> bool {
        matches!(
            self,
            ApiKind::Launch | ApiKind::GraphLaunch | ApiKind::Copy | ApiKind::BlockingCopy | ApiKind::Memset
        )
    }

    /// Whether the host waits inside the call until the device has completed some work.
    pub fn synchronises(self) -> bool {
        matches!(self, ApiKind::StreamSync | ApiKind::EventSync | ApiKind::DeviceSync | ApiKind::Free)
    }
}

/// Names of CUDA's calls, as Kineto writes them.
pub mod cuda {
    /// Launches a kernel.
    pub const LAUNCH: &str = "cudaLaunchKernel";
    /// Launches a kernel with attributes.
    pub const LAUNCH_EX: &str = "cudaLaunchKernelExC";
    /// Launches a kernel, by the driver.
    pub const DRIVER_LAUNCH: &str = "cuLaunchKernel";
    /// Launches a kernel with attributes, by the driver.
    pub const DRIVER_LAUNCH_EX: &str = "cuLaunchKernelEx";
    /// Reads the last error.
    pub const PEEK: &str = "cudaPeekAtLastError";
    /// Queries whether a stream is being captured.
    pub const CAPTURING: &str = "cudaStreamIsCapturing";
    /// Marks a point in a stream.
    pub const EVENT_RECORD: &str = "cudaEventRecord";
    /// Marks a point in a stream, with flags.
    pub const EVENT_RECORD_WITH_FLAGS: &str = "cudaEventRecordWithFlags";
    /// Returns the kernel of a symbol.
    pub const FUNCTION_BY_SYMBOL: &str = "cudaGetFuncBySymbol";
    /// Name that the profiler writes for a call that it has no name for.
    pub const UNNAMED: &str = "INVALID";
    /// Makes a stream wait for an event.
    pub const STREAM_WAIT: &str = "cudaStreamWaitEvent";
    /// Queries an attribute of the device.
    pub const DEVICE_ATTRIBUTE: &str = "cudaDeviceGetAttribute";
    /// Queries the attributes of a kernel.
    pub const FUNCTION_ATTRIBUTES: &str = "cudaFuncGetAttributes";
    /// Sets an attribute of a kernel.
    pub const SET_FUNCTION_ATTRIBUTE: &str = "cudaFuncSetAttribute";
    /// Returns the text of an error.
    pub const ERROR: &str = "cudaGetErrorString";
    /// Copies asynchronously.
    pub const COPY: &str = "cudaMemcpyAsync";
    /// Waits for a stream.
    pub const SYNC: &str = "cudaStreamSynchronize";
    /// Fills memory asynchronously.
    pub const MEMSET: &str = "cudaMemsetAsync";
}

#[cfg(test)]
mod tests {
    use super::ApiKind;

    #[test]
    fn names_of_both_vendors_mean_the_same() {
        for (name, kind) in [
            ("cudaLaunchKernel", ApiKind::Launch),
            ("cudaLaunchKernelExC", ApiKind::Launch),
            ("cuLaunchKernelEx", ApiKind::Launch),
            ("cudaLaunchCooperativeKernel", ApiKind::Launch),
            ("hipExtModuleLaunchKernel", ApiKind::Launch),
            ("hipLaunchKernel", ApiKind::Launch),
            ("cudaGraphLaunch", ApiKind::GraphLaunch),
            ("hipGraphLaunch", ApiKind::GraphLaunch),
            ("cudaMemcpyAsync", ApiKind::Copy),
            ("hipMemcpyWithStream", ApiKind::BlockingCopy),
            ("cuMemcpyHtoDAsync_v2", ApiKind::Copy),
            ("cudaMemcpy", ApiKind::BlockingCopy),
            ("cudaMemsetAsync", ApiKind::Memset),
            ("cudaStreamSynchronize", ApiKind::StreamSync),
            ("hipDeviceSynchronize", ApiKind::DeviceSync),
            ("cudaFree", ApiKind::Free),
            ("cudaEventRecordWithFlags", ApiKind::EventRecord),
            ("cudaStreamWaitEvent", ApiKind::StreamWait),
            ("cudaLaunchHostFunc", ApiKind::Other),
            ("cudaFuncGetAttributes", ApiKind::FunctionQuery),
            ("cudaPeekAtLastError", ApiKind::Other),
        ] {
            assert_eq!(ApiKind::from_name(name), kind, "{name}");
        }
    }
}

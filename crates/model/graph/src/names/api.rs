//! What a runtime or driver call means for the replay: the one place where API names are read.

/// What a call of the CUDA or HIP runtime (or driver) does, as far as a replay must know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApiKind {
    /// Puts one kernel in a stream and returns.
    Launch,
    /// Launches a captured graph: one call, many device activities.
    GraphLaunch,
    /// An asynchronous copy; from or to pageable memory it may block all the same.
    Copy,
    /// A copy that returns when the data have arrived.
    BlockingCopy,
    /// Fills device memory.
    Memset,
    /// Waits for one stream.
    StreamSync,
    /// Waits for one event.
    EventSync,
    /// Waits for the whole device. `cudaFree` does, too.
    DeviceSync,
    /// Marks a point in a stream.
    EventRecord,
    /// Makes a stream wait for an event; the host goes on.
    StreamWait,
    /// Anything else: attribute queries, error checks, allocations.
    Other,
}

impl ApiKind {
    /// Recognises a call by its name, CUDA or HIP, runtime or driver, with or without a version suffix.
    pub fn of(name: &str) -> ApiKind {
        let stem = ["cuda", "hip", "cu"].iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
        let stem = stem.trim_end_matches("_ptsz").trim_end_matches("_v2");
        match stem {
            "DeviceSynchronize" | "CtxSynchronize" | "Free" | "MemFree" => ApiKind::DeviceSync,
            "StreamSynchronize" => ApiKind::StreamSync,
            "EventSynchronize" => ApiKind::EventSync,
            "StreamWaitEvent" => ApiKind::StreamWait,
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

    /// Whether the call puts work on the device.
    pub fn launches(self) -> bool {
        matches!(
            self,
            ApiKind::Launch | ApiKind::GraphLaunch | ApiKind::Copy | ApiKind::BlockingCopy | ApiKind::Memset
        )
    }

    /// Whether the host waits inside the call until the device has done something.
    pub fn synchronises(self) -> bool {
        matches!(self, ApiKind::StreamSync | ApiKind::EventSync | ApiKind::DeviceSync)
    }
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
            ("cudaFree", ApiKind::DeviceSync),
            ("cudaEventRecordWithFlags", ApiKind::EventRecord),
            ("cudaStreamWaitEvent", ApiKind::StreamWait),
            ("cudaLaunchHostFunc", ApiKind::Other),
            ("cudaFuncGetAttributes", ApiKind::Other),
            ("cudaPeekAtLastError", ApiKind::Other),
        ] {
            assert_eq!(ApiKind::of(name), kind, "{name}");
        }
    }
}

//! Names of collectives and of their kernels.

/// Prefix of the names of ops of PyTorch's process groups.
pub const PROCESS_GROUP: &str = "c10d::";

/// Name of the op that records a collective, and of the op that waits for it.
pub const COLLECTIVE_NOTE: &str = "record_param_comms";

/// Kind of a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CollectiveKind {
    /// Every rank gets the sum of all.
    AllReduce,
    /// Every rank gets its part of the sum.
    ReduceScatter,
    /// Every rank gets the parts of all.
    AllGather,
    /// Every rank sends a part to every other.
    AllToAll,
    /// One rank's values are sent to all.
    Broadcast,
    /// One rank gets the sum of all.
    Reduce,
    /// One rank gets the parts of all.
    Gather,
    /// One rank's parts are sent to all.
    Scatter,
    /// One rank sends to another.
    SendReceive,
    /// Ranks only wait for each other.
    Barrier,
    /// Any other kind.
    Other,
}

impl CollectiveKind {
    /// Returns the name in answers, as in `torch.distributed`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            CollectiveKind::AllReduce => "all_reduce",
            CollectiveKind::ReduceScatter => "reduce_scatter",
            CollectiveKind::AllGather => "all_gather",
            CollectiveKind::AllToAll => "all_to_all",
            CollectiveKind::Broadcast => "broadcast",
            CollectiveKind::Reduce => "reduce",
            CollectiveKind::Gather => "gather",
            CollectiveKind::Scatter => "scatter",
            CollectiveKind::SendReceive => "send_receive",
            CollectiveKind::Barrier => "barrier",
            CollectiveKind::Other => "other",
        }
    }

    /// Parses the name that PyTorch's hooks give to an operation: `allreduce`, `_allgather_base`, `all_to_allv`.
    #[must_use]
    pub fn from_operation(name: &str) -> CollectiveKind {
        let letters: String = name.chars().filter(char::is_ascii_alphabetic).collect();
        CollectiveKind::from_letters(&letters.to_ascii_lowercase()).unwrap_or(CollectiveKind::Other)
    }

    /// Parses the name of a kernel of NCCL or RCCL; `None` for any other kernel.
    #[must_use]
    pub fn from_kernel(name: &str) -> Option<CollectiveKind> {
        if !name.contains("nccl") && !name.contains("rccl") {
            return None;
        }
        let letters: String = name.chars().filter(char::is_ascii_alphabetic).collect();
        Some(CollectiveKind::from_letters(&letters.to_ascii_lowercase()).unwrap_or(CollectiveKind::Other))
    }

    /// Returns the kind of the first match: `reduce` is part of `allreduce` and of `reducescatter`.
    fn from_letters(name: &str) -> Option<CollectiveKind> {
        const PARTS: [(&str, CollectiveKind); 14] = [
            ("allreduce", CollectiveKind::AllReduce),
            ("reducescatter", CollectiveKind::ReduceScatter),
            ("allgather", CollectiveKind::AllGather),
            ("alltoall", CollectiveKind::AllToAll),
            ("sendrecv", CollectiveKind::SendReceive),
            ("broadcast", CollectiveKind::Broadcast),
            ("reduce", CollectiveKind::Reduce),
            ("gather", CollectiveKind::Gather),
            ("scatter", CollectiveKind::Scatter),
            ("barrier", CollectiveKind::Barrier),
            ("send", CollectiveKind::SendReceive),
            ("recv", CollectiveKind::SendReceive),
            ("batchisend", CollectiveKind::SendReceive),
            ("coalesced", CollectiveKind::Other),
        ];
        PARTS.iter().find(|(part, _)| name.contains(part)).map(|&(_, kind)| kind)
    }
}

/// Returns the bytes per element, from the type name in NCCL's hooks: `Float`, `BFloat16`, `Long`.
pub(crate) fn element_bytes(dtype: &str) -> Option<u64> {
    Some(match dtype.to_ascii_lowercase().as_str() {
        "byte" | "char" | "bool" | "int8" | "uint8" => 1,
        other if other.starts_with("float8") => 1,
        "half" | "bfloat16" | "short" | "float16" | "int16" => 2,
        "float" | "int" | "float32" | "int32" => 4,
        "double" | "long" | "float64" | "int64" | "complexfloat" => 8,
        "complexdouble" => 16,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_and_kernels_are_told() {
        for (name, kind) in [
            ("allreduce", CollectiveKind::AllReduce),
            ("allreduce_coalesced", CollectiveKind::AllReduce),
            ("_allgather_base", CollectiveKind::AllGather),
            ("_reduce_scatter_base", CollectiveKind::ReduceScatter),
            ("all_to_allv", CollectiveKind::AllToAll),
            ("broadcast", CollectiveKind::Broadcast),
            ("recv", CollectiveKind::SendReceive),
        ] {
            assert_eq!(CollectiveKind::from_operation(name), kind, "{name}");
        }
        let kernel = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
        assert_eq!(CollectiveKind::from_kernel(kernel), Some(CollectiveKind::AllReduce));
        assert_eq!(CollectiveKind::from_kernel("ncclKernel_SendRecv"), Some(CollectiveKind::SendReceive));
        assert_eq!(CollectiveKind::from_kernel("void reduce_kernel<512>"), None);
    }
}

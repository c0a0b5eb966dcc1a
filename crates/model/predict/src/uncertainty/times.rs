//! Numbers about times of hosts, kernels, collectives and jobs.

use serde::Deserialize;

use super::entry::{SourcedValue, sourced, tables};

tables! {
    /// The step time in another process.
    pub(crate) NextRun { pub(crate) device: f64, pub(crate) host: f64, pub(crate) drift: f64 }
    /// Work without any information.
    pub(crate) Unknown { pub(crate) work: f64 }
    /// Times of kernels.
    pub(crate) KernelTimes {
        pub(crate) measured: f64, pub(crate) same_gpu: f64, pub(crate) captured: f64, pub(crate) ratio_share: f64,
    }
    /// Kernels that run at the same time.
    pub(crate) Streams { pub(crate) known_grids: f64, pub(crate) unknown_grids: f64 }
    /// Launch shapes where none was recorded: threads of a block, registers of a thread, shared memory of a block.
    pub(crate) LaunchShapes {
        pub(crate) product: [u32; 3], pub(crate) tensor_cores: [u32; 3], pub(crate) other: [u32; 3],
        pub(crate) product_elements: u64, pub(crate) other_bytes: u64,
    }
    /// Times of the host.
    pub(crate) HostTimes {
        pub(crate) pace: f64, pub(crate) pace_without_pulses: f64, pub(crate) pace_share: f64,
        pub(crate) priced: f64, pub(crate) another_run: f64, pub(crate) out_of_line: f64,
        pub(crate) op_autograd_ns: f64, pub(crate) zero_grad_share: f64,
    }
    /// Ranks of a job.
    pub(crate) Ranks {
        pub(crate) slow_from: f64, pub(crate) slow_moment: f64, pub(crate) slow_share: f64, pub(crate) disturbed: f64,
        pub(crate) host_spread: f64, pub(crate) one_run: f64, pub(crate) queued_ns: i64,
    }
    /// Device memory.
    pub(crate) Memory { pub(crate) reserved: f64 }
    /// Limits of classifications.
    pub(crate) Decisions { pub(crate) same_architecture: f64, pub(crate) host_bound: f64 }
    /// Times of collectives.
    pub Collectives {
        pub(crate) unknown_size: f64,
        /// Relative error of the launch in a sweep.
        pub launch: f64,
        /// Largest size that is bound by latency, in bytes.
        pub small_bytes: u64,
    }
}

/// Placements of tables.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plans {
    /// Error of the predicted difference of two plans: standard deviation of the logarithm of a step.
    #[serde(deserialize_with = "sourced")]
    pub difference: SourcedValue,
}

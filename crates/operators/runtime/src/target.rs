//! Devices that programs are compiled for.

use std::fmt;

/// Kind of device that runs a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Target {
    /// The processor's cores.
    #[default]
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Target::Cpu => "a CPU",
            Target::Cuda => "a GPU",
        })
    }
}

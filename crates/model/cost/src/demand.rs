//! Resources that a kernel takes from concurrent ones.

use steptime_graph::{ActivityId, TiVec};
use steptime_trace::LaunchShape;

/// Resources of a multiprocessor for its resident blocks, by compute capability: NVIDIA's CUDA C++ Programming Guide,
/// "Technical specifications per compute capability".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Multiprocessor {
    pub blocks: u32,
    pub warps: u32,
    /// Registers, of 32 bits.
    pub registers: u32,
    /// Shared memory, bytes.
    pub shared: u32,
    /// Lanes for 32-bit floats.
    pub lanes: u32,
    /// Lanes that get an instruction in a cycle: more than those for floats if others work on integers.
    pub issued: u32,
}

/// Resources that a kernel takes from the GPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demand {
    /// Blocks of its grid.
    pub blocks: f64,
    /// Warps per block.
    pub warps: f64,
    /// Shares of a multiprocessor that a block takes: of its places for blocks, its warps, its registers, its shared memory.
    pub block: [f64; 4],
    /// Share of the device-memory bandwidth that the kernel takes alone, 0 to 1.
    pub memory: f64,
    /// Share of the issue slots of its multiprocessors that the kernel takes alone, relative to one that always has instructions, 0 to 1.
    pub busy: f64,
}

/// Demands of the kernels of several streams on the GPU that they share.
#[derive(Debug, Clone, PartialEq)]
pub struct Demands {
    pub multiprocessors: u32,
    /// Whether the kernels are nodes of a CUDA graph that wait for one another by their data.
    pub nodes: bool,
    /// Demand of each activity; `None` for one without effect on others and without effects from them: a copy, or
    /// a kernel whose duration was measured while others ran.
    pub of: TiVec<ActivityId, Option<Demand>>,
}

/// Threads of a warp.
const WARP: u32 = 32;
/// Allocation unit of a warp's registers.
const REGISTERS: u32 = 256;
/// Allocation unit of shared memory, bytes.
const SHARED: u32 = 128;
/// Shared memory of a block that CUDA keeps for itself, bytes.
const RESERVED: u32 = 1024;

impl Multiprocessor {
    /// Number of blocks of `threads` threads that fit by the limits on blocks and warps.
    #[must_use]
    pub fn blocks_of(&self, threads: u32) -> u32 {
        (self.warps / threads.div_ceil(WARP).max(1)).clamp(1, self.blocks)
    }

    /// Limits of a compute capability, major and minor; for an unknown one, those of the newest older one.
    #[must_use]
    pub fn from_capability(capability: [u8; 2]) -> Multiprocessor {
        let (blocks, warps, kilobytes) = match capability {
            [6, 0] => (32, 64, 64),
            [..=6, _] => (32, 64, 96),
            [7, 5] => (16, 32, 64),
            [7, _] => (32, 64, 96),
            [8, 0] => (32, 64, 164),
            [8, 7] => (16, 48, 164),
            [8, 9] => (24, 48, 100),
            [8, _] => (16, 48, 100),
            [9, _] => (32, 64, 228),
            [10 | 11, _] => (32, 64, 228),
            _ => (24, 48, 100),
        };
        let lanes = match capability {
            [6, 0] | [7, _] | [8, 0] => 64,
            _ => 128,
        };
        let issued = if capability == [6, 0] { 64 } else { 128 };
        Multiprocessor { blocks, warps, registers: 65_536, shared: kilobytes << 10, lanes, issued }
    }
}

impl Demand {
    /// Demand of a kernel with this launch configuration and share of the bandwidth.
    #[must_use]
    pub fn from_launch(launch: &LaunchShape, has: &Multiprocessor, memory: f64) -> Demand {
        let product = |sides: [u32; 3]| sides.iter().map(|&side| f64::from(side.max(1))).product::<f64>();
        let warps = (product(launch.block) / f64::from(WARP)).ceil();
        let registers = f64::from((launch.registers.max(1) * WARP).next_multiple_of(REGISTERS)) * warps;
        let shared = f64::from(launch.shared_memory.saturating_add(RESERVED).next_multiple_of(SHARED));
        let share = |asked: f64, all: u32| (asked / f64::from(all)).min(1.0);
        Demand {
            blocks: product(launch.grid),
            warps,
            block: [
                share(1.0, has.blocks),
                share(warps, has.warps),
                share(registers, has.registers),
                share(shared, has.shared),
            ],
            memory: memory.clamp(0.0, 1.0),
            busy: 1.0,
        }
    }

    /// Number of blocks that fit on a multiprocessor at once.
    #[must_use]
    pub fn resident(&self) -> f64 {
        (1.0 / self.size() + 1e-9).floor().max(1.0)
    }

    /// Largest share that a block takes of any resource.
    #[must_use]
    pub fn size(&self) -> f64 {
        self.block.iter().copied().fold(1e-3, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_what_the_scarcest_allows() {
        let hopper = Multiprocessor::from_capability([9, 0]);
        let launch = |block, registers, shared_memory| LaunchShape {
            grid: [128, 1, 1],
            block: [block, 1, 1],
            registers,
            shared_memory,
        };
        let fits = |block, registers, shared| {
            Demand::from_launch(&launch(block, registers, shared), &hopper, 0.0).resident()
        };
        assert_eq!(fits(128, 32, 0), 16.0, "by warps");
        assert_eq!(fits(256, 202, 49_152), 1.0, "by registers");
        assert_eq!(fits(64, 16, 57_344), 4.0, "by shared memory");
        assert_eq!(fits(32, 32, 0), 32.0, "by blocks");
    }
}

//! The device of a run.

use std::str::FromStr;

use clap::ValueEnum;
use steptime_cuda::Device;
use steptime_cuda::gemm::Math;
use steptime_cuda::peer::Peers;
use steptime_ops::Cpu;
use steptime_runtime::{GpuOptions, Program, Rank, Session, Target};

use crate::error::Error;
use crate::ranks::{Exchanges, Groups};
use crate::{Failure, memory};

/// Name of a device: `cpu`, `cuda`, or `cuda:N`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceName {
    Cpu,
    /// A GPU by its number.
    Cuda(usize),
}

impl DeviceName {
    /// The device of a rank: the GPUs follow one another.
    pub fn of_rank(self, rank: usize) -> DeviceName {
        match self {
            DeviceName::Cpu => DeviceName::Cpu,
            DeviceName::Cuda(first) => DeviceName::Cuda(first + rank),
        }
    }
}

impl FromStr for DeviceName {
    type Err = Error;

    fn from_str(text: &str) -> Result<DeviceName, Error> {
        match text.split_once(':') {
            None if text == "cpu" => Ok(DeviceName::Cpu),
            None if text == "cuda" => Ok(DeviceName::Cuda(0)),
            Some(("cuda", number)) if number.parse::<usize>().is_ok() => {
                Ok(DeviceName::Cuda(number.parse().unwrap_or_default()))
            }
            _ => Err(Error::Device { device: text.to_owned() }),
        }
    }
}

/// Precision of products, and of the tensors between layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Precision {
    /// 32-bit floats
    #[default]
    F32,
    /// 32-bit floats, multiplied with 10 bits of fraction, on a GPU
    Tf32,
    /// 16-bit floats between layers, with parameters and optimizer in 32 bits, on a GPU
    Bf16,
}

impl Precision {
    /// Name of the option's value.
    pub fn name(self) -> &'static str {
        match self {
            Precision::F32 => "f32",
            Precision::Tf32 => "tf32",
            Precision::Bf16 => "bf16",
        }
    }
}

/// An open device.
pub enum Processor {
    Cpu,
    Gpu(Device, Math),
}

impl Processor {
    /// Opens a device.
    ///
    /// # Errors
    /// Where there is no such GPU, or the precision is not one of the device.
    pub fn open(name: DeviceName, precision: Precision) -> Result<Processor, Failure> {
        match (name, precision) {
            (DeviceName::Cpu, Precision::F32) => Ok(Processor::Cpu),
            (DeviceName::Cpu, precision) => {
                let name = precision.name();
                let reason =
                    format!("--dtype {name} is a precision of GPUs: use --device cuda, or --dtype f32");
                Err(Error::Options(reason).into())
            }
            (DeviceName::Cuda(number), precision) => {
                let math = if precision == Precision::Tf32 { Math::Tf32 } else { Math::Full };
                Ok(Processor::Gpu(Device::open(number)?, math))
            }
        }
    }

    /// Device that programs are compiled for.
    pub fn target(&self) -> Target {
        match self {
            Processor::Cpu => Target::Cpu,
            Processor::Gpu(..) => Target::Cuda,
        }
    }

    /// Whether it is a GPU.
    pub fn is_gpu(&self) -> bool {
        self.target() == Target::Cuda
    }

    /// Name in reports.
    pub fn name(&self) -> &str {
        match self {
            Processor::Cpu => "cpu",
            Processor::Gpu(device, _) => device.name(),
        }
    }

    /// Free memory of a GPU in bytes; `None` for a CPU.
    ///
    /// # Errors
    /// Where the driver fails.
    pub fn free_memory(&self) -> Result<Option<u64>, Failure> {
        match self {
            Processor::Cpu => Ok(None),
            Processor::Gpu(device, _) => Ok(Some(device.memory()?.0 as u64)),
        }
    }

    /// Refuses a step that needs more memory than the device has free, before any of it is allocated. `cacheable` states whether tables could be
    /// in host memory.
    ///
    /// # Errors
    /// Where memory is not sufficient, or the driver fails.
    pub fn check_memory(&self, needed: u64, ranks: u64, cacheable: bool) -> Result<(), Failure> {
        match self.free_memory()? {
            // All ranks share the memory of the host.
            None => Ok(memory::check(needed.saturating_mul(ranks))?),
            Some(available) if needed > available => {
                Err(Error::Memory { needed, available, cacheable }.into())
            }
            Some(_) => Ok(()),
        }
    }

    /// Whether the ranks exchange by writing the memory of one another's GPUs.
    ///
    /// # Errors
    /// Where `direct` is chosen and the GPUs are not linked; where another rank failed, or the driver fails.
    pub fn exchanges_directly(&self, rank: &Rank, wanted: Exchanges) -> Result<bool, Failure> {
        let Processor::Gpu(device, _) = self else { return Ok(false) };
        if rank.ranks() == 1 || wanted == Exchanges::Nccl {
            return Ok(false);
        }
        let all = rank.gather(device.clone(), None)?;
        let all: Vec<Device> = all.iter().map(|one| (**one).clone()).collect();
        let linked = Peers::reach(&all)?;
        if !linked && wanted == Exchanges::Direct {
            let reason = "--exchanges direct: the GPUs do not reach the memory of one another: use nccl";
            return Err(Error::Options(reason.to_owned()).into());
        }
        Ok(linked)
    }

    /// A session of a rank's program that was compiled for this device.
    ///
    /// # Errors
    /// As [`Session::in_group`] and [`Session::on_gpu`]; where the GPUs of all ranks cannot exchange data.
    pub fn session(
        &self,
        program: Program,
        cpu: Cpu,
        seed: u64,
        (rank, groups): (&Rank, &Groups),
        direct: bool,
    ) -> Result<Session, Failure> {
        Ok(match self {
            Processor::Cpu => Session::in_group(program, cpu, seed, rank.clone())?,
            Processor::Gpu(device, math) => {
                let group = groups.join(device, rank, direct)?;
                let options = GpuOptions { device: device.clone(), math: *math, graph: true, group };
                Session::on_gpu(program, options, &cpu, seed)?
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_names() {
        assert_eq!("cuda:3".parse::<DeviceName>().expect("a name"), DeviceName::Cuda(3));
        assert_eq!("cuda".parse::<DeviceName>().expect("a name"), DeviceName::Cuda(0));
        for wrong in ["gpu", "cuda:", "cuda:x", "cpu:0", ""] {
            assert!(wrong.parse::<DeviceName>().is_err(), "{wrong}");
        }
    }
}

//! Kernel times of a step compared with the roofline of the device.

use steptime_cost::device::DeviceSpec;
use steptime_trace::Nanos;

use super::{Device, Query};
use crate::error::Error;
use crate::plausibility::{check_sizes, check_time};
use crate::pricing::{self, Roof};
use crate::step::Step;

/// Assumed device of recordings that do not name theirs.
const UNNAMED: &str = "h200";

/// Kernels of a step compared with the roofline.
#[derive(Debug, Clone)]
pub struct Roofline {
    /// The device whose rates bound the kernels: as given, else the name of its profile.
    pub device: String,
    /// Its specification.
    pub spec: DeviceSpec,
    /// Whether times are predicted from a profile; else they were measured.
    pub predicted: bool,
    /// Kernel calls that take time, in order of execution.
    pub kernels: Vec<KernelRoof>,
}

/// A kernel call compared with the roofline.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelRoof {
    /// The op that launched it; empty outside of ops.
    pub op: String,
    /// Its family.
    pub family: &'static str,
    /// Shapes of the op's tensor arguments, where recorded.
    pub shapes: Vec<Vec<i64>>,
    /// Its time.
    pub time: Nanos,
    /// Its shortest possible time, and its bound.
    pub roof: Roof,
}

impl Query<'_> {
    /// Compares every kernel with the roofline of the GPU: with predicted times where a GPU is given, else with measured times and
    /// the GPU recorded on.
    ///
    /// # Errors
    /// As [`Query::run`]; also where no GPU is given and the one recorded on has no profile, where arguments of ops are missing,
    /// or where no kernel takes time.
    pub fn roofline(&self) -> Result<Roofline, Error> {
        let step = self.predictable()?;
        step.on_a_device()?;
        if !step.arguments.is_derived() && step.arguments.known() == 0 {
            return Err(Error::NoArguments { path: step.path.clone() });
        }
        let recorded;
        let (Device { name, profile }, predicted) = match &self.device {
            Some(device) => (device, true),
            None => {
                recorded = recorded_on(step)?;
                (&recorded, false)
            }
        };
        let graph = &step.graph;
        let launches = step.launches(&self.indices, self.settings);
        check_sizes(&step.path, graph, &launches)?;
        let prices = pricing::price(graph, &launches, profile, self.models);
        let kernels = launches.iter().zip(&prices.estimates).filter_map(|(launch, estimate)| {
            let time = if predicted { estimate.time } else { launch.measured(graph)? };
            (time > Nanos::ZERO).then(|| KernelRoof {
                op: launch.op.map_or(String::new(), |op| graph.op_name(op).to_owned()),
                shapes: launch.op.map_or_else(Vec::new, |op| step.arguments.shapes(op)),
                family: launch.call.kernel.family(),
                time,
                roof: Roof::compute(&launch.call, &launch.context, &profile.spec),
            })
        });
        let kernels: Vec<KernelRoof> = kernels.collect();
        check_time(step, kernels.iter().map(|kernel| kernel.time).sum())?;
        Ok(Roofline { device: name.clone(), spec: profile.spec.clone(), predicted, kernels })
    }
}

/// The shipped profile of the GPU recorded on.
pub(super) fn recorded_on(step: &Step) -> Result<Device, Error> {
    let named = step.meta.as_ref().and_then(|meta| meta.device.clone());
    let name = match named.or_else(|| step.graph.device.clone()) {
        None => UNNAMED,
        Some(device) => pricing::shipped_for(&device).ok_or(Error::NoProfileOf { device })?,
    };
    Ok(Device { name: name.to_owned(), profile: pricing::device(name)?.into() })
}

//! How far each kernel of a step is from what the device could do.

use steptime_cost::device::DeviceSpec;
use steptime_trace::Nanos;

use super::{Device, Question};
use crate::device::{self, Roof};
use crate::error::Error;
use crate::possible::{possible, takes_time};
use crate::step::Step;

/// The device that recordings are taken to be of where they do not name theirs.
const UNNAMED: &str = "h200";

/// Every kernel of a step under its roof.
#[derive(Debug, Clone)]
pub struct Roofline {
    /// The device whose rates are the roof: as it was named, else the name of its profile.
    pub device: String,
    /// Its rates.
    pub spec: DeviceSpec,
    /// Whether times are priced by a profile; else they were measured.
    pub predicted: bool,
    /// The kernel calls that take time, in the order in which they run.
    pub kernels: Vec<KernelRoof>,
}

/// A kernel call under its roof.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelRoof {
    /// The op that launched it; empty outside of ops.
    pub op: String,
    /// Its family.
    pub family: &'static str,
    /// The shapes of the tensors that the op was called with, where they were recorded.
    pub shapes: Vec<Vec<i64>>,
    /// How long it takes.
    pub time: Nanos,
    /// How long it could take, and what bounds it.
    pub roof: Roof,
}

impl Question<'_> {
    /// Puts every kernel under the roof of the GPU: with predicted times where one is named, else with measured times and
    /// the GPU recorded on.
    ///
    /// # Errors
    /// As [`Question::run`]; no GPU named, and no profile of the one recorded on; no arguments of its ops; no kernel takes
    /// any time.
    pub fn roofline(&self) -> Result<Roofline, Error> {
        let step = self.shaped(true)?;
        if !step.arguments.is_derived() && step.arguments.known() == 0 {
            return Err(Error::NoArguments { path: step.path.clone() });
        }
        let recorded;
        let (Device { name, profile }, predicted) = match &self.device {
            Some(device) => (device, true),
            None => {
                recorded = recorded_on(&step)?;
                (&recorded, false)
            }
        };
        let graph = &step.graph;
        let launches = step.launches(&self.indices, self.settings);
        possible(&step.path, graph, &launches)?;
        let prices = device::price(graph, &launches, profile, self.models);
        let kernels = launches.iter().zip(&prices.estimates).filter_map(|(launch, estimate)| {
            let time = if predicted { estimate.time } else { launch.measured(graph)? };
            (time > Nanos::ZERO).then(|| KernelRoof {
                op: launch.op.map_or(String::new(), |op| graph.op_name(op).to_owned()),
                shapes: launch.op.map_or_else(Vec::new, |op| step.arguments.shapes(op)),
                family: launch.call.kernel.family(),
                time,
                roof: Roof::of(&launch.call, &launch.context, &profile.spec),
            })
        });
        let kernels: Vec<KernelRoof> = kernels.collect();
        takes_time(&step, kernels.iter().map(|kernel| kernel.time).sum())?;
        Ok(Roofline { device: name.clone(), spec: profile.spec.clone(), predicted, kernels })
    }
}

/// The shipped profile of the device that was recorded on.
pub(super) fn recorded_on(step: &Step) -> Result<Device, Error> {
    let named = step.meta.as_ref().and_then(|meta| meta.device.clone());
    let name = match named.or_else(|| step.graph.device.clone()) {
        None => UNNAMED,
        Some(device) => device::shipped_for(&device).ok_or(Error::NoProfileOf { device })?,
    };
    Ok(Device { name: name.to_owned(), profile: device::device(name)?.into() })
}

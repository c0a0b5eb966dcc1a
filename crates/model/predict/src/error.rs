//! Errors, with messages for the user.

use std::path::PathBuf;

use steptime_cost::{ProbeError, ProfileError};
use steptime_trace::Nanos;

/// Error of a command.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input could not be read.
    #[error(transparent)]
    Trace(#[from] steptime_trace::Error),
    /// The input is not a valid model description.
    #[error(transparent)]
    Model(#[from] steptime_eager::Error),
    /// An execution graph could not be built.
    #[error("{}: {source}", path.display())]
    Graph {
        /// The input.
        path: PathBuf,
        /// The reason.
        source: steptime_graph::Error,
    },
    /// A step graph could not be derived from an execution trace.
    #[error("{}: {source}", path.display())]
    Derive {
        /// The input.
        path: PathBuf,
        /// The reason.
        source: steptime_aten::derive::Error,
    },
    /// A device profile could not be read, fitted or written.
    #[error(transparent)]
    Device(#[from] steptime_cost::device::Error),
    /// A profile could not be read or fitted.
    #[error(transparent)]
    Cost(#[from] steptime_cost::Error),
    /// The input has no timing of a device, and no device was given to price it for.
    #[error(
        "{}: no GPU times in the input (an execution trace alone, or recorded on a CPU): name a GPU to predict for (--device h200), or give \
         a recording made on a GPU", path.display()
    )]
    NoTiming {
        /// The input.
        path: PathBuf,
    },
    /// The collectives of a folder's ranks do not match.
    #[error("{}: {source}", path.display())]
    Job {
        /// The folder.
        path: PathBuf,
        /// The mismatch.
        source: steptime_graph::Mismatch,
    },
    /// The interconnect of a job's GPUs is unknown.
    #[error("{source}")]
    Network {
        /// The details.
        source: steptime_cost::network::NetworkError,
    },
    /// The ranks of a folder deadlock.
    #[error("{}: {source}", path.display())]
    Hang {
        /// The folder.
        path: PathBuf,
        /// The collectives at which they wait.
        source: steptime_sim::Hang,
    },
    /// A trace without device activity.
    #[error(
        "{}: no GPU activity in the trace{}: record with ProfilerActivity.CUDA on a GPU, or give the step's execution trace and name a GPU \
         to predict for (--device h200)", path.display(), other(accelerators)
    )]
    NoDeviceActivity {
        /// The input.
        path: PathBuf,
        /// Categories of events of accelerators that are not read.
        accelerators: Vec<String>,
    },
    /// A time that the measured step of a CPU does not have.
    #[error(
        "{}: recorded on a CPU, with measured times alone: {unknown} is not known; for a GPU give the description of the model (`steptime \
         predict MODEL.toml --device h200`)", path.display()
    )]
    MeasuredAlone {
        /// The input.
        path: PathBuf,
        /// The unknown time, in words.
        unknown: String,
    },
    /// A trace without device activities that a call within a step launched.
    #[error(
        "{}: none of its {activities} GPU activities was launched within a step: {}", path.display(),
        if *linked == 0 {
            "the calls that launched them were not recorded, or have no id that links them to a kernel (correlation, External id): record \
             with both ProfilerActivity.CPU and ProfilerActivity.CUDA"
        } else {
            "the steps run on the host only; mark the training steps (prof.step())"
        }
    )]
    NothingLaunched {
        /// The input.
        path: PathBuf,
        /// Activities in the trace.
        activities: usize,
        /// Activities with a recorded call.
        linked: usize,
    },
    /// A GPU was given, and the input lacks the arguments of its ops.
    #[error(
        "{}: no arguments of its ops were recorded, and without them no kernel can be priced for a GPU: record the \
         execution trace beside it (steptime.record does), or profile with record_shapes=True", path.display()
    )]
    NoArguments {
        /// The input.
        path: PathBuf,
    },
    /// A recording of a device without a profile, where no other device was given.
    #[error(
        "recorded on {device}, which has no device profile: name a GPU with --device to price kernels for it"
    )]
    NoProfileOf {
        /// The device's own name.
        device: String,
    },
    /// The host's own times were requested of an input without host times.
    #[error("{}: an execution trace alone has no host times: give a recording", path.display())]
    NoHostTimes {
        /// The input.
        path: PathBuf,
    },
    /// A factor on the host's times is out of range.
    #[error("the factor on the host's times is {times}: give one between 0.05 and 50")]
    HostFactor {
        /// The factor.
        times: f64,
    },
    /// A factor on the host's times without a profile that it applies to.
    #[error("a factor on the host's times needs a host profile: name one, or use a typical host")]
    FactorOfNoProfile,
    /// A recording without a probe of its host.
    #[error(
        "{}: the recording holds no probe of its host: record it again, or measure the host with \
         `python -m steptime.probe -o my-host.toml`", path.display()
    )]
    NoProbe {
        /// The recording.
        path: PathBuf,
    },
    /// A probe's file is invalid.
    #[error("{}: {source}", path.display())]
    Probe {
        /// The file.
        path: PathBuf,
        /// The problem.
        source: ProbeError,
    },
    /// A changed step in which nothing takes time.
    #[error("{}: the changed step would take no time: no kernel was recorded; record it again on its GPU, or name one with --device", path.display())]
    NothingLeft {
        /// The input.
        path: PathBuf,
    },
    /// A step without kernels, copies or fills that take time.
    #[error(
        "{}: no kernel, copy or fill of its step takes any time{}; record whole steps, kernels included",
        path.display(), repairs.as_ref().map_or_else(String::new, |repairs| format!(" ({repairs})"))
    )]
    NoKernels {
        /// The input.
        path: PathBuf,
        /// Repairs while reading, in words.
        repairs: Option<String>,
    },
    /// A step without any duration.
    #[error("{}: the step would take no time: the recorded events have no durations; record it again", path.display())]
    NoDuration {
        /// The input.
        path: PathBuf,
    },
    /// A step that takes implausibly long.
    #[error(
        "{}: the step would take {} days: a duration of the file is damaged; record it again", path.display(),
        time.0 / 86_400_000_000_000
    )]
    TooLong {
        /// The input.
        path: PathBuf,
        /// The time of the step.
        time: Nanos,
    },
    /// An op with tensors too large for any GPU.
    #[error(
        "{}: {op} would touch {bytes:.0e} bytes and take {flops:.0e} operations: no GPU does; check the sizes of its \
         tensors, and the change that made them", path.display()
    )]
    Impossible {
        /// The input.
        path: PathBuf,
        /// The op.
        op: String,
        /// Distinct bytes touched.
        bytes: f64,
        /// Arithmetic operations.
        flops: f64,
    },
    /// Too little is left of a damaged file.
    #[error("{repairs}; with the remaining data: {source}")]
    Damaged {
        /// Repairs while reading.
        repairs: String,
        /// The error in the rest.
        source: Box<Error>,
    },
    /// A rule cannot be applied to the step.
    #[error("{}: {source}", path.display())]
    Rewrite {
        /// The input.
        path: PathBuf,
        /// The reason.
        source: steptime_rewrite::RuleError,
    },
    /// Changed kernels have to be priced by a profile of the GPU recorded on, and there is none.
    #[error(
        "{}: changed kernels cannot be priced: no shipped device profile for {}, the GPU of the recording; name a GPU with --device",
        path.display(), device.as_deref().unwrap_or("the GPU")
    )]
    NoOwnProfile {
        /// The input.
        path: PathBuf,
        /// The GPU's own name.
        device: Option<String>,
    },
    /// The shipped host profile cannot be used.
    #[error("the host profile that ships with steptime is unusable: {source}")]
    ShippedHost {
        /// The problem.
        source: &'static ProfileError,
    },
    /// A step compiled for a CPU, whose kernels are not ops.
    #[error(
        "{}: {region} was compiled for the CPU, and how a GPU would fuse its ops is unknown: record the step \
         without torch.compile (it takes no less time), or on a GPU", path.display()
    )]
    Compiled {
        /// The input.
        path: PathBuf,
        /// The region.
        region: String,
    },
    /// A step number was given for an execution trace, which has only one step.
    #[error("{}: no step {step}: an execution trace alone has a single step without a number", path.display())]
    OneStep {
        /// The input.
        path: PathBuf,
        /// The given step.
        step: u32,
    },
    /// An execution trace, or a step recorded on a CPU, where measured times of a GPU are needed.
    #[error(
        "{}: no GPU times in the input (an execution trace alone, or recorded on a CPU): give a recording made on a GPU (`steptime predict \
         --device h200` accepts this one)", path.display()
    )]
    NothingMeasured {
        /// The input.
        path: PathBuf,
    },
    /// The given device has no profile.
    #[error(
        "no device profile {name:?}{}: the shipped ones are {known}; `steptime device fit` makes others",
        suggestion(nearest)
    )]
    NoSuchDevice {
        /// The given name.
        name: String,
        /// The known names.
        known: String,
        /// The most similar known name, if any is close.
        nearest: Option<&'static str>,
    },
    /// Prices are invalid.
    #[error("{}: {problem}", path.display())]
    Prices {
        /// The file.
        path: PathBuf,
        /// The problem and its remedy.
        problem: String,
    },
    /// A table of a GPU without a shipped profile.
    #[error("no shipped profile for {device:?}: name a profile with `--device`")]
    UnknownDevice {
        /// The GPU, as the table names it.
        device: String,
    },
    /// Times of a table that are implausible for the GPU of its name.
    #[error(
        "{}: the median row takes {median:.3} times the time expected on {device}: times are in another unit, or of another GPU",
        path.display()
    )]
    AnotherUnit {
        /// The table.
        path: PathBuf,
        /// Ratio of measured times to formulas.
        median: f64,
        /// The GPU.
        device: String,
    },
    /// Tables of other GPUs than the profile's.
    #[error("the profile is for {profile}, but the tables are for {of}")]
    OfOtherDevices {
        /// The profile's GPU.
        profile: String,
        /// The tables' GPUs.
        of: String,
    },
    /// Several recordings in one folder that are not the ranks of one job.
    #[error(
        "{}: holds {} recordings that are not the ranks of one job ({}): name one of them; `steptime validate` and \
         `steptime host fit` take all", path.display(), names.len(), few(names)
    )]
    NotOneJob {
        /// The input.
        path: PathBuf,
        /// Their names.
        names: Vec<String>,
    },
    /// The given rank does not exist.
    #[error("{}: no rank {wanted}; there are {known}", path.display())]
    NoSuchRank {
        /// The input.
        path: PathBuf,
        /// The given rank.
        wanted: u32,
        /// The existing ranks.
        known: String,
    },
    /// A recording without a measured step time, which this command needs.
    #[error("{}: no `step_ms` in meta.json: only a recording with its un-profiled step time can be {purpose}", path.display())]
    NoTruth {
        /// The recording.
        path: PathBuf,
        /// The purpose that needs it.
        purpose: &'static str,
    },
    /// Leave-one-out needs recordings of at least two architectures.
    #[error(
        "leave-one-out needs recordings of at least two architectures: all of these are of {family}, whatever their names"
    )]
    OneModel {
        /// The one architecture.
        family: String,
    },
    /// The tables of a model do not fit into memory.
    #[error("{}: {source}", path.display())]
    Shard {
        /// The description.
        path: PathBuf,
        /// The table, and the remaining memory.
        source: steptime_shard::DoesNotFit,
    },
    /// A plan that cannot be read or written.
    #[error(transparent)]
    Plan(#[from] crate::shard::PlanError),
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
}

/// The first of many names, and the number of others.
fn few(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let shown = names[..names.len().min(SHOWN)].join(", ");
    if names.len() > SHOWN { format!("{shown}, and {} others", names.len() - SHOWN) } else { shown }
}

fn suggestion(nearest: &Option<&'static str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" (did you mean {name}?)"))
}

fn other(accelerators: &[String]) -> String {
    if accelerators.is_empty() {
        String::new()
    } else {
        format!(", and its accelerator is not supported ({})", accelerators.join(", "))
    }
}

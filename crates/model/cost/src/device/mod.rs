//! Kernel costs: a duration for each [`KernelCall`](steptime_aten::KernelCall), from its arguments alone.
//!
//! ```text
//! KernelCall, Context ── families::find ──> features, analytic time ── learnt ratio ──> Estimate
//!                                              ^                        ^
//!                                          DeviceSpec             models of a profile
//! ```

mod bounds;
pub mod constants;
pub mod context;
pub mod error;
pub mod estimate;
mod extrapolation;
pub mod families;
pub mod family;
pub mod fit;
mod known;
pub mod learn;
mod lend;
pub mod observation;
pub mod paper;
pub mod price;
pub mod profile;
pub mod scale;
pub mod spec;
pub mod stage;
pub mod transfer;
mod units;
pub mod variant;

pub use context::{Context, Setting};
pub use error::Error;
pub use estimate::{Estimate, EstimateSum, ModelKind, Source};
pub use family::Family;
pub use fit::{FitError, FitOptions, MeasuredGpu, Search, fit, fit_across, fit_onto, without_host};
pub use known::KnownPrices;
pub use observation::Observation;
pub use price::ModelChoice;
pub use profile::DeviceProfile;
pub use profile::error::{ContentsError, HeaderError, ModelsError};
pub use spec::{DeviceSpec, SpecError};
pub use steptime_launch::Indices;
pub use transfer::{Reference, Stages, Transfer, TransferredModels};

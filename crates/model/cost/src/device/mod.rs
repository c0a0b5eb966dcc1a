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
pub mod correction;
pub mod error;
pub mod estimate;
mod extrapolation;
pub mod families;
pub mod family;
pub mod fit;
pub mod learn;
pub mod observation;
pub mod paper;
pub mod price;
mod price_cache;
pub mod profile;
pub mod scale_by_name;
pub mod spec;
pub mod transfer;
mod transferred_profile;
mod unit_limits;
pub mod variant;

pub use context::{Context, Setting};
pub use error::Error;
pub use estimate::{Estimate, EstimateSum, ModelKind, Source};
pub use family::Family;
pub use fit::{FitError, FitOptions, MeasuredGpu, Search, fit, fit_across, fit_onto, without_host};
pub use observation::Observation;
pub use price::ModelChoice;
pub use price_cache::KnownPrices;
pub use profile::DeviceProfile;
pub use profile::error::{ContentsError, HeaderError, ModelsError};
pub use spec::{DeviceSpec, SpecError};
pub use steptime_launch::Indices;
pub use transfer::{Reference, Stages, Transfer, TransferredModels};

//! Kernel times for a device: launches of each op of a step, priced by a device profile.

mod beside;
pub(crate) mod catalog;
mod context;
mod elsewhere;
mod exchanges;
mod kept;
mod launch;
mod launches;
mod lookups;
mod lowered;
mod named;
mod price;
mod roofline;
mod score;
mod shape;
pub mod tables;

pub(crate) use beside::beside_collectives;
pub(crate) use catalog::nearest;
pub use catalog::{device, devices, is_named, own, shipped_for, transfer_source, transferred};
pub(crate) use elsewhere::MeasuredTimes;
pub(crate) use exchanges::{call as exchange_call, price_alone, price_new, times_alone};
pub use launch::{Knowledge, Launch};
pub use launches::Arguments;
pub use lookups::Lookups;
pub(crate) use lowered::lower_changed;
pub(crate) use price::with_estimates;
pub use price::{DevicePrices, ModelCoverage, PricedLaunches, UnpricedWork, price};
pub use roofline::{Bound, Roof};
pub use score::{FamilyScore, OpError, by, families};
pub(crate) use shape::{usual, whole};

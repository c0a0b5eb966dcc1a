//! Kernel times for a device: launches of each op of a step, priced by a device profile.

pub(crate) mod catalog;
mod collective_demand;
mod context;
mod exchanges;
mod kept_results;
mod kernel_names;
mod launch;
mod launches;
mod lookups;
mod lowering;
mod price;
mod roofline;
mod score;
mod shape;
pub mod tables;
mod transferred_times;

pub(crate) use catalog::nearest;
pub use catalog::{device, devices, is_named, own, shipped_for, transfer_source, transferred};
pub(crate) use collective_demand::beside_collectives;
pub(crate) use exchanges::{call as exchange_call, price_alone, price_new, times_alone};
pub use launch::{Knowledge, Launch};
pub use launches::Arguments;
pub use lookups::Lookups;
pub(crate) use lowering::lower_changed;
pub(crate) use price::with_estimates;
pub use price::{DevicePrices, ModelCoverage, PricedLaunches, UnpricedWork, price};
pub use roofline::{Bound, Roof};
pub use score::{FamilyScore, OpError, by, families};
pub(crate) use shape::{channels, usual, whole};
pub(crate) use transferred_times::MeasuredTimes;

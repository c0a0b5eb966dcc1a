//! Replays a priced training step in simulated time, and breaks its time down.
//!
//! ```text
//! PricedGraph ──Engine, step after step──> Timeline ──> Idle, critical::path, Slack, breakdown
//! ```
//!
//! The engine models host threads, streams, a launch queue, events, synchronisation, blocking copies, and kernels that share the
//! GPU ([`sharing`]). A [`world`] is many ranks, which meet in collectives. It is
//! deterministic: the same graph and costs give the same timeline, bit by bit. [`baseline`] has the published
//! method and the sum of kernels, for comparison.
#![forbid(unsafe_code)]

pub mod baseline;
pub mod breakdown;
mod cause;
pub mod critical;
mod delays;
mod device;
mod engine;
mod idle;
mod period;
mod replay;
pub mod sharing;
mod stream;
mod timeline;
pub mod world;

pub use cause::{ActivityCause, MarkCause};
pub use engine::Engine;
pub use idle::{Idle, IdleCause, Wait};
pub use replay::{Replay, replay_recorded};
pub use timeline::Timeline;
pub use world::{Hang, Meeting, Meetings, WorldTimeline};

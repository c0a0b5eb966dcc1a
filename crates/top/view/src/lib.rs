//! One page that shows a training step: the answer first, then its timeline, its graph, its kernels and its memory.
//!
//! ```text
//! Step, Query ──StepViews::build──> StepViews ──page──> HTML ──write to a file, or Server::run──> browser
//! ```
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples");
//! use steptime_view::{Mode, Subject, StepViews, page};
//!
//! let step = steptime_predict::open(format!("{examples}/dlrm_default_2048"))?;
//! let question = step.predict();
//! let viewed = StepViews::build(&Subject { step: &step, question: &question }, None)?;
//! let html = page(&viewed, Mode::File)?;
//! # assert!(html.starts_with("<!doctype html>") && viewed.slices() > 1000);
//! # Ok(())
//! # }
//! ```
//!
//! The page is one HTML file: script, style and data are in it, and it makes no request. Its script is built from `web/` and
//! committed (`web/dist/`). Tables are columns in one block of bytes, everything else is JSON.
#![forbid(unsafe_code)]

mod changes;
mod columns;
mod graph;
mod html;
mod levels;
mod memory;
mod page_data;
mod server;
mod timeline;

pub use html::{Devices, Mode, data, page};
pub use page_data::{StepViews, Subject, what_if};
pub use server::{Answers, ServeError, Server};

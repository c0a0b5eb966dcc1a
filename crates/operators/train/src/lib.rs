//! The parts of a training run around its steps: measures of an evaluation, checkpoints, schedules of the learning
//! rate, export to ONNX.
//!
//! ```
//! use steptime_train::checkpoint::{self, Entry, Options, State, Store};
//! use steptime_train::metrics::{Evaluation, Scores};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut evaluation = Evaluation::new(Scores::Logits);
//! evaluation.add(&[-2.0, 0.5, 1.5], &[0.0, 1.0, 0.0])?;
//! evaluation.add(&[3.0], &[1.0])?;
//! assert_eq!(evaluation.measures().auc, Some(0.75));
//!
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! let table = [0.5f32; 12];
//! let store = Store::open(folder, Options::default())?;
//! let state = State { step: 1000, ..State::default() };
//! store.write(&state, "name = \"dlrm\"", &[Entry::from_slice("table", &[4, 3], &table)?])?;
//!
//! let newest = checkpoint::newest(folder)?.expect("it was just written");
//! assert_eq!(newest.state().step, 1000);
//! assert_eq!(newest.read_rows::<f32>("table", 2..3)?, [0.5; 3]);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod checkpoint;
pub mod metrics;
pub mod onnx;
pub mod schedule;

//! Exchanges between the GPUs of one process, each of which writes the memory of the others.
//!
//! A rank is ready for an exchange when its operands are complete and the places of its results are free. It then copies rows to their places in the
//! memory of each rank that is ready, at any distance of rows, by the copy engines: no multiprocessor takes part, and no tensor is packed. A rank goes
//! on when all others have copied. Ready and done are numbers in the memory of the rank that waits, which streams write and wait for: no thread of the
//! host takes part.

mod group;
mod rows;
mod sum;

pub use group::{Address, Mailbox, Peers, Phase};
pub use rows::Rows;
pub use sum::Sum;

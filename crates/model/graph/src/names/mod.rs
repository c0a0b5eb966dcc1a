//! Names defined by vendors: of calls, of copies, and of PyTorch's own events.
//!
//! They are parsed only here; other code matches on the enums.

mod api;
pub(crate) mod collective;
mod copy;
mod event;

pub use api::{ApiKind, cuda};
pub use collective::{COLLECTIVE_NOTE, CollectiveKind, PROCESS_GROUP};
pub use copy::{CopyDirection, CopyName, HostMemory, MEMSET};
pub use event::mentions_backward;
pub use event::{ACCUMULATE_GRAD, EventName};

//! Host profiles: fitted on the examples, written, read and used.

mod fallbacks;
mod recordings;
mod slow_host;
mod text;

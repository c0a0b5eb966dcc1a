//! elementwise.

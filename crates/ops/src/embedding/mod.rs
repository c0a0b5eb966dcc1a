//! embedding.

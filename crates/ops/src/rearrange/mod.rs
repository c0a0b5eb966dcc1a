//! rearrange.

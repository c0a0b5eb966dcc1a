//! optimizer.

//! Device profiles from end to end, on synthetic times that behave like a GPU's.

mod file;
mod fitted;
mod lent;
mod onto;
mod synthetic;

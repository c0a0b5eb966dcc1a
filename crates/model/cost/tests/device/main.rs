//! Device profiles from end to end, on times that are made up but behave like a GPU's.

mod file;
mod fitted;
mod lent;
mod onto;
mod synthetic;

//! The execution graph of small recordings written here, and of the examples.

mod device;
mod examples;
mod others;
mod recording;
mod steps;
mod streams;
mod threads;

pub mod exact;
pub mod floats;

//! Names and versions of the two files of a profile.

/// Name of the readable file.
pub const HEADER: &str = "profile.toml";
/// Name of the file of models.
pub const MODELS: &str = "models.bin.zst";

/// Version of both files; raised whenever a field is added or changes its meaning, and with the meaning of features.
pub const VERSION: u32 = 3;
/// Oldest version that can be read: it has no stages, and is otherwise the same.
pub const OLDEST: u32 = 2;

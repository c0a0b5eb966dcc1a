//! The two files of a profile: their names, and the versions that are read.

/// The readable file.
pub const HEADER: &str = "profile.toml";
/// The models.
pub const MODELS: &str = "models.bin.zst";

/// Version of both files; raised whenever a field is added or changes its meaning, and with the meaning of features.
pub const VERSION: u32 = 3;
/// The oldest version that can be read: it has no stages, and is otherwise the same.
pub const OLDEST: u32 = 2;

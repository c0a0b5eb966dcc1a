//! Sizes of a public data set.

/// Number of categories of the 26 categorical columns of Criteo's Kaggle challenge.
pub const KAGGLE_CARDINALITIES: [u32; 26] = [
    1_460, 583, 10_131_227, 2_202_608, 305, 24, 12_517, 633, 3, 93_145, 5_683, 8_351_593, 3_194, 27, 14_992,
    5_461_306, 10, 5_652, 2_173, 4, 7_046_547, 18, 15, 286_181, 105, 142_572,
];

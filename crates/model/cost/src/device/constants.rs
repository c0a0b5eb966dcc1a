//! Measured constants of the formulas: a profile may have its own, and takes the defaults for the others.
//!
//! `profiles/constants.toml` has the defaults, with the meaning and source of each constant.

use std::sync::OnceLock;

use serde::{Deserialize, Deserializer, Serialize};
use steptime_launch::GatherRates;

/// Values for groups that a profile lacks.
const DEFAULTS: &str = include_str!("../../../../../profiles/constants.toml");

/// Declares a group: its source, and constants that are numbers.
macro_rules! groups {
    ($($(#[$doc:meta])* $group:ident { $($field:ident),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $group {
            pub source: String,
            $(pub $field: f64,)*
        }
    )*};
}

groups! {
    /// Blocks and loops that wait for memory.
    Memory { block_life_us, step_us, dram_step_us }
    /// Kernels that read rows several times.
    Rows {
        whole_cache, split_cache, norm_cache, softmax_block_cycles, softmax_cycles, softmax_rest_cycles, norm_block_cycles, norm_cycles, per_generation,
        sharpness,
    }
    /// Kernels that keep many bytes in flight.
    Streams { cache_gain, turns, least_access }
    /// Gathers in different orders.
    GatherPlan { under_way, output_room, writes_only, with_reads }
    /// Matrix products.
    Gemm { vector_fixed_us }
    /// Tiles of products of 16-bit numbers.
    Cuts {
        share_256x128, share_128x128, share_128x64, share_64x64, share_64x32, kernel_cycles, wave_cycles, store_bytes, step_cycles,
        reduce_us, cache_rate, sharpness, own, shared,
    }
    /// Tiles of several multiprocessors.
    Clusters { share }
    /// Fused attention.
    Attention { fixed_us }
    /// Batch norm.
    BatchNorm { forward_rate, backward_rate }
    /// Pooling.
    Pool { atomic_blend }
    /// Sorts and running sums.
    Sort { column_step_us, row_us, pass_us }
    /// Rows put by index.
    Scatter { atomics_per_cycle, same_address_per_us, few_us, segments_us, hot_step_us, hot_few_us, hot_single_us, repeated_us, merge_block_us, merge_us, coalesce_step_us, coalesce_dram_step_us }
    /// PyTorch's embedding bags.
    EmbeddingBag { segments_us }
    /// Forward pass of steptime's bags.
    FusedBags { near_cache, begin_us, float_find, float_value, quantized_find, quantized_value }
    /// Backward pass of steptime's bags.
    FusedBackward {
        gradient_share, count_indices_us, count_pairs_us, move_pairs_us, scan_us, scan_tiles_us, partition_us, bucket_us,
        one_block_us, small_digit_us, large_digit_us, trip_us, row_state_us, column_state_us, small_us, chunk_trip_us,
        run_trip_us,
    }
    /// Kernels of collectives.
    Collectives { blocks, exchange_blocks, threads, registers, shared_bytes }
    /// Steptime's interaction.
    Interaction {
        shared_bytes, shared_rate, alone, forward_begin, forward_quad, forward_round, backward_begin, backward_vector,
        backward_vector_round, backward_feature, backward_round,
    }
}

/// Constants of matrix-product tiles on one kind of unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tiles {
    pub source: String,
    pub shares: [f64; 8],
    pub fixed_us: f64,
    pub step_us: f64,
    pub step: f64,
    pub together: f64,
    pub reduce_us: f64,
    pub feed: f64,
    pub per_cycle: f64,
}

/// Constants of all formulas, in groups.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constants {
    pub memory: Memory,
    pub rows: Rows,
    pub streams: Streams,
    pub gather_plan: GatherPlan,
    pub gemm: Gemm,
    pub cuts_ampere: Cuts,
    pub cuts_blackwell: Cuts,
    pub clusters: Clusters,
    pub tiles_vector: Tiles,
    pub tiles_tensor_wide: Tiles,
    pub tiles_tensor_narrow: Tiles,
    pub attention: Attention,
    pub batch_norm: BatchNorm,
    pub pool: Pool,
    pub sort: Sort,
    pub scatter: Scatter,
    pub embedding_bag: EmbeddingBag,
    pub fused_bags: FusedBags,
    pub fused_backward: FusedBackward,
    pub collectives: Collectives,
    pub interaction: Interaction,
}

impl Constants {
    /// Constants of a chip whose cycle is `factor` times as long: waits inside a multiprocessor are counted in cycles.
    #[must_use]
    pub fn slower(mut self, factor: f64) -> Constants {
        let Constants {
            memory, gemm, attention, tiles_vector, tiles_tensor_wide, tiles_tensor_narrow, ..
        } = &mut self;
        let mut waits = vec![
            &mut memory.block_life_us,
            &mut memory.step_us,
            &mut gemm.vector_fixed_us,
            &mut attention.fixed_us,
        ];
        for tiles in [tiles_vector, tiles_tensor_wide, tiles_tensor_narrow] {
            waits.extend([&mut tiles.fixed_us, &mut tiles.step_us, &mut tiles.reduce_us]);
        }
        waits.into_iter().for_each(|us| *us *= factor);
        self
    }
}

impl Default for Constants {
    fn default() -> Constants {
        static DEFAULT: OnceLock<Constants> = OnceLock::new();
        let parsed = || toml::from_str(DEFAULTS).expect("the defaults that are compiled in are whole");
        DEFAULT.get_or_init(parsed).clone()
    }
}

impl Constants {
    /// Whether all constants are defaults, so that a profile need not write them.
    pub(super) fn are_default(&self) -> bool {
        *self == Constants::default()
    }

    /// Reads the groups that a profile has, and takes the defaults for the others.
    pub(super) fn over_defaults<'de, D: Deserializer<'de>>(from: D) -> Result<Constants, D::Error> {
        use serde::de::Error;
        let given = toml::Table::deserialize(from)?;
        let mut all = toml::Table::try_from(Constants::default()).map_err(D::Error::custom)?;
        all.extend(given);
        all.try_into().map_err(|error: toml::de::Error| D::Error::custom(error.message()))
    }

    /// First constant that is not a positive number, with its value.
    pub(super) fn wrong(&self) -> Option<(String, f64)> {
        let groups = toml::Table::try_from(self).unwrap_or_default();
        let numbers = groups.iter().flat_map(|(group, constants)| {
            let named = constants.as_table().into_iter().flatten();
            named.flat_map(move |(name, value)| {
                let one = value.as_float().into_iter();
                let many = value.as_array().into_iter().flatten().filter_map(toml::Value::as_float);
                one.chain(many).map(move |number| (format!("{group}.{name}"), number))
            })
        });
        numbers.into_iter().find(|(_, number)| !(*number > 0.0 && number.is_finite()))
    }
}

impl From<&GatherPlan> for GatherRates {
    fn from(plan: &GatherPlan) -> GatherRates {
        let &GatherPlan { under_way, output_room, writes_only, with_reads, .. } = plan;
        GatherRates { under_way, output_room, writes_only, with_reads }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize, Serialize)]
    struct Profile {
        #[serde(
            default,
            deserialize_with = "Constants::over_defaults",
            skip_serializing_if = "Constants::are_default"
        )]
        constants: Constants,
    }

    #[test]
    fn a_profile_has_its_own_groups_and_the_defaults_for_the_others() {
        let none: Profile = toml::from_str("").unwrap();
        assert!(none.constants.are_default() && none.constants.wrong().is_none());
        assert_eq!(toml::to_string(&none).unwrap(), "");
        let own: Profile =
            toml::from_str("[constants.pool]\nsource = \"measured\"\natomic_blend = 90.5\n").unwrap();
        assert_eq!(own.constants.pool.atomic_blend, 90.5);
        assert_eq!(own.constants.sort, Constants::default().sort);
        let again: Profile = toml::from_str(&toml::to_string(&own).unwrap()).unwrap();
        assert_eq!(again.constants, own.constants);
    }

    #[test]
    fn what_is_no_constant_is_refused() {
        let error = |text: &str| toml::from_str::<Profile>(text).unwrap_err().to_string();
        assert!(error("[constants.pools]\n").contains("pools"));
        assert!(error("[constants.pool]\nsource = \"half\"\n").contains("atomic_blend"));
        let mut wrong = Constants::default();
        wrong.tiles_vector.shares[3] = -1.0;
        assert_eq!(wrong.wrong(), Some(("tiles_vector.shares".to_owned(), -1.0)));
        wrong.tiles_vector.shares[3] = f64::NAN;
        assert!(wrong.wrong().is_some());
    }
}

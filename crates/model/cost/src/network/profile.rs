//! Curves of collectives by GPU, as data.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;
use steptime_graph::CollectiveKind;

/// File of fitted curves.
const FITTED: &str = include_str!("../../../../../profiles/collectives.toml");

/// A node of GPUs, and its connection to others.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    /// Name of the GPU.
    pub name: String,
    /// Link between the GPUs of a node.
    pub link: String,
    /// Rate of a GPU's link in one direction, by specification, GB/s.
    pub link_gbs: f64,
    /// Rate of the network per GPU in one direction, by specification, GB/s.
    pub network_gbs: f64,
    /// Number of GPUs per node.
    pub gpus: u32,
    /// Whether the curves are those of another GPU.
    pub borrowed: bool,
    curves: BTreeMap<(CollectiveKind, u32), Curve>,
}

/// Duration of an operation by the bytes over each link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Curve {
    pub alpha_us: f64,
    /// Time per square root of a KiB, µs.
    pub root_us: f64,
    pub gbs: f64,
    pub half_width: f64,
}

/// Reason why there are no curves.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// The GPU is unknown.
    #[error("unknown links and network of GPU `{name}`; known GPUs: {}", known.join(", "))]
    Unknown {
        /// Name as given.
        name: String,
        /// Known names.
        known: Vec<String>,
    },
}

/// Ratio of a collective's time in a training step to that in nccl-tests, and the half-width of 90 % of that
/// (logarithm): medians of 55 collectives in eleven recorded jobs on 2 and 4 H200s. Once the last rank has arrived an exchange is
/// faster than all at once, because part of the data is on its way; sums are slower, because kernels of the backward pass run at the same time.
pub(super) fn in_step(kind: CollectiveKind) -> [f64; 2] {
    match kind {
        CollectiveKind::AllToAll => [0.74, 0.15],
        CollectiveKind::Broadcast => [0.6, 0.3],
        CollectiveKind::AllReduce => [1.1, 0.35],
        _ => [1.0, 0.35],
    }
}

/// Part of the file about one GPU.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    link: String,
    link_gbs: f64,
    network_gbs: f64,
    gpus: u32,
    #[serde(default)]
    like: Option<String>,
    #[serde(default)]
    curves: Vec<(String, u32, f64, f64, f64, f64)>,
}

fn file() -> &'static BTreeMap<String, Row> {
    static FILE: OnceLock<BTreeMap<String, Row>> = OnceLock::new();
    // A test reads it: the compiled-in file is well-formed.
    FILE.get_or_init(|| toml::from_str(FITTED).unwrap_or_default())
}

/// Returns the GPUs that have curves.
#[must_use]
pub fn systems() -> Vec<&'static str> {
    file().keys().map(String::as_str).collect()
}

impl Topology {
    /// Returns the usual node of a GPU: by the name of its profile, or of its driver (`NVIDIA H200`).
    ///
    /// # Errors
    /// If the GPU is unknown.
    pub fn find(name: &str) -> Result<Topology, NetworkError> {
        let wanted: String = name.to_ascii_lowercase().replace([' ', '_'], "-");
        let fits = |known: &&String| {
            wanted == known.as_str()
                || wanted.split('-').any(|part| part == known.as_str())
                || wanted.contains(known.as_str())
        };
        // The longest name wins: `b200` is part of `gb200`.
        let found = file().keys().filter(fits).max_by_key(|known| known.len());
        let unknown = || NetworkError::Unknown {
            name: name.into(),
            known: systems().into_iter().map(str::to_owned).collect(),
        };
        let known = found.ok_or_else(unknown)?;
        let row = &file()[known];
        let from = row.like.as_ref().and_then(|like| file().get(like));
        let times = from.map_or(1.0, |from| row.link_gbs / from.link_gbs);
        let curve = |(op, ranks, alpha_us, root_us, gbs, half_width): &(String, u32, f64, f64, f64, f64)| {
            let kind = CollectiveKind::from_operation(op);
            let curve = Curve {
                alpha_us: *alpha_us,
                root_us: root_us / times.sqrt(),
                gbs: gbs * times,
                half_width: *half_width,
            };
            ((kind, *ranks), curve)
        };
        Ok(Topology {
            name: known.clone(),
            link: row.link.clone(),
            link_gbs: row.link_gbs,
            network_gbs: row.network_gbs,
            gpus: row.gpus,
            borrowed: from.is_some(),
            curves: from.unwrap_or(row).curves.iter().map(curve).collect(),
        })
    }

    /// Returns the same GPUs in nodes of `gpus`.
    #[must_use]
    pub fn in_nodes_of(self, gpus: u32) -> Topology {
        Topology { gpus: gpus.max(1), ..self }
    }

    /// Returns the curve of an operation among `ranks` ranks of a node, and whether it is extended beyond the fitted ranks.
    pub(super) fn curve(&self, op: CollectiveKind, ranks: u32) -> (Curve, bool) {
        let of = |at: u32| self.curves.get(&(op, at)).copied();
        if let Some(curve) = of(ranks) {
            return (curve, false);
        }
        let known: Vec<u32> = self.curves.keys().filter(|key| key.0 == op).map(|key| key.1).collect();
        let below = known.iter().copied().filter(|&at| at < ranks).max();
        let above = known.iter().copied().filter(|&at| at > ranks).min();
        match (below.and_then(of).zip(below), above.and_then(of).zip(above)) {
            (Some((low, from)), Some((high, to))) => {
                let share = f64::from(ranks - from) / f64::from(to - from);
                (low.towards(&high, share), false)
            }
            (Some((last, from)), None) => {
                // The round trip grows with each rank as it did between the last two.
                let before = known.iter().copied().filter(|&at| at < from).max();
                let each =
                    before.and_then(|at| Some((last.alpha_us - of(at)?.alpha_us) / f64::from(from - at)));
                let more = each.unwrap_or(0.0).max(0.0) * f64::from(ranks - from);
                (Curve { alpha_us: last.alpha_us + more, ..last }, true)
            }
            (None, Some((first, _))) => (first, true),
            // An operation without a table, such as on a GPU with all-reduce alone: half of an all-reduce's latency.
            (None, None) if op != CollectiveKind::AllReduce => {
                let (sum, _) = self.curve(CollectiveKind::AllReduce, ranks);
                (Curve { alpha_us: 0.6 * sum.alpha_us, ..sum }, true)
            }
            (None, None) => {
                (Curve { alpha_us: 10.0, root_us: 0.0, gbs: 0.7 * self.link_gbs, half_width: 0.5 }, true)
            }
        }
    }
}

impl Curve {
    fn towards(self, other: &Curve, share: f64) -> Curve {
        let mix = |a: f64, b: f64| a + share * (b - a);
        Curve {
            alpha_us: mix(self.alpha_us, other.alpha_us),
            root_us: mix(self.root_us, other.root_us),
            gbs: mix(self.gbs, other.gbs),
            half_width: self.half_width.max(other.half_width),
        }
    }
}

#[cfg(test)]
mod tests {
    use steptime_trace::Bytes;

    use super::super::CollectiveCall;
    use super::*;

    fn us(name: &str, kind: CollectiveKind, ranks: u32, bytes: u64) -> f64 {
        let topology = Topology::find(name).expect("known");
        topology.price(&CollectiveCall { kind, ranks, bytes: Bytes(bytes) }).time.as_micros()
    }

    #[test]
    fn the_file_is_well_formed() {
        let rows: BTreeMap<String, Row> = toml::from_str(FITTED).expect("well-formed");
        assert!(rows.len() >= 10);
        for (name, row) in &rows {
            let from = row.like.as_ref().map_or(row, |like| &rows[like]);
            assert!(!from.curves.is_empty() && row.link_gbs > 0.0 && row.gpus > 1, "{name}");
            for (op, ranks, alpha, root, gbs, width) in &from.curves {
                assert_ne!(CollectiveKind::from_operation(op), CollectiveKind::Other, "{name} {op}");
                assert!(
                    *ranks > 1 && *alpha >= 0.0 && *root >= 0.0 && *gbs > 0.0 && *width > 0.0,
                    "{name} {op}"
                );
            }
        }
    }

    #[test]
    fn names_are_those_of_profiles_and_of_drivers() {
        for (name, known) in [
            ("h200", "h200"),
            ("NVIDIA H200", "h200"),
            ("NVIDIA GB200", "gb200"),
            ("NVIDIA A100-SXM4-80GB", "a100"),
            ("NVIDIA H100 PCIe", "h100-pcie"),
        ] {
            assert_eq!(Topology::find(name).expect("known").name, known);
        }
        let error = Topology::find("abacus").expect_err("unknown");
        assert!(error.to_string().contains("h200"), "{error}");
    }

    #[test]
    fn times_are_near_published_ones() {
        // nccl-tests on 8 H100: 512 MiB at 445 GB/s of bus bandwidth; on 8 A100 at 222.
        let half_gib = 1u64 << 29;
        for (name, gbs) in [("h100", 445.0), ("a100", 222.0)] {
            let measured = 1.75 * half_gib as f64 / gbs / 1e3;
            let error = us(name, CollectiveKind::AllReduce, 8, half_gib) / measured - 1.0;
            assert!(error.abs() < 0.06, "{name}: {error}");
        }
        // Rings over 4, 8 and 128 nodes of H100 reach 366, 321 and 367 GB/s.
        for (ranks, gbs) in [(32u32, 366.0), (64, 321.0), (1024, 367.0)] {
            let bytes = 8u64 << 30;
            let moved = 2.0 * f64::from(ranks - 1) / f64::from(ranks) * bytes as f64;
            let error = us("h100", CollectiveKind::AllReduce, ranks, bytes) / (moved / gbs / 1e3) - 1.0;
            assert!(error.abs() < 0.2, "{ranks} ranks: {error}");
        }
    }

    #[test]
    fn more_bytes_and_more_ranks_never_take_less() {
        for name in systems() {
            for kind in [
                CollectiveKind::AllReduce,
                CollectiveKind::AllGather,
                CollectiveKind::AllToAll,
                CollectiveKind::Broadcast,
            ] {
                let mut before = 0.0;
                for bits in 0..36 {
                    let time = us(name, kind, 8, 1 << bits);
                    assert!(time >= before && time.is_finite(), "{name} {}", kind.name());
                    before = time;
                }
                assert!(us(name, kind, 64, 1 << 20) >= us(name, kind, 8, 1 << 20), "{name} {}", kind.name());
            }
            assert_eq!(us(name, CollectiveKind::AllReduce, 1, 1 << 30), 0.0);
        }
    }
}

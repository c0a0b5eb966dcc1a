//! Costs of a plan's tables by TorchRec's planner.
//!
//! Its formulas, for comparison: `EmbeddingPerfEstimator` of `torchrec/distributed/planner/shard_estimators.py`, with constants of
//! `constants.py`, pytorch/torchrec at a48cef79 (2025-10): bytes over a bandwidth, forward and backward, of each shard. The cost of a rank is the
//! sum over its shards (`perf_models.py`), and the cost of a plan is that of its busiest rank. There are no latencies and no dense layers, nothing
//! overlaps,
//! and a row is read from memory for each lookup. Constants are the defaults, which are those of a V100; the planner lets users of other GPUs
//! set them.

use steptime_eager::{Model, Sharding, TableLayout, TableShard, TableSize};

/// Bytes per millisecond of 1 GB/s, as these constants count.
const GB: f64 = 1024.0 * 1024.0 * 1024.0 / 1000.0;
/// Bandwidth of device memory.
const HBM: f64 = 897.0 * GB;
/// Bandwidth between GPUs of a node.
const INTRA_NODE: f64 = 600.0 * GB;
/// Bandwidth between nodes, per GPU.
const CROSS_NODE: f64 = 12.5 * GB;
/// Bytes of an index.
const INDEX: f64 = 8.0;
/// Bytes of an element.
const ELEMENT: f64 = 4.0;
/// Narrowest row with a speed of its own; narrower rows take the same time.
const NARROWEST: i64 = 32;
/// Row width below which only a part of a block is used.
const FULL_BLOCK: i64 = 128;
/// Penalty from half of that width on.
const HALF_PENALTY: f64 = 1.15;
/// Penalty below half of that width.
const QUARTER_PENALTY: f64 = 1.75;
/// Time of the backward pass with its optimizer, as a multiple of the forward pass.
const BACKWARD: f64 = 2.0;
/// Cost of copying the gradients of split rows, in passes over them.
const BATCHED_COPY: f64 = 2.455;
/// Cost of the optimizer of a copied table, in passes over the table.
const ELEMENTWISE: f64 = 9.22;

/// Cost of a rank's tables, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TorchRecCost {
    /// Lookups.
    pub forward: f64,
    /// Exchange of sums.
    pub forward_moves: f64,
    /// Updates.
    pub backward: f64,
    /// Exchange of gradients.
    pub backward_moves: f64,
}

impl TorchRecCost {
    /// Sum of all parts, without overlap.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.forward + self.forward_moves + self.backward + self.backward_moves
    }

    fn add(&mut self, other: TorchRecCost) {
        self.forward += other.forward;
        self.forward_moves += other.forward_moves;
        self.backward += other.backward;
        self.backward_moves += other.backward_moves;
    }
}

/// Costs of each rank of a model's job by TorchRec's planner.
#[must_use]
pub fn planned(model: &Model) -> Vec<TorchRecCost> {
    let gpus = model.gpus();
    let job = Job {
        ranks: f64::from(gpus),
        node: f64::from(model.nodes().map_or(gpus, |nodes| gpus / nodes.max(1)).max(1)),
        samples: (model.batch() / u64::from(gpus.max(1))) as f64,
    };
    let mut ranks = vec![TorchRecCost::default(); gpus as usize];
    for (size, home) in model.tables().iter().zip(model.homes()) {
        match &home {
            TableLayout::Everywhere => ranks.iter_mut().for_each(|rank| rank.add(job.copy(size))),
            TableLayout::Parts(parts) => {
                for part in parts {
                    ranks[part.gpu as usize].add(match home.cutting(gpus) {
                        Sharding::Rows => job.rows(size, part),
                        Sharding::Grid => job.grid(size, part),
                        _ => job.columns(size, part),
                    });
                }
            }
        }
    }
    ranks
}

/// Cost of a plan: that of its busiest rank, in milliseconds.
#[must_use]
pub fn cost(ranks: &[TorchRecCost]) -> f64 {
    ranks.iter().map(TorchRecCost::total).fold(0.0, f64::max)
}

/// A job's ranks.
struct Job {
    ranks: f64,
    /// Ranks of a node.
    node: f64,
    /// Samples per rank.
    samples: f64,
}

impl Job {
    /// Lookups of all ranks' samples in a table.
    fn lookups(&self, size: &TableSize) -> f64 {
        self.samples * self.ranks * size.lookups as f64
    }

    /// Bandwidth among all ranks.
    fn among_all(&self) -> f64 {
        if self.ranks <= self.node { INTRA_NODE } else { CROSS_NODE }
    }

    /// Cost of a whole table, or some of its columns.
    fn columns(&self, size: &TableSize, part: &TableShard) -> TorchRecCost {
        let columns = part.size[1];
        let lookups = self.lookups(size);
        let read = (lookups * INDEX).ceil() + lookups * columns.max(NARROWEST) as f64 * ELEMENT;
        let sums = self.samples * self.ranks * columns as f64 * ELEMENT;
        let penalty = match columns {
            FULL_BLOCK.. => 1.0,
            64.. => HALF_PENALTY,
            _ => QUARTER_PENALTY,
        };
        let forward = (read + sums) * penalty / HBM;
        let moves = sums / self.among_all();
        TorchRecCost { forward, forward_moves: moves, backward: forward * BACKWARD, backward_moves: moves }
    }

    /// Cost of a part of the rows, split over all ranks.
    fn rows(&self, size: &TableSize, part: &TableShard) -> TorchRecCost {
        let moves = self.sums(part) / self.among_all();
        self.cut(size, part, self.ranks, [moves; 2])
    }

    /// Cost of a part of the rows, split over all ranks of a node: sums are added within the node, then sent to the others.
    fn grid(&self, size: &TableSize, part: &TableShard) -> TorchRecCost {
        let nodes = self.ranks / self.node;
        let between =
            if nodes > 1.0 { self.samples * nodes * part.size[1] as f64 * ELEMENT / CROSS_NODE } else { 0.0 };
        let moves = self.sums(part) / INTRA_NODE + between;
        self.cut(size, part, self.node, [moves; 2])
    }

    /// Bytes of a part's sums for all samples.
    fn sums(&self, part: &TableShard) -> f64 {
        self.samples * self.ranks * part.size[1] as f64 * ELEMENT
    }

    fn cut(&self, size: &TableSize, part: &TableShard, over: f64, [there, back]: [f64; 2]) -> TorchRecCost {
        let lookups = self.lookups(size) / over;
        let sums = self.sums(part);
        let forward = ((lookups * INDEX).ceil() + lookups * part.size[1] as f64 * ELEMENT + sums) / HBM;
        TorchRecCost {
            forward,
            forward_moves: there,
            backward: forward * BACKWARD,
            backward_moves: back + sums * BATCHED_COPY / HBM,
        }
    }

    /// Cost of a table copied to every rank: its gradients are averaged, and kernels without the optimizer have half the bandwidth.
    fn copy(&self, size: &TableSize) -> TorchRecCost {
        let hbm = 0.5 * HBM;
        let columns = size.columns as f64;
        let lookups = self.samples * size.lookups as f64;
        let forward =
            ((lookups * INDEX).ceil() + lookups * columns * ELEMENT + self.samples * columns * ELEMENT) / hbm;
        let table = size.rows as f64 * columns * ELEMENT;
        let nodes = (self.ranks / self.node).min(2.0);
        let twice = if self.ranks > 2.0 * self.node { 2.0 } else { 1.0 };
        let averaged = twice * table * (2.0 * nodes - 1.0) / nodes / (CROSS_NODE * self.node);
        let updated = table * ELEMENTWISE / hbm;
        TorchRecCost {
            forward,
            forward_moves: 0.0,
            backward: forward * BACKWARD,
            backward_moves: averaged + updated,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(parallel: &str) -> Model {
        let text = format!(
            "model = \"dlrm\"\nbatch = 1024\ndense = 13\nbottom_mlp = [64]\ntop_mlp = [1]\ntables = [{{ rows = 1000, columns = 64, lookups = 10 \
             }}]\n[parallel]\n{parallel}"
        );
        Model::parse(&text).expect("a model")
    }

    fn is(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-12, "{found} {expected}");
    }

    #[test]
    fn a_whole_table_costs_what_the_formulas_say() {
        let all = planned(&model("gpus = 4"));
        // 10,240 lookups of 8 bytes and 64 floats, sums of 1,024 samples, a block half in use.
        let bytes = 10_240.0 * 8.0 + 10_240.0 * 256.0 + 1024.0 * 256.0;
        let forward = bytes * 1.15 / (897.0 * GB);
        let moves = 1024.0 * 256.0 / (600.0 * GB);
        is(all[0].total(), 3.0 * forward + 2.0 * moves);
        is(cost(&all), all[0].total());
        assert_eq!(all[1..], [TorchRecCost::default(); 3]);
        // Over nodes, data uses their network.
        is(planned(&model("gpus = 4\nnodes = 2"))[0].forward_moves, moves * 600.0 / 12.5);
    }

    #[test]
    fn narrow_columns_are_read_as_wide_ones_and_penalized() {
        let all = planned(&model("gpus = 4\nplacement = [[0], [0], [0], [0]]"));
        let bytes = 10_240.0 * 8.0 + 10_240.0 * 128.0 + 1024.0 * 64.0;
        is(all[3].forward, bytes * 1.75 / (897.0 * GB));
    }

    #[test]
    fn cut_rows_and_copies_cost_what_the_formulas_say() {
        let rows = planned(&model("gpus = 4\nrow_wise = [0]"))[2];
        let sums = 1024.0 * 256.0;
        is(rows.forward, (2560.0 * 8.0 + 2560.0 * 256.0 + sums) / (897.0 * GB));
        is(rows.backward_moves, sums / (600.0 * GB) + 2.455 * sums / (897.0 * GB));
        let grid = planned(&model("gpus = 4\nnodes = 2\ngrid = [{ table = 0, gpus = [[2, 3]] }]"));
        assert_eq!(grid[..2], [TorchRecCost::default(); 2]);
        is(grid[2].forward_moves, sums / (600.0 * GB) + 256.0 * 2.0 * 256.0 / (12.5 * GB));
        is(grid[2].forward, (5120.0 * 8.0 + 5120.0 * 256.0 + sums) / (897.0 * GB));
        let copies = planned(&model("gpus = 4\ndata_parallel = [0]"))[0];
        let table = 256_000.0;
        is(copies.forward, (2560.0 * 8.0 + 2560.0 * 256.0 + 256.0 * 256.0) / (448.5 * GB));
        is(copies.backward_moves, table / (50.0 * GB) + 9.22 * table / (448.5 * GB));
    }
}

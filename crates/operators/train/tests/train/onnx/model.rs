//! A recommender with the parts of all shipped models: DLRM's interaction, DCN-v2's cross layer, a factorisation
//! machine, two normalised towers.

use std::path::Path;

use half::bf16;
use steptime_tensor::DType;
use steptime_train::checkpoint::{Checkpoint, Entry, Options, State, Store};
use steptime_train::onnx::{Dim, OnnxError, OnnxGraph, Value};

pub const DENSE: usize = 4;
pub const COLUMNS: usize = 8;
/// Rows and lookups of each table: external, small enough to be stored in the model, external.
pub const TABLES: [(usize, usize); 3] = [(50, 1), (7, 3), (1000, 5)];
pub const FEATURES: usize = TABLES.len() + 1;
pub const PAIRS: usize = FEATURES * (FEATURES - 1) / 2;
pub const JOINED: usize = COLUMNS + PAIRS;
pub const HIDDEN: usize = 6;

/// Name of a table's input, lookups a sample, indices.
pub type Indices = (String, usize, Vec<i64>);

/// Weights by name, with their shapes.
pub struct Recommender {
    pub weights: Vec<(String, Vec<u64>, Vec<f32>)>,
    /// A table in half the bits.
    pub half: Vec<bf16>,
}

fn uniform(seed: u64) -> impl FnMut() -> f32 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }
}

impl Recommender {
    pub fn new() -> Self {
        let mut next = uniform(5);
        let mut weights = Vec::new();
        let mut add = |name: String, shape: &[usize]| {
            let numbers = (0..shape.iter().product()).map(|_| next()).collect();
            weights.push((name, shape.iter().map(|&size| size as u64).collect(), numbers));
        };
        for (table, (rows, _)) in TABLES.into_iter().enumerate() {
            add(format!("embeddings.{table}.weight"), &[rows, COLUMNS]);
        }
        for (layer, shape) in [
            ("bottom", [COLUMNS, DENSE]),
            ("hidden", [HIDDEN, JOINED]),
            ("top", [1, HIDDEN]),
            ("cross", [JOINED, JOINED]),
        ] {
            add(format!("{layer}.weight"), &shape);
            add(format!("{layer}.bias"), &shape[..1]);
        }
        let half = (0..TABLES[0].0 * COLUMNS).map(|_| bf16::from_f32(next())).collect();
        Recommender { weights, half }
    }

    pub fn weight(&self, name: &str) -> &[f32] {
        &self.weights.iter().find(|weight| weight.0 == name).unwrap().2
    }

    /// Writes all weights, in shards so small that the largest table is cut.
    pub fn checkpoint(&self, folder: &Path) -> Checkpoint {
        let mut entries: Vec<Entry<'_>> = self
            .weights
            .iter()
            .map(|(name, shape, numbers)| Entry::from_slice(name, shape, numbers).unwrap())
            .collect();
        let shape = [TABLES[0].0 as u64, COLUMNS as u64];
        entries.push(Entry::from_slice("half.weight", &shape, &self.half).unwrap());
        let options = Options { shard_bytes: 10_000, ..Options::default() };
        let store = Store::open(folder.join("checkpoints"), options).unwrap();
        let path = store.write(&State::default(), "name = \"recommender\"\n", &entries).unwrap().path;
        Checkpoint::open(&path).unwrap()
    }

    /// Dense values; and for each table a name, the lookups a sample and the indices.
    pub fn inputs(&self, batch: usize) -> (Vec<f32>, Vec<Indices>) {
        let mut next = uniform(9);
        let dense = (0..batch * DENSE).map(|_| next()).collect();
        let indices = TABLES.into_iter().enumerate().map(|(table, (rows, lookups))| {
            let mut index = || ((next() + 1.0) / 2.0 * rows as f32) as i64 % rows as i64;
            (format!("indices_{table}"), lookups, (0..batch * lookups).map(|_| index()).collect())
        });
        (dense, indices.collect())
    }
}

/// Adds all ops.
pub fn build<'a>(graph: &mut OnnxGraph<'a>, checkpoint: &'a Checkpoint) -> Result<(), OnnxError> {
    let weight = |graph: &mut OnnxGraph<'a>, name: &str| graph.weight(checkpoint.entry(name).unwrap());
    let layer = |graph: &mut OnnxGraph<'a>, name: &str, x: Value| {
        let (w, b) = (weight(graph, &format!("{name}.weight"))?, weight(graph, &format!("{name}.bias"))?);
        graph.linear(x, w, Some(b))
    };
    let batch = Dim::batch;
    let columns = COLUMNS as u64;
    let dense = graph.input("dense", DType::F32, &[batch(), Dim::from(DENSE as u64)])?;
    let bottom = layer(graph, "bottom", dense)?;
    let bottom = graph.relu(bottom)?;
    let mut features = vec![bottom];
    let mut first = None;
    for (table, (_, lookups)) in TABLES.into_iter().enumerate() {
        let shape = [batch(), Dim::from(lookups as u64)];
        let indices = graph.input(&format!("indices_{table}"), DType::I64, &shape)?;
        first.get_or_insert(indices);
        let rows = weight(graph, &format!("embeddings.{table}.weight"))?;
        features.push(graph.embedding_bag(rows, indices)?);
    }
    let row = [batch(), Dim::from(1), Dim::from(columns)];
    let rows = features.iter().map(|&feature| graph.reshape(feature, &row)).collect::<Result<Vec<_>, _>>()?;
    let stacked = graph.concat(&rows, 1)?;

    let pairs = graph.pairwise_dots(stacked)?;
    let joined = graph.concat(&[bottom, pairs], 1)?;
    let hidden = layer(graph, "hidden", joined)?;
    let hidden = graph.relu(hidden)?;
    let logit = layer(graph, "top", hidden)?;
    let probability = graph.sigmoid(logit)?;
    let probability = graph.reshape(probability, &[batch()])?;
    graph.output("probability", probability)?;

    let crossed = layer(graph, "cross", joined)?;
    let crossed = graph.mul(joined, crossed)?;
    let crossed = graph.add(crossed, joined)?;
    graph.output("cross", crossed)?;

    let sum = graph.reduce_sum(stacked, &[1], false)?;
    let square_of_sum = graph.mul(sum, sum)?;
    let squares = graph.mul(stacked, stacked)?;
    let sum_of_squares = graph.reduce_sum(squares, &[1], false)?;
    let difference = graph.sub(square_of_sum, sum_of_squares)?;
    let machine = graph.reduce_sum(difference, &[1], true)?;
    let half = graph.constant("half", &[], &[0.5f32])?;
    let machine = graph.mul(machine, half)?;
    graph.output("machine", machine)?;

    let (user, item) = (graph.normalise(features[1], 1e-12)?, graph.normalise(features[3], 1e-12)?);
    let similarity = graph.mul(user, item)?;
    let similarity = graph.reduce_sum(similarity, &[1], false)?;
    graph.output("similarity", similarity)?;

    let part = graph.slice(stacked, 2, 2, 5)?;
    let part = graph.transpose(part, &[2, 0, 1])?;
    graph.output("part", part)?;

    let half = weight(graph, "half.weight")?;
    let rows = graph.gather(half, first.unwrap(), 0)?;
    let rows = graph.cast(rows, DType::F32)?;
    graph.output("half", rows)?;
    graph.output("again", rows)?;
    graph.output("same_dense", dense)
}

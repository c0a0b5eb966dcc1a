//! Checkpoints of a small model whose numbers depend on the step.

use half::bf16;
use steptime_train::checkpoint::{Checkpoint, Entry, State};
use steptime_train::schedule::{Decay, Schedule, Warmup};

pub const MODEL: &str = "name = \"small\"\n# a comment, \"quotes\", 'others' and a \\\ntables = [\n]\n";

/// Tensors of a step: a table that is cut, dense layers, an optimizer's states.
pub struct Sample {
    pub table: Vec<f32>,
    pub weight: Vec<f32>,
    pub half: Vec<bf16>,
    pub counts: Vec<i64>,
    pub step: Vec<i64>,
}

pub const ROWS: u64 = 3000;
pub const COLUMNS: u64 = 12;

impl Sample {
    /// Any bits, NaN with payloads too, which must survive.
    pub fn new(step: u64) -> Self {
        let mut state = step.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut bits = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 32
        };
        Sample {
            table: (0..ROWS * COLUMNS).map(|_| f32::from_bits(bits() as u32)).collect(),
            weight: (0..35).map(|_| f32::from_bits(bits() as u32)).collect(),
            half: (0..77).map(|_| bf16::from_bits(bits() as u16)).collect(),
            counts: (0..ROWS).map(|_| (bits() << 32 | bits()) as i64).collect(),
            step: vec![step as i64],
        }
    }

    pub fn entries(&self) -> Vec<Entry<'_>> {
        vec![
            Entry::from_slice("embeddings.0.weight", &[ROWS, COLUMNS], &self.table).unwrap(),
            Entry::from_slice("bottom.0.weight", &[5, 7], &self.weight).unwrap(),
            Entry::from_slice("bottom.0.master", &[77, 1], &self.half).unwrap(),
            Entry::from_slice("embeddings.0.counts", &[ROWS], &self.counts).unwrap(),
            Entry::from_slice("step", &[], &self.step).unwrap(),
        ]
    }

    /// Compares every bit.
    pub fn check(&self, checkpoint: &Checkpoint) {
        let bits = |numbers: &[f32]| numbers.iter().map(|number| number.to_bits()).collect::<Vec<_>>();
        let halves = |numbers: &[bf16]| numbers.iter().map(|number| number.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&checkpoint.read("embeddings.0.weight").unwrap()), bits(&self.table));
        assert_eq!(bits(&checkpoint.read("bottom.0.weight").unwrap()), bits(&self.weight));
        assert_eq!(halves(&checkpoint.read("bottom.0.master").unwrap()), halves(&self.half));
        assert_eq!(checkpoint.read::<i64>("embeddings.0.counts").unwrap(), self.counts);
        assert_eq!(checkpoint.read::<i64>("step").unwrap(), self.step);
    }
}

pub fn state(step: u64) -> State {
    let warmup = Some(Warmup { steps: 10, start: 0.1 });
    let decay = Decay::Polynomial { begin: Some(20), steps: 30, power: 2.0, end: 0.01 };
    State {
        step,
        epoch: step / 100,
        seed: u64::MAX - step,
        data_position: format!("part 3, row {step}\n"),
        more: [("shuffle".to_owned(), "\u{1f600}\t".to_owned())].into(),
        schedule: Some(Schedule { warmup, decay }),
    }
}

//! Memory by kind, compared with arithmetic: steps recorded on a CPU, on the `meta` device and with fake tensors.

use std::fs;
use std::path::Path;

use steptime_aten::optimizer::Form;
use steptime_predict::{Error, Step, open};
use steptime_rewrite::{Accumulate, Optimizer, Rule};
use steptime_step::{MemoryKind, Peak};

/// Block size of the allocator, bytes.
const BLOCK: u64 = 512;

/// A recorded step, and its memory by arithmetic: bytes in blocks.
struct RecordedMemory {
    name: String,
    step: Step,
    parameters: u64,
    gradients: u64,
    states: u64,
    /// Step counters, which the fused form keeps on the device in one block each.
    counts: u64,
}

impl RecordedMemory {
    fn open(path: &Path) -> RecordedMemory {
        let text = fs::read_to_string(path.join("truth.json")).expect("a file");
        let all: serde_json::Value = serde_json::from_str(&text).expect("numbers");
        let number = |key: &str| all[key].as_u64().expect("a number");
        RecordedMemory {
            name: path.file_name().expect("a name").to_string_lossy().into_owned(),
            step: open(path).expect("a recording"),
            parameters: number("parameters"),
            gradients: number("gradients"),
            states: number("states"),
            counts: number("counts"),
        }
    }

    fn all() -> Vec<RecordedMemory> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/memory");
        let paths = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
        let mut all: Vec<RecordedMemory> = paths.map(|path| RecordedMemory::open(&path)).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        assert!(all.len() >= 8);
        all
    }

    fn peak(&self) -> Peak {
        let found = self.step.predict().on("h100").expect("a GPU").run().expect("an answer");
        found.peak.expect("tensors are known")
    }

    fn changed(&self, rule: &dyn Rule) -> Result<Peak, Error> {
        let after = self.step.predict().on("h100").expect("a GPU").what_if(&[rule])?.after;
        Ok(after.peak.expect("tensors are known"))
    }

    /// Compares memory by kind with arithmetic. At the peak, not all gradients may exist.
    fn check(&self, peak: &Peak, fused: bool) {
        let states = self.states + if fused { self.counts * BLOCK } else { 0 };
        let of = |kind| peak.bytes_of(kind);
        let kept = [of(MemoryKind::Parameters), of(MemoryKind::Optimizer)];
        assert_eq!(kept, [self.parameters, states], "{}", self.name);
        assert!(of(MemoryKind::Gradients) <= self.gradients, "{}: {peak:?}", self.name);
    }
}

#[test]
fn parameters_and_states_are_those_of_arithmetic() {
    for recorded in RecordedMemory::all() {
        recorded.check(&recorded.peak(), recorded.name.ends_with("fused"));
    }
}

#[test]
fn a_step_needs_the_same_wherever_it_is_recorded() {
    let all = RecordedMemory::all();
    let of = |name: &str| all.iter().find(|recorded| recorded.name == name).expect("a recording").peak();
    let [cpu, meta, fake] = ["cpu", "meta", "fake"].map(|on| of(&format!("mlp.adamw.{on}.default")).total());
    for other in [meta, fake] {
        assert!(cpu.abs_diff(other) * 1000 <= cpu, "{cpu} and {other} bytes");
    }
}

#[test]
fn another_form_of_an_optimizer_keeps_its_states() {
    let mut changes = 0;
    for recorded in RecordedMemory::all() {
        for form in [Form::Loop, Form::Foreach, Form::Fused] {
            // The optimizer may already have that form.
            if let Ok(peak) = recorded.changed(&Optimizer { form }) {
                recorded.check(&peak, form == Form::Fused);
                changes += 1;
            }
        }
    }
    assert!(changes >= 12, "{changes}");
}

#[test]
fn accumulation_keeps_gradients_and_nothing_else() {
    for recorded in RecordedMemory::all() {
        let peak = recorded.changed(&Accumulate { batches: 2 }).expect("it applies");
        recorded.check(&peak, recorded.name.ends_with("fused"));
    }
}

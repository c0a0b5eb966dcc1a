//! Memory of the tensors of a program.

use std::collections::BTreeMap;

use steptime_step::{TensorId, UsedBytes};

use crate::bytes::Bytes;
use crate::program::Program;

impl Program {
    /// Bytes of the tensors that its instructions use, by region.
    #[must_use]
    pub fn used_bytes(&self) -> BTreeMap<TensorId, UsedBytes> {
        let mut all = BTreeMap::new();
        for instruction in &self.instructions {
            for (one, bytes) in instruction.uses.iter().zip(Bytes::of_uses(instruction)) {
                if let Some(bytes) = bytes {
                    let merged = |known: &mut UsedBytes| *known = bytes.used.merged(known);
                    all.entry(one.tensor).and_modify(merged).or_insert_with(|| bytes.used);
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rustc_hash::FxHashMap;
    use steptime_eager::Model;
    use steptime_rewrite::{Bf16, DenseOperators, Facts, FuseCasts, FuseLinear, Operators, Rule, apply};

    use crate::bytes::Bytes;
    use crate::described::DescribedStep;
    use crate::plan::Reuse;
    use crate::program::Program;
    use crate::slices::Region;
    use crate::target::Target;

    /// Reads of temporary memory beyond the last byte that was written before.
    fn unwritten(program: &Program) -> Vec<String> {
        let (mut ends, mut wrong) = (FxHashMap::default(), Vec::new());
        for (at, instruction) in program.instructions.iter().enumerate() {
            let bytes = Bytes::of_memories(instruction);
            for (own, one) in bytes.iter().zip(&instruction.uses) {
                let (memory, _) = instruction.slots[one.arg.slot];
                let end = ends.get(&memory).copied().unwrap_or(0);
                if !own.writes && program.plan.piece(memory).region == Region::Arena && own.used.end > end {
                    wrong
                        .push(format!("{at} {} reads {:?}, {end} B are written", instruction.name, own.used));
                }
            }
            for (own, one) in bytes.iter().zip(&instruction.uses).filter(|(own, _)| own.writes) {
                let end = ends.entry(instruction.slots[one.arg.slot].0).or_insert(0);
                *end = own.used.end.max(*end);
            }
        }
        wrong
    }

    /// A model whose projections and first products take columns of a concatenation's gradient.
    fn with_projections() -> Model {
        let text = "model = 'dlrm'\nbatch = 24\ndense = 5\nbottom_mlp = [16, 8]\ntop_mlp = [16, 1]
            loss = 'bce_with_logits'\noptimizer = { name = 'adagrad' }
            tables = [{ rows = 50, columns = 8, lookups = 3, count = 2 }, { rows = 20, columns = 6, count = 2 }]";
        Model::parse(text).expect("a model")
    }

    #[test]
    fn what_is_read_was_written() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/models");
        let files = std::fs::read_dir(folder).expect("a folder").flatten();
        let shipped = files.map(|file| Model::read(&file.path()).expect("a description"));
        let plans: [&[&dyn Rule]; 8] = [
            &[],
            &[&Operators, &FuseLinear],
            &[&DenseOperators, &FuseLinear],
            &[&Bf16],
            &[&Operators, &Bf16],
            &[&DenseOperators, &Bf16],
            &[&Operators, &Bf16, &FuseCasts, &FuseLinear],
            &[&DenseOperators, &Bf16, &FuseCasts, &FuseLinear],
        ];
        let mut programs = 0;
        for model in shipped.chain([with_projections()]) {
            let model = model.on_gpus(1).expect("one device");
            for (at, rules) in plans.iter().enumerate() {
                let mut described = DescribedStep::new(&model).expect("a step");
                let ops = described.ops().clone();
                if apply(&mut described.step, rules, &Facts::new(&ops, Some(model.batch()))).is_err() {
                    continue;
                }
                let Ok(program) = Program::for_target(&described, Target::Cuda, Reuse::ByLifetime) else {
                    continue;
                };
                let wrong = unwritten(&program);
                assert!(wrong.is_empty(), "{:?}, plan {at}: {wrong:#?}", model.tables());
                programs += 1;
            }
        }
        assert!(programs > 40, "{programs}");
    }
}

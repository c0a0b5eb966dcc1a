//! Joined programs of all shipped models keep the order of instructions, and every tensor that is read.

use std::path::Path;

use steptime_eager::Model;
use steptime_rewrite::{Bf16, Facts, FuseCasts, FuseLinear, Operators, Rule, apply};

use super::*;
use crate::compile::separate_instructions;
use crate::described::DescribedStep;
use crate::plan::Reuse;
use crate::program::Program;
use crate::slices::{Access, Region};
use crate::target::Target;

/// The shipped models in three plans.
fn steps() -> Vec<(String, DescribedStep)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/models");
    let mut all = Vec::new();
    for file in std::fs::read_dir(folder).expect("a folder").flatten() {
        let model = Model::read(&file.path()).expect("a description").on_gpus(1).expect("one device");
        let plans: [&[&dyn Rule]; 3] =
            [&[], &[&Operators, &FuseLinear], &[&Operators, &Bf16, &FuseCasts, &FuseLinear]];
        for (plan, rules) in plans.into_iter().enumerate() {
            let mut described = DescribedStep::new(&model).expect("a step");
            let ops = described.ops().clone();
            let applied = apply(&mut described.step, rules, &Facts::new(&ops, Some(model.batch())));
            if applied.is_ok() {
                all.push((format!("{:?}, plan {plan}", file.path()), described));
            }
        }
    }
    assert!(all.len() > 20, "{}", all.len());
    all
}

#[test]
fn conflicting_instructions_keep_their_order() {
    let mut moved = 0;
    for (name, described) in steps() {
        // A step with an op that no GPU runs has no program.
        let Ok((instructions, temporary)) = separate_instructions(&described) else { continue };
        let before: Vec<Vec<Bytes>> = instructions.iter().map(Bytes::of_memories).collect();
        let count = before.len();
        let memories = Memories::new(&instructions, &temporary);
        let order: Vec<usize> =
            units(instructions, &memories).into_iter().flat_map(|unit| unit.numbers).collect();
        assert_eq!(order.len(), count, "{name}");
        for (place, &later) in order.iter().enumerate() {
            for &earlier in order[place + 1..].iter().filter(|&&earlier| earlier < later) {
                moved += 1;
                let conflict =
                    before[earlier].iter().any(|one| before[later].iter().any(|other| one.conflicts(other)));
                assert!(!conflict, "{name}: {later} came before {earlier}");
            }
        }
    }
    assert!(moved > 100, "{moved}");
}

#[test]
fn what_is_read_is_stored_before() {
    let mut joined = 0;
    for (name, described) in steps() {
        let Ok(program) = Program::for_target(&described, Target::Cuda, Reuse::Never) else { continue };
        let mut written = Vec::new();
        for (at, instruction) in program.instructions().iter().enumerate() {
            joined += usize::from(instruction.name == "steptime::pointwise");
            for (slot, place) in instruction.at.iter().enumerate() {
                let is_known = written.contains(&place.start) || place.region != Region::Arena;
                assert!(is_known || place.access == Access::Write, "{name}: instruction {at}, slot {slot}");
            }
            let own = instruction.at.iter().filter(|place| place.region == Region::Arena);
            written.extend(own.map(|place| place.start));
        }
    }
    assert!(joined > 50, "{joined}");
}

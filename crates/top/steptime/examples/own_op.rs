//! Predicts a step whose recording calls an op of your own, whose meaning is added to the set of known ops.
//!
//! Here the op takes the place of PyTorch's `aten::cat`: a kernel that writes the parts in half precision.

use std::path::Path;

use steptime::{Choice, Step};
use steptime_aten::build_lowering::work;
use steptime_aten::operands::{output_bytes, read};
use steptime_aten::{BoundCall, Kernel, Lowering, OpDef, OpSet};

/// Reads all parts, and writes half as many bytes. Arguments are accessed by the names of the op's schema; for an op that
/// PyTorch does not have, [`OpDef::arguments`] gives them.
fn half(call: &BoundCall<'_>) -> Option<Lowering> {
    let parts = call.tensors("tensors");
    let bytes: u64 = parts.iter().map(|part| part.bytes()).sum();
    let operands = [read(call, "tensors"), Some(output_bytes(0, bytes / 2))];
    Some(work(Kernel::DeviceCopy, parts.first()?.dtype, operands, 0))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let ops = OpSet::standard().with(OpDef::leaf(&["aten::cat"], half));
    let recording = Path::new("examples/dlrm_default_2048");
    for (whose, ops) in [("PyTorch's", OpSet::standard()), ("your own", ops)] {
        let step = Step::open_with_ops(recording, &Choice::default(), &ops)?;
        let prediction = step.predict().on("h200")?.run()?;
        println!(
            "with {whose} concatenation: {}, of which the GPU works {}",
            prediction.step, prediction.active
        );
    }
    Ok(())
}

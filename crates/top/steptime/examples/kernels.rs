//! Predicts single kernels on a GPU from a description of the call.

use steptime_aten::OpSet;
use steptime_aten::from_query::Query;
use steptime_cost::device::{Context, ModelChoice};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let h200 = steptime::device("h200")?;
    let shapes = [[2048, 512], [512, 1024]].map(|shape: [u64; 2]| shape.to_vec().into());
    let ops = OpSet::standard();
    let product = Query { op: "aten::mm", shapes: &shapes, ..Query::default() }.op_call(&ops)?;
    for leaf in ops.leaves(&product) {
        let context = Context::warm(&leaf.kernel);
        for estimate in h200.price_all(&[(&leaf.kernel, &context)], ModelChoice::default()) {
            println!("{}: {}", leaf.op.name, estimate.time);
        }
    }
    Ok(())
}

//! Queries of `kernels predict`: from a line of JSON to the launches of the op, forward and backward, and their price on a
//! GPU with a specification only.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use steptime_aten::from_query::Query;
use steptime_aten::{Leaf, OpSet, shape_checks};
use steptime_cost::device::{Context, DeviceProfile, ModelChoice};
use steptime_fuzz::limited;

fuzz_target!(|bytes: &[u8]| {
    gpu();
    limited(bytes, answer);
});

fn answer(bytes: &[u8]) {
    let Ok(line) = serde_json::from_slice::<Value>(bytes) else { return };
    let list = |name: &str| line.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let (shapes, strides) = (list("shapes"), list("strides"));
    let query = Query {
        op: line.get("op").and_then(Value::as_str).unwrap_or_default(),
        shapes: &shapes,
        strides: &strides,
        dtype: line.get("dtype"),
        args: line.get("args"),
    };
    let ops = OpSet::standard();
    let Ok(call) = query.op_call(&ops) else { return };
    if shape_checks::check(&call).is_err() {
        return;
    }
    price(&ops.leaves(&call));
    let backward = ops.backward(&call);
    price(&backward.iter().flat_map(|call| ops.leaves(call)).collect::<Vec<Leaf>>());
}

fn price(leaves: &[Leaf]) {
    let contexts: Vec<Context> = leaves.iter().map(|leaf| Context::warm(&leaf.kernel)).collect();
    let calls: Vec<_> = leaves.iter().map(|leaf| &leaf.kernel).zip(&contexts).collect();
    let estimates = gpu().price_all(&calls, ModelChoice::default());
    assert_eq!(estimates.len(), leaves.len());
}

fn gpu() -> &'static DeviceProfile {
    static GPU: OnceLock<DeviceProfile> = OnceLock::new();
    GPU.get_or_init(|| {
        let header = include_str!("../../profiles/a100/profile.toml");
        DeviceProfile::from_parts(header, None).expect("a profile that ships")
    })
}

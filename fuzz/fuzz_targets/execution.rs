//! Execution traces: read whole and as a stream, with the same result; every value is visited.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steptime_fuzz::limited;
use steptime_trace::{ExecutionTrace, read_execution_trace, read_execution_trace_from};

fuzz_target!(|bytes: &[u8]| {
    let whole = limited(bytes, |bytes| read_execution_trace(bytes).inspect(look));
    let streamed = limited(bytes, |bytes| read_execution_trace_from(bytes));
    match (whole, streamed) {
        // NaN is not equal to itself, but prints the same.
        (Ok(whole), Ok(streamed)) => {
            assert!(whole == streamed || format!("{whole:?}") == format!("{streamed:?}"))
        }
        (whole, streamed) => assert_eq!(whole.is_ok(), streamed.is_ok()),
    }
});

fn look(trace: &ExecutionTrace) {
    for node in 0..trace.nodes.len() {
        let values = [trace.inputs(node), trace.outputs(node)].concat();
        let tensors = values.into_iter().flat_map(|value| trace.tensors(value));
        let numbers =
            tensors.map(|tensor| trace.shape(tensor).len() + trace.strides(tensor).map_or(0, <[i64]>::len));
        assert!(numbers.sum::<usize>() < usize::MAX);
        assert!(!(trace.is_process(node) && trace.is_thread(node)));
    }
}

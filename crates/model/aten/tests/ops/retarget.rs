//! A step recorded on a CPU, moved to the GPU, is the step that was recorded there.

use std::path::Path;

use steptime_aten::OpSet;
use steptime_aten::derive::{self, OpTree};
use steptime_aten::{Device, retarget};
use steptime_graph::Role;
use steptime_graph::execution::ExecutionGraph;
use steptime_trace::Meta;

fn read(path: &str) -> ExecutionGraph {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let input = steptime_trace::open(&path).unwrap();
    ExecutionGraph::new(input.recordings[0].execution.as_ref().unwrap())
}

/// Returns the model of the example below, see `data/dlrm_cpu.py`.
fn on_cpu() -> ExecutionGraph {
    read("tests/data/dlrm_cpu.json.gz")
}

fn on_gpu() -> ExecutionGraph {
    read("../../../examples/dlrm_default_2048/et.json.gz")
}

#[test]
fn ops_of_both_threads_are_those_recorded_on_the_gpu() {
    let (moved, recorded) = (
        retarget::to_cuda(&on_cpu(), &OpSet::standard(), &Meta::default()),
        OpTree::from_execution(&on_gpu()),
    );
    let roles = |tree: &OpTree| tree.threads.iter().map(|thread| thread.role).collect::<Vec<_>>();
    assert_eq!(roles(&moved.tree), [Role::Main, Role::Autograd]);
    assert_eq!(roles(&moved.tree), roles(&recorded));
    for thread in 0..2 {
        let names = |tree: &OpTree| {
            tree.names(thread).map(|(depth, name)| format!("{depth} {name}")).collect::<Vec<_>>()
        };
        assert_eq!(names(&moved.tree), names(&recorded), "thread {thread}");
    }
    assert!(moved.unknown.is_empty(), "{:?}", moved.unknown);
}

#[test]
fn launches_are_those_recorded_on_the_gpu() {
    let moved = derive::from_tree(
        &retarget::to_cuda(&on_cpu(), &OpSet::standard(), &Meta::default()).tree,
        &OpSet::standard(),
    )
    .unwrap();
    let recorded = derive::step_graph(&on_gpu(), &OpSet::standard()).unwrap();
    let launched = |derived: &derive::DerivedStep| {
        let each = derived.kernels.iter();
        each.map(|k| format!("{} {}", derived.graph.op_name(k.op), k.call.kernel.family()))
            .collect::<Vec<_>>()
    };
    assert_eq!(launched(&moved), launched(&recorded));
    assert_eq!((moved.counts.known, moved.counts.unknown), (112, 0));
}

#[test]
fn the_batch_is_copied_to_the_device() {
    let moved = retarget::to_cuda(&on_cpu(), &OpSet::standard(), &Meta::default());
    assert_eq!(moved.input_copies, 18);
    let copies: Vec<_> = moved.tree.nodes.iter().filter(|node| node.call.name == "aten::copy_").collect();
    let devices = copies[0].call.input_tensors().map(|(_, _, tensor)| tensor.device).collect::<Vec<_>>();
    assert_eq!(devices, [Device::Cuda, Device::Cpu]);
    // After the copy, the tensor is on the device.
    let linear = moved.tree.nodes.iter().find(|node| node.call.name == "aten::linear").unwrap();
    assert!(linear.call.input_tensors().all(|(_, _, tensor)| tensor.device == Device::Cuda));
}

#[test]
fn a_step_of_a_gpu_is_not_one_of_a_cpu() {
    assert!(retarget::is_on_cpu(&on_cpu()));
    assert!(!retarget::is_on_cpu(&on_gpu()));
    assert!(!retarget::is_on_cpu(&ExecutionGraph::default()));
}

/// Returns the moved steps of `data/small_cpu.py`.
fn moved(name: &str) -> retarget::RetargetedStep {
    retarget::to_cuda(&read(&format!("tests/data/{name}.json.gz")), &OpSet::standard(), &Meta::default())
}

#[test]
fn a_transposed_sparse_matrix_is_coalesced_before_it_multiplies() {
    let tree = moved("graph").tree;
    let products: Vec<usize> = (0..tree.nodes.len())
        .filter(|&at| {
            let call = &tree.nodes[at].call;
            call.name == "aten::addmm" && call.tensor_at(1).is_some_and(|matrix| matrix.is_sparse())
        })
        .collect();
    let inside = |at: usize, name: &str| {
        let within = |mut node: usize| {
            std::iter::from_fn(|| {
                node = tree.nodes[node].parent? as usize;
                Some(node)
            })
            .any(|around| around == at)
        };
        (at..tree.nodes.len()).filter(|&node| tree.nodes[node].call.name == name && within(node)).count()
    };
    // The script coalesces the matrix of the forward pass, but not its transpose.
    assert_eq!(products.iter().map(|&at| inside(at, "aten::_coalesce")).collect::<Vec<_>>(), [0, 1]);
    assert!(products.iter().all(|&at| inside(at, "aten::coalesce") == 1));
    let derived = derive::from_tree(&tree, &OpSet::standard()).unwrap();
    let families = derived.kernels.iter().map(|launched| launched.call.kernel.family());
    let count = |family: &str| families.clone().filter(|&each| each == family).count();
    assert_eq!([count("sparse_product"), count("coalesce"), derived.counts.unknown], [2, 1, 0]);
}

#[test]
fn channels_last_stay_last_on_the_meta_device() {
    let moved = moved("channels_last");
    assert_eq!(moved.channels_last, 2);
    for name in ["aten::convolution", "aten::native_batch_norm", "aten::threshold_backward"] {
        let calls: Vec<_> =
            moved.tree.nodes.iter().map(|node| &node.call).filter(|c| c.name == name).collect();
        let images = calls.iter().flat_map(|call| call.input_tensors()).map(|(.., tensor)| tensor);
        let given = calls.iter().filter_map(|call| call.output(0));
        let images: Vec<_> = images.chain(given).filter(|tensor| tensor.shape.len() == 4).collect();
        assert!(images.iter().all(|tensor| tensor.is_channels_last()), "{name}: {images:?}");
        assert!(name.contains("norm") || images.len() > 2, "{name}");
    }
    let within = |parent: Option<u32>| {
        parent.is_some_and(|at| moved.tree.nodes[at as usize].call.name.contains("AccumulateGrad"))
    };
    let copied =
        moved.tree.nodes.iter().filter(|node| node.call.name == "aten::copy_" && within(node.parent));
    assert_eq!(copied.count(), 0, "gradients of filters have their layout");
    let small = retarget::to_cuda(&on_cpu(), &OpSet::standard(), &Meta::default());
    assert_eq!(small.channels_last, 0);
}

#[test]
fn an_empty_trace_moves_to_nothing() {
    let moved = retarget::to_cuda(&ExecutionGraph::default(), &OpSet::standard(), &Meta::default());
    assert_eq!((moved.tree.nodes.len(), moved.input_copies), (0, 0));
    assert_eq!(derive::from_tree(&moved.tree, &OpSet::standard()).unwrap_err(), derive::Error::Empty);
}

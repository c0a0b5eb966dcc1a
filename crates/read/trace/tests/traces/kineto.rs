//! Kineto traces of every vintage, from small files made by hand.

use steptime_trace::{
    ActivityKind, Bytes, CallLibrary, Carrier, HostKind, Nanos, Note, Stream, SyncKind, Trace, read_kineto,
};

fn fixture(name: &str) -> Trace {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    read_kineto(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn old_traces_have_absolute_times_quoted_numbers_and_former_names() {
    let trace = fixture("old.json");
    assert!(trace.notes.is_clean());
    assert_eq!(trace.base_time, Nanos::ZERO);
    assert_eq!(trace.threads.len(), 1);
    let (add, step) = (trace.ops.row(0), trace.ops.row(1));
    assert_eq!((trace.name(add.name), add.kind), ("aten::add", HostKind::Op));
    assert_eq!(add.start, Nanos(1_689_179_597_654_887_000));
    assert_eq!((add.external_id, add.sequence), (9, 3));
    assert_eq!(trace.name(step.name), "ProfilerStep#2");
    assert_eq!(trace.calls.correlation, [33]);
    let kernel = trace.activities.row(0);
    assert_eq!(trace.name(kernel.name), "void add<float>(float*, \"q\")");
    assert_eq!(trace.streams, [Stream { device: 0, stream: 7 }]);
    let shape = trace.activities.launch_shape(0);
    assert_eq!((shape.grid, shape.block, shape.registers), ([4, 1, 1], [128, 1, 1], 16));
    assert_eq!((trace.activities.kind[1], trace.activities.bytes[1]), (ActivityKind::Memcpy, 4096));
    assert_eq!(trace.notes.count(Note::FlowEvents), 2);
}

#[test]
fn new_traces_have_relative_times_and_shapes() {
    let trace = fixture("new.json");
    assert!(trace.notes.is_clean(), "{:?}", trace.notes);
    assert_eq!(trace.base_time, Nanos(1_790_857_026_000_000_000));
    let device = &trace.devices[0];
    assert_eq!((device.name.as_str(), device.num_sms, device.l2_cache), ("NVIDIA H200", Some(132), None));
    assert_eq!(device.total_global_mem, Some(Bytes(150_109_880_320)));
    assert_eq!(trace.ops.kind, [HostKind::Annotation, HostKind::Op, HostKind::Op]);
    assert_eq!(trace.ops.start[1], Nanos(4_373_858_359_541_594));
    assert_eq!(trace.ops.end(1), Nanos(4_373_858_359_654_682));
    assert_eq!(trace.ops.record_function_id, [70, 71, 72]);
    assert_eq!((trace.ops.sequence[2], trace.ops.forward_thread[2]), (622_463, 1));
    let named = trace.threads[trace.ops.thread[2].0 as usize].name;
    assert_eq!(named.map(|name| trace.name(name)), Some("pt_autograd_0"));
    assert_eq!(
        trace.calls.api,
        [CallLibrary::Driver, CallLibrary::Runtime, CallLibrary::Runtime],
        "of whatever vendor"
    );
    assert_eq!(trace.activities.launch_shape(0).shared_memory, 1024);
    assert_eq!(trace.gpu_annotations.len(), 1);
    assert_eq!(trace.overheads.dur, [Nanos(308_180)]);

    let inputs = trace.inputs.get(1).unwrap();
    assert!(inputs.is_list(0) && inputs.len() == 2);
    assert_eq!(inputs.tensors(0).collect::<Vec<_>>(), [&[2048, 64][..], &[2048, 416]]);
    assert_eq!(inputs.tensor_strides(0).collect::<Vec<_>>(), [&[64, 1][..], &[416, 1]]);
    assert_eq!(trace.name(inputs.dtype(0)), "TensorList");
    assert_eq!(trace.name(inputs.concrete(1)), "1");
    assert!(trace.inputs.get(0).is_none());
}

#[test]
fn synchronisations_say_who_waits_for_what() {
    let syncs = fixture("new.json").syncs;
    assert_eq!(syncs.kind, [SyncKind::Stream, SyncKind::StreamWaitEvent, SyncKind::Event]);
    assert_eq!(syncs.stream, [Some(7), Some(24), None]);
    assert_eq!(syncs.wait_on_stream, [None, Some(20), None]);
    assert_eq!(syncs.wait_on_event_record_correlation, [None, Some(1385), None]);
    assert_eq!(syncs.event_id, [None, Some(19), Some(9)]);
}

#[test]
fn what_is_left_out_is_counted_by_kind() {
    let notes = fixture("new.json").notes;
    for kind in [Note::FlowEvents, Note::Instants, Note::Counters, Note::PythonFunctions, Note::Spans] {
        assert_eq!(notes.count(kind), 1, "{kind:?}");
    }
    assert_eq!(notes.unknown_categories().count(), 0, "the runtime of any vendor is read");
}

#[test]
fn amd_traces() {
    let trace = fixture("amd.json");
    assert_eq!(trace.name(trace.calls.name[0]), "hipExtModuleLaunchKernel");
    assert_eq!(trace.streams[0], Stream { device: 2, stream: 0 });
    assert_eq!(trace.activities.launch_shape(0).grid, [1, 2, 3]);
    assert_eq!(trace.devices[0].warp_size, Some(64));
    assert!(trace.notes.is_clean());
}

#[test]
fn kernels_of_a_graph_share_the_correlation_of_its_launch() {
    let trace = fixture("graph.json");
    assert_eq!(trace.activities.correlation, [500, 500, 500]);
    assert_eq!(trace.activities.graph_node[0], 51_539_607_553);
    assert_eq!(trace.calls.correlation, [500]);
}

#[test]
fn collectives_on_ops_and_kernels() {
    let trace = fixture("nccl.json");
    let distributed = trace.distributed.as_ref().unwrap();
    assert_eq!((distributed.rank, distributed.world_size), (Some(1), Some(2)));
    assert_eq!(distributed.groups[0].ranks, [0, 1]);
    let carriers: Vec<_> = trace.collectives.iter().map(|collective| collective.carrier).collect();
    assert_eq!(carriers, [Carrier::Op(0), Carrier::Activity(0), Carrier::Activity(1)]);
    let all_reduce = &trace.collectives[1];
    assert_eq!(trace.name(all_reduce.name), "allreduce");
    assert_eq!((all_reduce.in_elements, all_reduce.group_size, all_reduce.sequence), (16, Some(2), Some(7)));
    let send = &trace.collectives[2];
    assert_eq!((send.source_rank, send.target_rank), (Some(1), Some(0)));
    assert_eq!(send.group_ranks.map(|ranks| trace.name(ranks)), Some("[0, 1]"));
}

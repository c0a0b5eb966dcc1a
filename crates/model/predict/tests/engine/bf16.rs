//! Changes of products to bfloat16.

use std::path::Path;

use steptime_aten::Dtype;
use steptime_predict::{Choice, Step};
use steptime_rewrite::{self, Bf16, Facts};
use steptime_step::{self, Origin, Uses};

fn whole(name: &str) -> Step {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples").join(name);
    Step::open_with(&path, &Choice::default(), &steptime_trace::Options::default()).expect("an example")
}

fn changed(recorded: &Step) -> steptime_step::StepIr {
    let mut step = recorded.arguments.editable(&recorded.graph);
    let facts = Facts::new(&recorded.ops, None);
    steptime_rewrite::apply(&mut step, &[&Bf16], &facts).expect("it applies");
    step
}

#[test]
fn products_are_narrow_and_parameters_are_not() {
    for (name, products) in [("dlrm_default_2048", 20), ("resnet50_32", 2)] {
        let recorded = whole(name);
        let step = changed(&recorded);
        let narrow = |id: steptime_step::TensorId| step.tensors[id].value.dtype == Dtype::Bf16;
        let running = step.running();
        let calls = || running.iter().filter_map(|&op| Some((op, step.ops[op].call.as_ref()?)));
        let of = |name: &str| calls().filter(|(op, _)| step.ops[*op].name == name).collect::<Vec<_>>();
        let all: Vec<_> = ["aten::mm", "aten::addmm", "aten::bmm"].iter().flat_map(|name| of(name)).collect();
        assert!(all.len() >= products, "{name}: {}", all.len());
        for (op, call) in all {
            let all = call.takes().chain(call.gives()).all(narrow);
            assert!(all, "{name}: {:?}", step.call(op));
        }
        for (op, call) in of("aten::convolution_backward") {
            assert!(call.takes().chain(call.gives()).all(narrow), "{name}: {:?}", step.call(op));
        }
        let uses = Uses::find(&step);
        let old = step.tensors.keys().filter(|&tensor| uses.producer(tensor).is_none());
        let added = recorded.arguments.editable(&recorded.graph).tensors.len();
        assert_eq!(old.filter(|&tensor| usize::from(tensor) < added && narrow(tensor)).count(), 0, "{name}");
        let last = calls().filter(|(op, _)| step.ops[*op].name.starts_with("aten::_foreach"));
        assert!(last.flat_map(|(_, call)| call.takes()).all(|tensor| !narrow(tensor)), "{name}");
    }
}

#[test]
fn parameters_are_cast_once_there_and_once_back() {
    // Parameters of layers, which are cast both ways, and activations.
    for (name, parameters, casts) in [("dlrm_default_2048", 12, 32), ("resnet50_32", 55, 113)] {
        let recorded = whole(name);
        let step = changed(&recorded);
        let uses = Uses::find(&step);
        let of = |op: &steptime_step::OpId| {
            let row = &step.ops[*op];
            row.name == "aten::_to_copy" && matches!(row.origin, Origin::Inserted("bf16"))
        };
        let all: Vec<_> = step.running().into_iter().filter(of).collect();
        assert_eq!(all.len(), casts, "{name}");
        let old = all.iter().filter(|op| {
            let call = step.ops[**op].call.as_ref();
            call.and_then(|call| call.takes().next()).is_some_and(|tensor| uses.producer(tensor).is_none())
        });
        assert_eq!(old.count(), parameters, "{name}");
    }
}

#[test]
fn what_is_narrow_already_is_refused() {
    let recorded = whole("dlrm_default_2048");
    let mut step = changed(&recorded);
    let facts = Facts::new(&recorded.ops, None);
    let error = steptime_rewrite::apply(&mut step, &[&Bf16], &facts).unwrap_err();
    assert_eq!(error.to_string(), "bf16: ops run in 16 bits already");
}

#[test]
fn attention_goes_to_cudnn_both_ways() {
    let Some(path) = steptime_skips::shared(env!("CARGO_MANIFEST_DIR"), "traces/h200_b/encdec_base_32")
    else {
        return;
    };
    let recorded =
        Step::open_with(&path, &Choice::default(), &steptime_trace::Options::default()).expect("a recording");
    let count = |step: &steptime_step::StepIr, name: &str| {
        step.running().into_iter().filter(|&op| step.ops[op].name == format!("aten::{name}")).count()
    };
    let before = recorded.arguments.editable(&recorded.graph);
    let after = changed(&recorded);
    for way in ["", "_backward"] {
        let efficient = format!("_scaled_dot_product_efficient_attention{way}");
        let cudnn = format!("_scaled_dot_product_cudnn_attention{way}");
        assert!(count(&before, &efficient) > 0, "{efficient}");
        assert_eq!((count(&after, &efficient), count(&after, &cudnn)), (0, count(&before, &efficient)));
    }
}

#[test]
fn both_passes_of_a_described_model_are_narrow() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/models/dlrm_default.toml");
    let recorded = Step::open(&path, &Choice::default()).expect("a model");
    let step = changed(&recorded);
    let running = step.running();
    let products: Vec<_> = running.iter().filter(|&&op| step.ops[op].name == "aten::mm").collect();
    assert!(products.len() >= 10, "{}", products.len());
    for &&op in &products {
        let call = step.ops[op].call.as_ref().expect("it was called");
        let all = call.takes().chain(call.gives()).all(|id| step.tensors[id].value.dtype == Dtype::Bf16);
        assert!(all, "{:?}", step.call(op));
    }
}

//! Fused elementwise chains and linear layers, all or some of them.

use crate::common;

use common::{Example, counts, named, open, takes};
use steptime_rewrite::{Error, FuseAmong, FuseLinear, FusePointwise, Fusion, Selection};
use steptime_step::{OpId, StepIr, schedule};

#[test]
fn a_residual_sum_and_its_relu_become_one_kernel() {
    let example = open("resnet50_32");
    let step = example.after(&FusePointwise).expect("it applies");
    let (was, now) = (counts(&example.step), counts(&step));
    // In each of 16 blocks an addition with its activation; the other 33 activations follow a norm.
    let kernels = named(&step, "triton_poi_fused");
    let relus = was["aten::relu_"];
    assert_eq!(now["aten::relu_"], relus - 16);
    assert!(kernels.len() >= 16);
    for &op in &kernels[..16] {
        let shapes = takes(&step, op);
        assert!(shapes.len() >= 2 && shapes.iter().all(|shape| *shape == shapes[0]), "{shapes:?}");
    }
    assert_eq!(now["aten::cudnn_convolution"], was["aten::cudnn_convolution"]);
    let scheduled = schedule(&step, &example.step, &example.graph, &example.ops);
    let less = example.graph.activities.len() - scheduled.graph.activities.len();
    assert!(less >= 16, "{less}");
}

#[test]
fn a_layer_and_its_relu_become_one_product() {
    let example = open("dlrm_default_2048");
    let step = example.after(&FuseLinear).expect("it applies");
    let (was, now) = (counts(&example.step), counts(&step));
    let fused = now["aten::_addmm_activation"];
    assert!(fused > 0);
    assert_eq!(now["aten::addmm"], was["aten::addmm"] - fused);
    assert_eq!(now.get("aten::relu").copied().unwrap_or(0), was["aten::relu"] - fused);
    assert_eq!(now["LinearReLU"], fused);
    // Gradients are computed as before.
    assert_eq!(now["aten::threshold_backward"], was["aten::threshold_backward"]);
}

#[test]
fn without_a_chain_it_says_so() {
    let refused = open("dlrm_default_2048").after(&FusePointwise);
    assert!(matches!(refused, Err(Error::NothingToDo { .. })), "{refused:?}");
    let refused = open("resnet50_32").after(&FuseLinear);
    let Err(Error::NothingToDo { reason }) = refused else { panic!("{refused:?}") };
    assert!(reason.contains("of 1 linear layers"), "{reason}");
}

fn number(op: OpId) -> Selection {
    Selection::Numbered(u32::try_from(usize::from(op)).expect("a row"))
}

/// The step after a fusion of the first ops of a name.
fn fused(example: &Example, what: Fusion, name: &str, first: usize) -> Result<StepIr, Error> {
    let ops = named(&example.step, name).into_iter().take(first).map(number).collect();
    example.after(&FuseAmong { what, ops })
}

#[test]
fn the_chosen_are_fused_and_the_others_stay() {
    let example = open("dlrm_default_2048");
    let was = counts(&example.step);
    let step = fused(&example, Fusion::EmbeddingBags, "aten::embedding_bag", 3).expect("it applies");
    assert_eq!(counts(&step)["aten::embedding_bag"], was["aten::embedding_bag"] - 2);
    let step = fused(&example, Fusion::Linear, "aten::linear", 2).expect("it applies");
    assert_eq!(counts(&step)["aten::_addmm_activation"], 2);
    assert_eq!(counts(&step)["aten::addmm"], was["aten::addmm"] - 2);
    // A sum and the activation right after it; a sum alone is one kernel already.
    let example = open("resnet50_32");
    let sums = named(&example.step, "aten::add_");
    let pair = named(&example.step, "aten::relu_").into_iter().find_map(|relu| {
        let sum = sums.iter().copied().find(|&sum| usize::from(sum) + 1 == usize::from(relu))?;
        Some(vec![number(sum), number(relu)])
    });
    let chosen = FuseAmong { what: Fusion::Elementwise, ops: pair.expect("a residual block") };
    let step = example.after(&chosen).expect("it applies");
    assert_eq!(counts(&step)["aten::relu_"], counts(&example.step)["aten::relu_"] - 1);
    let sums = FuseAmong { what: Fusion::Elementwise, ops: vec!["aten::add_".parse().expect("a name")] };
    let refused = example.after(&sums);
    assert!(matches!(refused, Err(Error::NothingToDo { .. })), "{refused:?}");
}

#[test]
fn one_alone_is_not_fused() {
    let example = open("dlrm_default_2048");
    let one = fused(&example, Fusion::EmbeddingBags, "aten::embedding_bag", 1);
    assert!(matches!(one, Err(Error::NoBags { found: 1 })), "{one:?}");
    let none =
        example.after(&FuseAmong { what: Fusion::Linear, ops: vec![Selection::Module("DLRM".to_owned())] });
    assert!(matches!(none, Err(Error::NoModules)), "{none:?}");
}

//! Elementwise chains and linear layers put together.

mod common;

use common::{counts, named, open, takes};
use steptime_rewrite::{Error, FuseLinear, FusePointwise};
use steptime_step::schedule;

#[test]
fn a_residual_sum_and_its_relu_become_one_kernel() {
    let example = open("resnet50_32");
    let step = example.after(&FusePointwise).expect("it applies");
    let (was, now) = (counts(&example.step), counts(&step));
    // Of 16 blocks each adds and then cuts; the 33 other activations follow a norm.
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

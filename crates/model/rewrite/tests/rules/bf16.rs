//! Products in 16 bits.

#[allow(dead_code)]
use crate::common;

use common::{counts, open};
use steptime_rewrite::{Bf16, Fp16};

#[test]
fn batch_norm_in_bfloat16_is_pytorchs_own() {
    let example = open("resnet50_32");
    let was = counts(&example.step);
    let step = example.after(&Bf16).expect("it applies");
    let now = counts(&step);
    for (cudnn, native) in [
        ("aten::cudnn_batch_norm", "aten::native_batch_norm"),
        ("aten::cudnn_batch_norm_backward", "aten::native_batch_norm_backward"),
    ] {
        assert_eq!((now.get(cudnn), now[native]), (None, was[cudnn]), "{cudnn}");
    }
    let step = example.after(&Fp16).expect("it applies");
    assert_eq!(counts(&step)["aten::cudnn_batch_norm"], was["aten::cudnn_batch_norm"]);
}

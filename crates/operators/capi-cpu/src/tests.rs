//! Calls as from C.

use std::ffi::CStr;
use std::ptr::{null, null_mut};

use super::*;

/// Error text of the last failed call.
fn error() -> String {
    // SAFETY: the text lives until the next call that fails.
    unsafe { CStr::from_ptr(steptime_error()) }.to_str().unwrap().to_owned()
}

/// One thread without vector instructions.
fn plain() -> *mut Cpu {
    // SAFETY: the name is zero-terminated.
    let cpu = unsafe { steptime_cpu_new(1, c"scalar".as_ptr()) };
    assert!(!cpu.is_null(), "{}", error());
    cpu
}

/// Tables of two columns in plain floats.
fn bag(tables: &[Vec<f32>]) -> *mut Bag {
    let data: Vec<_> = tables.iter().map(|table| table.as_ptr().cast::<u8>()).collect();
    let rows: Vec<_> = tables.iter().map(|table| table.len() / 2).collect();
    let (dims, pitches) = (vec![2; tables.len()], vec![8; tables.len()]);
    // SAFETY: the arrays have as many elements, and the tables outlive the handle.
    unsafe {
        steptime_bag_new(tables.len(), data.as_ptr(), rows.as_ptr(), dims.as_ptr(), pitches.as_ptr(), 0)
    }
}

#[test]
fn no_bags_need_no_output() {
    let tables = [vec![1.0; 6]];
    let (cpu, bag, offset) = (plain(), bag(&tables), [0_i64]);
    let offsets = offset.as_ptr().cast();
    // SAFETY: there is one offset, and nothing else.
    let done = unsafe { steptime_bag_forward(bag, cpu, 0, 0, null(), offsets, 64, null(), null_mut(), 2) };
    assert_eq!(done, 0, "{}", error());
    // SAFETY: they are used no more.
    unsafe {
        steptime_bag_free(bag);
        steptime_cpu_free(cpu);
    }
}

#[test]
fn bags_are_pooled_and_what_cannot_be_is_refused() {
    let tables = [vec![1.0, 2.0, 3.0, 4.0], vec![5.0, 6.0]];
    let (cpu, bag) = (plain(), bag(&tables));
    let (indices, offsets) = ([0_i32, 1, 0], [0_i32, 2, 3]);
    let mut out = [9.0_f32; 4];
    let start = out.as_mut_ptr();
    let run = |bags, bits, indices: *const i32, out: *mut f32| {
        let (indices, offsets) = (indices.cast(), offsets.as_ptr().cast());
        // SAFETY: as many elements as one bag of each table has; everything else is refused.
        unsafe { steptime_bag_forward(bag, cpu, bags, 3, indices, offsets, bits, null(), out, 4) }
    };
    assert_eq!(run(1, 32, indices.as_ptr(), start), 0, "{}", error());
    for (bags, bits, indices, out, what) in [
        (1, 16, indices.as_ptr(), start, "no indices of 16 bits"),
        (1, 32, null(), start, "indices: 3 elements at a null pointer"),
        (1, 32, indices.as_ptr().wrapping_byte_add(1), start, "indices: the pointer"),
        (1, 32, indices.as_ptr(), null_mut(), "out: 4 elements at a null pointer"),
        (1, 32, indices.as_ptr(), start.wrapping_byte_add(2), "out: the pointer"),
        (1, 32, indices.as_ptr(), indices.as_ptr().cast_mut().cast(), "indices and out overlap"),
        (1, 32, indices.as_ptr(), tables[0].as_ptr().cast_mut(), "table 0"),
        (1, 32, indices.as_ptr(), tables[1].as_ptr().cast_mut().wrapping_sub(3), "out and table 1 overlap"),
        (1 << 63, 32, indices.as_ptr(), start, "2 tables x 9223372036854775808 bags"),
        (1 << 62, 32, indices.as_ptr(), start, "overlap: give arrays of their own, and check the sizes"),
    ] {
        assert_eq!(run(bags, bits, indices, out), 1, "{what}");
        assert!(error().contains(what), "{} for {what}", error());
    }
    assert_eq!(out, [4.0, 6.0, 5.0, 6.0]);
    let misaligned = std::ptr::without_provenance::<Bag>(1);
    // SAFETY: handles that are null or not aligned are refused.
    unsafe {
        let none = null();
        let call = |bag| steptime_bag_forward(bag, cpu, 1, 0, none, none, 64, null(), start, 4);
        assert_eq!((call(null()), call(misaligned)), (1, 1));
    }
    // SAFETY: they are used no more.
    unsafe {
        steptime_bag_free(bag);
        steptime_cpu_free(cpu);
    }
}

#[test]
fn tables_that_are_trained_share_no_weights() {
    let mut weights = vec![0.5_f32; 12];
    let start = weights.as_mut_ptr();
    let new = |starts: [*mut f32; 2]| {
        // SAFETY: both have as many floats; where they overlap they are refused.
        unsafe { steptime_backward_new(2, starts.as_ptr(), [3, 3].as_ptr(), [2, 2].as_ptr(), 0, 0.1) }
    };
    assert!(new([start, start]).is_null());
    assert!(error().contains("table 0 and table 1 overlap"), "{}", error());
    assert!(new([start.wrapping_add(5), start]).is_null());
    assert!(new([start, null_mut()]).is_null());
    assert!(error().contains("table 1: 6 elements at a null pointer"), "{}", error());
    let apart = new([start.wrapping_add(6), start]);
    assert!(!apart.is_null(), "{}", error());
    let (cpu, indices, offsets, gradient) = (plain(), [2_i64, 0], [0_i64, 1, 2], [1.0_f32; 4]);
    let step_with = |bags, stride, gradient: *const f32| {
        let (indices, offsets) = (indices.as_ptr(), offsets.as_ptr());
        // SAFETY: as many elements as one bag of each table has; everything else is refused.
        unsafe { steptime_backward_step(apart, cpu, bags, 2, indices, offsets, null(), gradient, stride) }
    };
    let step = |bags, stride| step_with(bags, stride, gradient.as_ptr());
    assert_eq!(step_with(1, 4, start.wrapping_add(8)), 1);
    assert!(error().contains("gradient overlap"), "{}", error());
    assert_eq!(step(1 << 63, 4), 1);
    assert!(error().contains("more offsets than can be counted"), "{}", error());
    assert_eq!(step(1, 4), 0, "{}", error());
    // SAFETY: they are used no more.
    unsafe {
        steptime_backward_free(apart);
        steptime_cpu_free(cpu);
    }
    assert_eq!(weights, [0.4, 0.4, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.4, 0.4]);
}

#[test]
fn products_write_no_operand() {
    let (cpu, a) = (plain(), [1.0_f32, 2.0, 3.0, 4.0]);
    let mut c = [0.0_f32; 4];
    let (start, to) = (a.as_ptr(), c.as_mut_ptr());
    let product = |m, a_row, a: *const f32, c: *mut f32| {
        // SAFETY: 2 x 2 floats each; everything else is refused.
        unsafe { steptime_gemm(cpu, m, 2, 2, 1.0, a, a_row, 1, start, 2, 1, 0.0, c) }
    };
    assert_eq!(product(2, 2, start, to), 0, "{}", error());
    assert_eq!(product(2, 2, to, to), 1);
    assert!(error().contains("a and c overlap"), "{}", error());
    assert_eq!(product(2, usize::MAX, start, to), 1);
    assert_eq!(product(2, 2, null(), to), 1);
    assert!(error().contains("a: 4 elements at a null pointer"), "{}", error());
    assert_eq!(product(2, 2, start, null_mut()), 1);
    assert!(error().contains("no c"), "{}", error());
    assert_eq!(product(0, 2, null(), null_mut()), 0, "{}", error());
    // SAFETY: it is used no more.
    unsafe { steptime_cpu_free(cpu) };
    assert_eq!(c, [7.0, 10.0, 15.0, 22.0]);
}

#[test]
fn gradients_of_a_layer_are_apart() {
    let (cpu, x) = (plain(), [1.0_f32; 6]);
    let (mut dx, mut dweight) = ([0.0_f32; 6], [0.0_f32; 6]);
    let (dx, dweight, from) = (dx.as_mut_ptr(), dweight.as_mut_ptr(), x.as_ptr());
    let run = |dx: *mut f32, dweight: *mut f32| {
        let none = null_mut();
        // SAFETY: batch, inputs and outputs of 2, 2 and 2 take four floats each; null is not computed.
        unsafe { steptime_linear_backward(cpu, 2, 2, 2, from, from, from, from, 0, dx, dweight, none) }
    };
    assert_eq!(run(dx, dweight), 0, "{}", error());
    assert_eq!(run(null_mut(), null_mut()), 0, "{}", error());
    assert_eq!(run(dx, dx.wrapping_add(2)), 1);
    assert!(error().contains("dx and dweight overlap"), "{}", error());
    // SAFETY: it is used no more.
    unsafe { steptime_cpu_free(cpu) };
}

#[test]
fn convolutions_write_no_operand() {
    let (cpu, x) = (plain(), [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    let (weight, bias, dy) = ([1.0_f32, 0.0, 0.0, 1.0], [0.5_f32], [1.0_f32, 0.0, 0.0, 1.0]);
    let sizes = ConvolutionSizes {
        samples: 1,
        inputs: 1,
        outputs: 1,
        image: [3, 3],
        kernel: [2, 2],
        stride: [1, 1],
        padding: [0, 0],
        dilation: [1, 1],
        groups: 1,
        channels_last: 0,
    };
    let mut y = [0.0_f32; 4];
    let to = y.as_mut_ptr();
    let forward = |sizes: &ConvolutionSizes, x: *const f32, bias: *const f32, y: *mut f32| {
        // SAFETY: as many floats as the first sizes give; everything else is refused.
        unsafe { steptime_convolution(cpu, sizes, x, weight.as_ptr(), bias, y) }
    };
    assert_eq!(forward(&sizes, x.as_ptr(), bias.as_ptr(), to), 0, "{}", error());
    let none = null();
    for (sizes, x, y, what) in [
        (ConvolutionSizes { groups: 2, ..sizes }, x.as_ptr(), to, "2 groups do not divide"),
        (ConvolutionSizes { channels_last: 2, ..sizes }, x.as_ptr(), to, "no layout 2"),
        (sizes, none, to, "x: 9 elements at a null pointer"),
        (sizes, x.as_ptr(), null_mut(), "y: 4 elements at a null pointer"),
        (sizes, to, to, "overlap"),
    ] {
        assert_eq!(forward(&sizes, x, none, y), 1, "{what}");
        assert!(error().contains(what), "{} for {what}", error());
    }
    assert_eq!(y, [6.5, 8.5, 12.5, 14.5]);
    let (mut dx, mut dweight, mut dbias) = ([0.0_f32; 9], [0.0_f32; 4], [0.0_f32]);
    let (dx_to, dweight_to, dbias_to) = (dx.as_mut_ptr(), dweight.as_mut_ptr(), dbias.as_mut_ptr());
    let backward = |x: *const f32, weight: *const f32, dx: *mut f32, dweight: *mut f32| {
        // SAFETY: as many floats as the sizes give; results at null pointers are not computed, and null operands are
        // refused.
        unsafe { steptime_convolution_backward(cpu, &sizes, dy.as_ptr(), x, weight, dx, dweight, dbias_to) }
    };
    assert_eq!(backward(x.as_ptr(), none, null_mut(), dweight_to), 0, "{}", error());
    assert_eq!(backward(none, weight.as_ptr(), dx_to, null_mut()), 0, "{}", error());
    assert_eq!(backward(none, weight.as_ptr(), dx_to, dweight_to), 1);
    assert!(error().contains("x: 9 elements at a null pointer"), "{}", error());
    assert_eq!(backward(x.as_ptr(), weight.as_ptr(), dx_to, dx_to), 1);
    assert!(error().contains("dx and dweight overlap"), "{}", error());
    // SAFETY: it is used no more.
    unsafe { steptime_cpu_free(cpu) };
    assert_eq!(dx, [1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0]);
    assert_eq!((dweight, dbias), ([6.0, 8.0, 12.0, 14.0], [2.0]));
}

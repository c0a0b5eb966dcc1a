//! Copies against the plain version, for all types, strides and sizes.

use half::{bf16, f16};
use proptest::prelude::*;
use steptime_ops::rearrange::{RearrangeError, concat, contiguous, copy, split};
use steptime_ops::{Cpu, Isa};
use steptime_tensor::{Element, Tensor, View, ViewMut};

fn available() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().filter(|isa| isa.is_available())
}

/// A tensor whose elements, of any type, encode their position.
fn numbered<T: Element>(shape: &[usize], number: fn(usize) -> T) -> Tensor<T> {
    Tensor::from_fn(shape, number).unwrap()
}

/// Copies a permuted, sliced view into one with another order of dimensions.
fn check<T: Element>(
    cpu: &Cpu,
    shape: [usize; 3],
    from: [usize; 3],
    to: [usize; 3],
    cut: usize,
    number: fn(usize) -> T,
) {
    // Storage whose permuted view has `shape`.
    let stored = |order: [usize; 3]| {
        let mut sizes = [0; 3];
        order.iter().zip(shape).for_each(|(&axis, size)| sizes[axis] = size + cut);
        sizes
    };
    let input = numbered(&stored(from), number);
    let input = input.view().permute(&from).unwrap();
    let input = (0..3).fold(input, |view, axis| view.slice(axis, cut..shape[axis] + cut).unwrap());
    let run = |by: &dyn Fn(ViewMut<'_, T>)| {
        let mut output = Tensor::<T>::zeros(&stored(to)).unwrap();
        let view = output.make_mut().permute(&to).unwrap();
        by((0..3).fold(view, |view, axis| view.slice(axis, cut / 2..shape[axis] + cut / 2).unwrap()));
        output.to_vec()
    };
    let ours = run(&|view| copy(cpu, &input, view).unwrap());
    let plain = run(&|mut view| view.copy_from(&input).unwrap());
    assert!(ours == plain, "{} {shape:?} {from:?} {to:?} {cut}", cpu.isa());
}

const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_strides_copy_as_the_plain_version_does(
        shape in prop::array::uniform3(0..40usize), from in 0..6usize, to in 0..6usize, cut in 0..3usize,
    ) {
        for isa in available() {
            let cpu = Cpu::with_isa(isa, 1).unwrap();
            let (from, to) = (ORDERS[from], ORDERS[to]);
            check::<f32>(&cpu, shape, from, to, cut, |at| at as f32);
            check::<f16>(&cpu, shape, from, to, cut, |at| f16::from_bits((at % 30000) as u16));
            check::<bf16>(&cpu, shape, from, to, cut, |at| bf16::from_bits((at % 30000) as u16));
            check::<i32>(&cpu, shape, from, to, cut, |at| at as i32);
            check::<i64>(&cpu, shape, from, to, cut, |at| at as i64);
            check::<u8>(&cpu, shape, from, to, cut, |at| at as u8);
        }
    }

    #[test]
    fn splitting_undoes_concatenation(
        sizes in prop::collection::vec(0..20usize, 1..6), axis in 0..3usize, turned in any::<bool>(),
    ) {
        for isa in available() {
            let cpu = Cpu::with_isa(isa, 2).unwrap();
            let shape = |size: usize| {
                let mut shape = [3, 17, 5];
                shape[axis] = size;
                shape
            };
            let parts: Vec<_> = sizes.iter().map(|&size| numbered(&shape(size), |at| at as i32 + 1)).collect();
            let total = sizes.iter().sum();
            let mut whole = Tensor::<i32>::zeros(&shape(total)).unwrap();
            if turned {
                let [a, b, c] = shape(total);
                whole = Tensor::<i32>::zeros(&[c, b, a]).unwrap().transpose(0, 2).unwrap();
            }
            let views: Vec<_> = parts.iter().map(|part| part.view()).collect();
            concat(&cpu, &views, axis, whole.make_mut()).unwrap();
            let mut start = 0;
            for part in &parts {
                let end = start + part.shape()[axis];
                prop_assert_eq!(&whole.view().slice(axis, start..end).unwrap(), part);
                start = end;
            }
            let mut back: Vec<_> = sizes.iter().map(|&size| Tensor::<i32>::zeros(&shape(size)).unwrap()).collect();
            let mut to: Vec<_> = back.iter_mut().map(|part| part.make_mut()).collect();
            split(&cpu, &whole.view(), axis, &mut to).unwrap();
            drop(to);
            prop_assert_eq!(back, parts);
        }
    }
}

/// Copies large enough to be divided into parts and to bypass the caches.
#[test]
fn large_copies_match_at_any_number_of_threads() {
    let wide = numbered(&[1500, 1601], |at| at as f32);
    let turned = wide.view().transpose(0, 1).unwrap();
    let plain = turned.to_tensor();
    let part = wide.view().slice(1, 0..1536).unwrap();
    for isa in available() {
        for threads in [1, 2, 3, 7] {
            let cpu = Cpu::with_isa(isa, threads).unwrap();
            assert_eq!(contiguous(&cpu, &turned).unwrap(), plain, "{isa}, {threads} threads");
            // A part whose rows start anywhere, into rows that are aligned.
            assert_eq!(contiguous(&cpu, &part).unwrap(), part, "{isa}, {threads} threads");
        }
    }
    // Aligned rows and columns on both sides.
    let even = wide.view().slice(0, 0..1440).unwrap().slice(1, 0..1536).unwrap().to_tensor();
    let turned = even.view().transpose(0, 1).unwrap();
    assert_eq!(contiguous(&Cpu::new(2).unwrap(), &turned).unwrap(), turned);
}

#[test]
fn broadcast_views_are_repeated() {
    let row = numbered(&[3], |at| at as i64);
    let cpu = Cpu::new(1).unwrap();
    let wide = row.view().reshape(&[3, 1]).unwrap().broadcast(&[2, 3, 2]).unwrap();
    assert_eq!(contiguous(&cpu, &wide).unwrap().to_vec(), [0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2]);
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let cpu = Cpu::new(1).unwrap();
    let (a, b) = (numbered(&[2, 3], |at| at as u8), numbered(&[2, 4], |at| at as u8));
    let mut out = Tensor::<u8>::zeros(&[2, 6]).unwrap();
    assert!(matches!(copy(&cpu, &a.view(), out.make_mut()), Err(RearrangeError::Shapes { .. })));
    let mut refused = |from: &[View<'_, u8>], axis, expected| {
        let error = concat(&cpu, from, axis, out.make_mut()).unwrap_err();
        assert!(matches!(error, RearrangeError::Piece { index, .. } if index == expected), "{error}");
    };
    refused(&[a.view(), b.view()], 1, 1);
    refused(&[a.view()], 1, 1);
    refused(&[a.view(), a.view()], 0, 0);
    refused(&[a.view(), a.view()], 2, 0);
    refused(&[], 1, 0);
    refused(&[], 7, 0);
    let mut parts = [Tensor::<u8>::zeros(&[2, 5]).unwrap(), Tensor::zeros(&[2, 2]).unwrap()];
    let mut to: Vec<_> = parts.iter_mut().map(|part| part.make_mut()).collect();
    assert!(split(&cpu, &out.view(), 1, &mut to).is_err());
    let endless =
        a.view().select(0, 0).unwrap().slice(0, 0..1).unwrap().broadcast(&[usize::MAX / 2]).unwrap();
    assert!(matches!(contiguous(&cpu, &endless), Err(RearrangeError::Tensor(_))));
}

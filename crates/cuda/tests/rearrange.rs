//! Copies, transposes and concatenation on a GPU against the CPU. Without a GPU nothing is tested, which is printed.

mod support;

use steptime_cuda::rearrange::{Concat, Copy};
use steptime_cuda::{Buffer, Stream};
use steptime_ops::{Cpu, rearrange};
use steptime_tensor::{Layout, Tensor};

fn gpu() -> Option<Stream> {
    support::device().map(|device| device.stream().unwrap())
}

fn values(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|at| (at * 7919 + seed) as f32).collect()
}

#[test]
fn permuted_copies_are_those_of_the_cpu() {
    let Some(stream) = gpu() else { return };
    let cpu = Cpu::new(1).unwrap();
    let cases: [(&[usize], &[usize]); 8] = [
        (&[100, 70], &[1, 0]),
        (&[33, 31], &[1, 0]),
        (&[9, 64, 40], &[0, 2, 1]),
        (&[9, 64, 40], &[2, 1, 0]),
        (&[9, 64, 40], &[1, 0, 2]),
        (&[2, 3, 17, 19], &[3, 1, 0, 2]),
        (&[5, 8], &[0, 1]),
        (&[0, 8], &[1, 0]),
    ];
    for (shape, order) in cases {
        let given = values(shape.iter().product(), 3);
        let tensor = Tensor::from_vec(given.clone(), shape).unwrap();
        let view = tensor.view().permute(order).unwrap();
        let expected = rearrange::contiguous(&cpu, &view).unwrap().to_vec();
        let to = Layout::contiguous(view.shape()).unwrap();
        let copy = Copy::new(stream.device(), view.layout(), &to).unwrap();
        let from = Buffer::from_host(&stream, &given).unwrap();
        let mut out = Buffer::from_host(&stream, &vec![f32::NAN; given.len()]).unwrap();
        copy.run(&stream, from.as_ref(), &mut out.as_mut()).unwrap();
        assert_eq!(out.to_host(&stream).unwrap(), expected, "{shape:?} {order:?}");
        if !given.is_empty() {
            assert!(copy.run(&stream, from.as_ref().slice(1..given.len()), &mut out.as_mut()).is_err());
            println!("{}", copy.geometry().unwrap());
        }
    }
}

#[test]
fn pieces_are_put_one_after_the_other() {
    let Some(stream) = gpu() else { return };
    let cpu = Cpu::new(1).unwrap();
    for (axis, shapes) in [(1, [[64, 13], [64, 27], [64, 1]]), (0, [[3, 40], [5, 40], [1, 40]])] {
        let inputs: Vec<Tensor<f32>> = (0..3)
            .map(|at| Tensor::from_vec(values(shapes[at].iter().product(), at), &shapes[at]).unwrap())
            .collect();
        let mut shape = shapes[0];
        shape[axis] = shapes.iter().map(|shape| shape[axis]).sum();
        let mut expected = Tensor::zeros(&shape).unwrap();
        let views: Vec<_> = inputs.iter().map(Tensor::view).collect();
        rearrange::concat(&cpu, &views, axis, expected.view_mut().unwrap()).unwrap();
        let layouts: Vec<Layout> = views.iter().map(|view| view.layout().clone()).collect();
        let to = Layout::contiguous(&shape).unwrap();
        let concat = Concat::new(stream.device(), &layouts, axis, &to).unwrap();
        let buffers: Vec<_> =
            inputs.iter().map(|input| Buffer::from_host(&stream, &input.to_vec()).unwrap()).collect();
        let slices: Vec<_> = buffers.iter().map(Buffer::as_ref).collect();
        let mut out = Buffer::from_host(&stream, &vec![f32::NAN; to.len()]).unwrap();
        concat.run(&stream, &slices, &mut out.as_mut()).unwrap();
        assert_eq!(out.to_host(&stream).unwrap(), expected.to_vec());
        assert!(concat.run(&stream, &slices[1..], &mut out.as_mut()).is_err());
    }
}

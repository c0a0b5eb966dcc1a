//! Functions of typed operands on a GPU against plain loops. Without a GPU the tests are skipped with a message.

use crate::support;

use bytemuck::Pod;
use steptime_cuda::pointwise::{Chain, Function, Input, Pointwise, Type};
use steptime_cuda::{Buffer, Slice, Stream};
use steptime_ops::elementwise::{Expr, Program};
use steptime_tensor::Layout;

fn gpu() -> Option<Stream> {
    support::device().map(|device| device.stream().unwrap())
}

fn layout(shape: &[usize]) -> Layout {
    Layout::contiguous(shape).unwrap()
}

/// Positions of a layout's elements in row-major order.
fn positions(layout: &Layout) -> Vec<usize> {
    let shape = layout.shape();
    let index = |number: usize| -> Vec<usize> {
        (0..shape.len())
            .map(|axis| number / shape[axis + 1..].iter().product::<usize>() % shape[axis])
            .collect()
    };
    (0..layout.len()).map(|number| layout.position(&index(number)).unwrap()).collect()
}

fn span(layout: &Layout) -> usize {
    layout.last().map_or(0, |last| last + 1)
}

/// Numbers on both sides of 0, with special ones.
fn floats(count: usize) -> Vec<f32> {
    let special = [0.0, -0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.5, -0.5, 1e19, -1e19, 3.0];
    let value = |at: usize| match at % 3 {
        0 => special[at / 3 % special.len()],
        _ => ((at * 7919) % 65_521) as f32 / 8190.0 - 4.0,
    };
    (0..count).map(value).collect()
}

fn flags(count: usize) -> Vec<u8> {
    (0..count).map(|at| [0, 1, 0, 2, 255][at * 7919 / 8 % 5]).collect()
}

fn ints(count: usize) -> Vec<i64> {
    let special = [0, 1, -1, i64::MIN, i64::MAX, (1 << 24) + 1, 123_456_789_123];
    (0..count).map(|at| if at % 2 == 0 { special[at / 2 % 7] } else { at as i64 * 7919 - 5000 }).collect()
}

/// Layout and type of an operand.
#[derive(Debug, Clone)]
struct Operand {
    layout: Layout,
    r#type: Type,
}

/// A function compiled for operands.
fn compiled(
    stream: &Stream,
    function: Function,
    inputs: &[Operand],
    output: &Operand,
) -> Result<Pointwise, steptime_cuda::Error> {
    let types: Vec<Type> = inputs.iter().map(|input| input.r#type).collect();
    let layouts: Vec<Layout> = inputs.iter().map(|input| input.layout.clone()).collect();
    let chain = Chain::from_function(function, &types, &[output.r#type])?;
    Pointwise::new(stream.device(), &chain, &layouts, std::slice::from_ref(&output.layout))
}

/// An input on the host: its bytes, layout and type.
struct Given {
    bytes: Vec<u8>,
    operand: Operand,
}

impl Given {
    fn new<T: Pod>(values: &[T], layout: &Layout, r#type: Type) -> Given {
        let operand = Operand { layout: layout.clone(), r#type };
        Given { bytes: bytemuck::cast_slice(values).to_vec(), operand }
    }
}

/// Runs a function over a buffer that holds `before`, and compares all of its bytes: `value` of an element's number and the
/// positions of its inputs gives the expected element, `None` where it is not changed.
fn compare<T: Pod>(
    stream: &Stream,
    function: Function,
    inputs: &[Given],
    output: &Operand,
    before: T,
    value: impl Fn(usize, &[usize]) -> Option<T>,
) {
    let shape = output.layout.shape();
    let all: Vec<Vec<usize>> =
        inputs.iter().map(|input| positions(&input.operand.layout.broadcast(shape).unwrap())).collect();
    let mut expected = vec![before; span(&output.layout) + 3];
    let mut out = Buffer::from_host(stream, bytemuck::cast_slice::<T, u8>(&expected)).unwrap();
    for (number, position) in positions(&output.layout).into_iter().enumerate() {
        let places: Vec<usize> = all.iter().map(|places| places[number]).collect();
        if let Some(value) = value(number, &places) {
            expected[position] = value;
        }
    }
    let operands: Vec<Operand> = inputs.iter().map(|input| input.operand.clone()).collect();
    let what = format!("{function:?} of {operands:?} to {output:?}");
    let op = compiled(stream, function, &operands, output).unwrap();
    let buffers: Vec<Buffer<u8>> =
        inputs.iter().map(|input| Buffer::from_host(stream, &input.bytes).unwrap()).collect();
    let slices: Vec<_> = buffers.iter().map(|buffer| Input::Slice(buffer.as_ref())).collect();
    op.run(stream, &slices, &mut [out.as_mut()]).unwrap();
    let found = out.to_host(stream).unwrap();
    let expected: &[u8] = bytemuck::cast_slice(&expected);
    // A NaN may have other bits than on the host.
    let is_nan =
        |bytes: &[u8]| output.r#type == Type::F32 && bytemuck::pod_read_unaligned::<f32>(bytes).is_nan();
    let size = output.r#type.size();
    let mut elements = found.chunks(size).zip(expected.chunks(size));
    let wrong =
        elements.position(|(found, expected)| found != expected && !(is_nan(found) && is_nan(expected)));
    assert_eq!(wrong, None, "{what}: element {wrong:?}");
}

/// Layouts of an output, and of inputs that broadcast to it.
fn cases() -> Vec<(Layout, [Layout; 3])> {
    let turned = layout(&[36, 96]).transpose(0, 1).unwrap();
    let part = layout(&[70, 40]).slice(1, 4..36, 1).unwrap().slice(0, 2..66, 1).unwrap();
    let odd = layout(&[9, 40]).slice(1, 3..20, 1).unwrap();
    let whole = |shape: &[usize]| [layout(shape), layout(shape), layout(shape)];
    vec![
        (layout(&[1000]), whole(&[1000])),
        (layout(&[1001]), whole(&[1001])),
        (layout(&[]), whole(&[])),
        (layout(&[0, 4]), whole(&[0, 4])),
        (layout(&[64, 128]), [layout(&[128]), layout(&[64, 1]), layout(&[1])]),
        (layout(&[7, 5, 3]), [layout(&[5, 1]), layout(&[7, 5, 3]), layout(&[])]),
        (layout(&[96, 36]), [turned.clone(), layout(&[36]), turned.clone()]),
        (turned, whole(&[96, 36])),
        (part.clone(), [layout(&[64, 32]), part.clone(), layout(&[64, 1])]),
        (odd.clone(), [odd.clone(), layout(&[9, 17]), odd]),
        (layout(&[3, 30_000]), whole(&[3, 30_000])),
    ]
}

#[test]
fn comparisons_and_choices_are_those_of_a_loop() {
    let Some(stream) = gpu() else { return };
    for (to, [first, second, third]) in cases() {
        let x = floats(span(&first));
        let given = || Given::new(&x, &first, Type::F32);
        let bools = Operand { layout: to.clone(), r#type: Type::Bool };
        let numbers = Operand { layout: to.clone(), r#type: Type::F32 };
        for value in [0.0, -0.0, 0.5, f32::NAN] {
            compare(&stream, Function::Equal(value), &[given()], &bools, 9u8, |_, at| {
                Some(u8::from(x[at[0]] == value))
            });
            compare(&stream, Function::AtLeast(value), &[given()], &bools, 9u8, |_, at| {
                Some(u8::from(x[at[0]] >= value))
            });
            compare(&stream, Function::ClampMin(value), &[given()], &numbers, 7.0f32, |_, at| {
                Some(if x[at[0]] < value { value } else { x[at[0]] })
            });
        }
        let mask = flags(span(&first));
        let mask_of = || Given::new(&mask, &first, Type::Bool);
        let (one, other) = (floats(span(&second)), floats(span(&third)));
        let inputs = [mask_of(), Given::new(&one, &second, Type::F32), Given::new(&other, &third, Type::F32)];
        compare(&stream, Function::Where, &inputs, &numbers, 7.0f32, |_, at| {
            Some(if mask[at[0]] != 0 { one[at[1]] } else { other[at[2]] })
        });
        let inputs = [mask_of(), Given::new(&one, &second, Type::F32)];
        compare(&stream, Function::MaskedFill(-2.5), &inputs, &numbers, 7.0f32, |_, at| {
            Some(if mask[at[0]] != 0 { -2.5 } else { one[at[1]] })
        });
    }
}

#[test]
fn numbers_and_positions_fill_their_layout_only() {
    let Some(stream) = gpu() else { return };
    for (to, _) in cases() {
        let operand = |r#type| Operand { layout: to.clone(), r#type };
        for value in [0.0, -1.75, 1e300, f64::NAN] {
            let function = || Function::Fill(value);
            compare(&stream, function(), &[], &operand(Type::F32), 7.0f32, |_, _| Some(value as f32));
            compare(&stream, function(), &[], &operand(Type::I64), 7i64, |_, _| Some(value as i64));
            compare(&stream, function(), &[], &operand(Type::Bool), 9u8, |_, _| Some(u8::from(value != 0.0)));
        }
        let number = |number: usize, _: &[usize]| Some(number as i64);
        compare(&stream, Function::Positions, &[], &operand(Type::I64), -1i64, number);
    }
}

#[test]
fn conversions_are_those_of_rust() {
    let Some(stream) = gpu() else { return };
    for (to, [first, ..]) in cases() {
        let count = span(&first);
        let (x, whole, truth) = (floats(count), ints(count), flags(count));
        let to_f32 = Operand { layout: to.clone(), r#type: Type::F32 };
        let to_i64 = Operand { layout: to.clone(), r#type: Type::I64 };
        let to_bool = Operand { layout: to.clone(), r#type: Type::Bool };
        let f = || Function::Convert;
        let from = [Given::new(&x, &first, Type::F32)];
        compare(&stream, f(), &from, &to_f32, 7.0f32, |_, at| Some(x[at[0]]));
        compare(&stream, f(), &from, &to_i64, 7i64, |_, at| Some(x[at[0]] as i64));
        compare(&stream, f(), &from, &to_bool, 9u8, |_, at| Some(u8::from(x[at[0]] != 0.0)));
        let from = [Given::new(&whole, &first, Type::I64)];
        compare(&stream, f(), &from, &to_f32, 7.0f32, |_, at| Some(whole[at[0]] as f32));
        compare(&stream, f(), &from, &to_i64, 7i64, |_, at| Some(whole[at[0]]));
        compare(&stream, f(), &from, &to_bool, 9u8, |_, at| Some(u8::from(whole[at[0]] != 0)));
        let from = [Given::new(&truth, &first, Type::Bool)];
        compare(&stream, f(), &from, &to_f32, 7.0f32, |_, at| Some(f32::from(u8::from(truth[at[0]] != 0))));
        compare(&stream, f(), &from, &to_i64, 7i64, |_, at| Some(i64::from(truth[at[0]] != 0)));
        compare(&stream, f(), &from, &to_bool, 9u8, |_, at| Some(u8::from(truth[at[0]] != 0)));
    }
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let Some(stream) = gpu() else { return };
    let operand = |r#type| Operand { layout: layout(&[64]), r#type };
    let op = compiled(&stream, Function::Convert, &[operand(Type::I64)], &operand(Type::F32)).unwrap();
    let from = Buffer::<u8>::zeros(&stream, 64 * 8 + 8).unwrap();
    let mut to = Buffer::<u8>::zeros(&stream, 64 * 4).unwrap();
    let mut run = |from: &[Slice<'_, u8>]| {
        let inputs: Vec<_> = from.iter().copied().map(Input::Slice).collect();
        op.run(&stream, &inputs, &mut [to.as_mut()]).map_err(|error| error.to_string())
    };
    let all = from.as_ref();
    assert!(run(&[all]).is_ok());
    assert!(run(&[]).unwrap_err().contains("1 are needed"));
    assert!(run(&[all.slice(0..511)]).unwrap_err().contains("512 are needed"));
    assert!(run(&[all.slice(8..520)]).unwrap_err().contains("multiple of 16"));
    assert!(compiled(&stream, Function::Where, &[], &operand(Type::F32)).is_err());
}

/// Rounds to bfloat16 and back.
fn rounded(value: f32) -> f32 {
    half::bf16::from_f32(value).to_f32()
}

#[test]
fn a_chain_has_the_bits_of_its_functions() {
    let Some(stream) = gpu() else { return };
    let product = || Function::Program(Program::new(&[Expr::input(0) * Expr::input(1)]).unwrap());
    let sum = || Function::Program(Program::new(&[Expr::input(0) + Expr::input(1)]).unwrap());
    for (to, [first, second, _]) in cases() {
        let x: Vec<f32> = (0..span(&first)).map(|at| ((at * 7919) % 65_521) as f32 / 8190.0 - 4.0).collect();
        let y: Vec<half::bf16> = (0..span(&second))
            .map(|at| half::bf16::from_f32(((at * 104_729) % 65_521) as f32 / 8190.0 - 4.0))
            .collect();
        let mut chain = Chain::new(&[Type::F32, Type::Bf16]);
        let narrow = chain.call(product(), &[0, 1], &[Type::Bf16]).unwrap().start;
        let whole = chain.call(sum(), &[narrow, 0], &[Type::F32]).unwrap().start;
        let flag = chain.call(Function::AtLeast(0.0), &[whole], &[Type::Bool]).unwrap().start;
        [narrow, whole, flag].into_iter().for_each(|value| chain.store(value).unwrap());
        let layouts = [first.clone(), second.clone()];
        let op =
            Pointwise::new(stream.device(), &chain, &layouts, &[to.clone(), to.clone(), to.clone()]).unwrap();
        let x_on_gpu = Buffer::from_host(&stream, bytemuck::cast_slice::<f32, u8>(&x)).unwrap();
        let y_on_gpu = Buffer::from_host(&stream, bytemuck::cast_slice::<half::bf16, u8>(&y)).unwrap();
        let mut outs = [2, 4, 1].map(|size| Buffer::<u8>::zeros(&stream, size * span(&to)).unwrap());
        let [narrow, whole, flag] = &mut outs;
        let inputs = [Input::Slice(x_on_gpu.as_ref()), Input::Slice(y_on_gpu.as_ref())];
        op.run(&stream, &inputs, &mut [narrow.as_mut(), whole.as_mut(), flag.as_mut()]).unwrap();
        let [narrow, whole, flag] = outs.map(|out| out.to_host(&stream).unwrap());
        let [x_at, y_at] = [&first, &second].map(|layout| positions(&layout.broadcast(to.shape()).unwrap()));
        for (number, at) in positions(&to).into_iter().enumerate() {
            let (x, y) = (x[x_at[number]], y[y_at[number]].to_f32());
            let expected = rounded(x * y);
            let read =
                |bytes: &[u8]| f32::from_bits(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
            assert_eq!(half::bf16::from_le_bytes([narrow[2 * at], narrow[2 * at + 1]]).to_f32(), expected);
            assert_eq!(read(&whole[4 * at..]), expected + x, "{to:?} {number}");
            assert_eq!(flag[at], u8::from(expected + x >= 0.0));
        }
    }
}

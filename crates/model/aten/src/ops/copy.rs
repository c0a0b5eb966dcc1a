//! Copies: between host and device by the copy engine; within the device also by it if type and order are the
//! same, otherwise by a kernel.

use crate::bound_call::BoundCall;
use crate::build_lowering::{self, giving};
use crate::call::{Arg, Device, OpCall, Tensor};
use crate::dtype::Dtype;
use crate::kernel::{Elementwise, Kernel, Layout, Operand, Role, Slot, Transfer, TransferDirection, Work};
use crate::layout;
use crate::op_def::{Lowering, OpDef};
use crate::operands::{operand, read};

/// Definitions of this file.
pub static OPS: &[OpDef] = &[
    OpDef::leaf(&["aten::copy_"], copy).expand(staged),
    OpDef::leaf(&["aten::_local_scalar_dense"], scalar),
    OpDef::composite(&["aten::item"])
        .expand(|call| vec![OpCall::new("aten::_local_scalar_dense", call.inputs.clone())]),
    OpDef::composite(&["aten::clone"]).outputs(cloned).expand(clone),
    OpDef::composite(&["aten::contiguous"]).outputs(contiguous).expand(make_contiguous),
    OpDef::composite(&["aten::_to_copy"]).outputs(converted).expand(convert),
    OpDef::composite(&["aten::to", "aten::type_as"]).expand(to),
    OpDef::composite(&["aten::cuda", "aten::float", "aten::half"]).expand(to).arguments(&["self", "other"]),
    // Only into host memory.
    OpDef::nothing(&["aten::pin_memory", "aten::_pin_memory", "aten::is_pinned"]),
];

const fn is_host(tensor: &Tensor) -> bool {
    matches!(tensor.device, Device::Cpu | Device::Pinned)
}

/// Removes the source from a copy of a tensor onto itself, which copies nothing.
pub(crate) fn onto_itself(call: &mut OpCall) {
    if call.name == "aten::copy_"
        && let Some(source) = call.inputs.get_mut(1)
    {
        *source = Arg::None;
    }
}

fn copy(call: &BoundCall<'_>) -> Option<Lowering> {
    let (to, Some(from)) = (call.tensor("self")?, call.tensor("src")) else { return Some(Lowering::Nothing) };
    if to.is_sparse() || from.is_sparse() {
        return Some(Lowering::Children);
    }
    if to.numel() == 0 || is_host(to) && is_host(from) {
        return Some(Lowering::Nothing);
    }
    if is_host(to) != is_host(from) {
        return Some(if needs_staging(to, from) { Lowering::Children } else { transfer(to, from) });
    }
    let (read, written) = (read(call, "src"), operand(Slot::Input(0, 0), Role::Write, to));
    let layout = layout::elementwise(to, &[from]);
    let flat = matches!(layout, Layout::Vectorized | Layout::Dense) && from.numel() == to.numel();
    let kernel = if flat && to.dtype == from.dtype {
        Kernel::DeviceCopy
    } else {
        let elements = Elementwise { op: "copy", work: Work::Light, numel: to.numel(), inputs: 1, layout };
        Kernel::Elementwise(elements)
    };
    Some(build_lowering::work(kernel, to.dtype, [read, Some(written)], 0))
}

/// Whether a copy between host and device has to change type or order.
fn needs_staging(to: &Tensor, from: &Tensor) -> bool {
    let same = to.is_contiguous() && from.is_contiguous() || to.strides == from.strides && to.is_dense();
    to.dtype != from.dtype || !same || to.numel() != from.numel()
}

fn transfer(to: &Tensor, from: &Tensor) -> Lowering {
    let up = is_host(from);
    let (host, slot, role) =
        if up { (from, Slot::Input(0, 0), Role::Write) } else { (to, Slot::Input(1, 0), Role::Read) };
    let device = if up { to } else { from };
    let kernel = Kernel::Transfer(Transfer {
        direction: if up { TransferDirection::ToDevice } else { TransferDirection::ToHost },
        pinned: host.device == Device::Pinned,
        bytes: to.bytes(),
    });
    build_lowering::work(kernel, to.dtype, [Some(Operand { slot, role, bytes: device.bytes() })], 0)
}

/// Returns the launches of the copy of one number to the host.
fn scalar(call: &BoundCall<'_>) -> Option<Lowering> {
    let from = call.tensor("self")?;
    let bytes = from.dtype.size();
    let kernel = Kernel::Transfer(Transfer { direction: TransferDirection::ToHost, pinned: false, bytes });
    Some(build_lowering::work(kernel, from.dtype, [Some(Operand { bytes, ..read(call, "self")? })], 0))
}

/// Returns the copy of a call's first argument into a tensor.
fn copied(call: &BoundCall<'_>, to: &Tensor) -> Vec<OpCall> {
    call.tensor("self").map(|from| build_lowering::copied(to, from)).into_iter().collect()
}

/// Returns a tensor like another, with its order if it is dense.
fn like(from: &Tensor) -> Tensor {
    let to = if from.is_dense() { from.clone() } else { Tensor::contiguous(&from.shape, from.dtype) };
    Tensor { offset: 0, device: from.device, ..to }
}

/// PyTorch's numbers of memory formats.
pub(crate) const CONTIGUOUS: i64 = 0;
pub(crate) const CHANNELS_LAST: i64 = 2;

/// Returns a tensor like another in a given memory format.
fn in_format(from: &Tensor, format: Option<i64>) -> Tensor {
    match (format, from.shape.as_slice()) {
        (Some(CONTIGUOUS), shape) => Tensor { device: from.device, ..Tensor::contiguous(shape, from.dtype) },
        (Some(CHANNELS_LAST), &[_, c, h, w]) => {
            let strides = [c * h * w, 1, w * c, c];
            Tensor { device: from.device, ..Tensor::strided(&from.shape, &strides, from.dtype) }
        }
        _ => like(from),
    }
}

fn cloned(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    Some(vec![Arg::Tensor(in_format(call.tensor("self")?, call.int("memory_format")))])
}

fn clone(call: &BoundCall<'_>) -> Vec<OpCall> {
    let to =
        call.output(0).cloned().or_else(|| Some(in_format(call.tensor("self")?, call.int("memory_format"))));
    to.map_or_else(Vec::new, |to| copied(call, &to))
}

fn contiguous(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    let format = call.int("memory_format").unwrap_or(CONTIGUOUS);
    Some(vec![Arg::Tensor(in_format(call.tensor("self")?, Some(format)))])
}

/// Whether a tensor is in a memory format already; strides of dimensions of size one do not matter.
pub(crate) fn lies_in(tensor: &Tensor, format: i64) -> bool {
    if format == CONTIGUOUS {
        return tensor.is_contiguous();
    }
    let wanted = in_format(tensor, Some(format)).strides;
    let steps = tensor.strides.iter().zip(&wanted).zip(&tensor.shape);
    tensor.is_sparse() || steps.into_iter().all(|((own, wanted), &size)| size == 1 || own == wanted)
}

fn make_contiguous(call: &BoundCall<'_>) -> Vec<OpCall> {
    let format = call.int("memory_format").unwrap_or(CONTIGUOUS);
    match call.tensor("self") {
        Some(from) if !lies_in(from, format) => {
            let inputs = vec![Arg::Tensor(from.clone()), Arg::Int(format)];
            vec![OpCall::new("aten::clone", inputs)]
        }
        _ => Vec::new(),
    }
}

fn converted(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    let from = call.tensor("self")?;
    let to = in_format(from, call.int("memory_format"));
    let dtype = call.int("dtype").and_then(Dtype::from_code).unwrap_or(from.dtype);
    let device = match call.arg("device") {
        Some(Arg::Text(name)) if name.starts_with("cuda") => Device::Cuda,
        Some(Arg::Text(name)) if name.starts_with("cpu") => Device::Cpu,
        _ => from.device,
    };
    Some(vec![Arg::Tensor(Tensor { dtype, device, ..to })])
}

fn convert(call: &BoundCall<'_>) -> Vec<OpCall> {
    let to = call.output(0).cloned().or_else(|| converted(call)?.first()?.tensors().first().cloned());
    to.map_or_else(Vec::new, |to| copied(call, &to))
}

/// Returns a copy if type or device changes; arguments: self, then the number of a type, a device, or another tensor, in
/// an order that depends on the form.
fn to(call: &BoundCall<'_>) -> Vec<OpCall> {
    let Some(from) = call.tensor("self") else { return Vec::new() };
    // The memory format is only known in the form with all options, in which the type may be absent.
    let format = call.int_at(7).filter(|&format| format == CHANNELS_LAST || format == CONTIGUOUS);
    let to = call.output(0).cloned().or_else(|| {
        let code = call.inputs.iter().take(7).skip(1).find_map(|arg| match arg {
            Arg::Int(code) => Dtype::from_code(*code),
            _ => None,
        });
        let device = call.inputs.iter().find_map(|arg| match arg {
            Arg::Text(name) => Some(if name.starts_with("cuda") { Device::Cuda } else { Device::Cpu }),
            _ => None,
        });
        let other = call.tensor("other");
        Some(Tensor {
            dtype: other.map(|other| other.dtype).or(code).unwrap_or(from.dtype),
            device: other.map(|other| other.device).or(device).unwrap_or(from.device),
            offset: 0,
            ..in_format(from, format)
        })
    });
    let turned = format.is_some_and(|format| !lies_in(from, format));
    match to {
        Some(to) if from.dtype != to.dtype || is_host(from) != is_host(&to) || turned => {
            vec![giving("aten::_to_copy", vec![Arg::Tensor(from.clone())], &to)]
        }
        _ => Vec::new(),
    }
}

/// Returns the calls of a copy between host and device that changes type or order: it does so on the side of the source first.
fn staged(call: &BoundCall<'_>) -> Vec<OpCall> {
    let (Some(to), Some(from)) = (call.tensor("self"), call.tensor("src")) else { return Vec::new() };
    if is_host(to) == is_host(from) || !needs_staging(to, from) {
        return Vec::new();
    }
    let near = Tensor { device: from.device, offset: 0, ..to.clone() };
    vec![build_lowering::copied(&near, from), build_lowering::copied(to, &near)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpSet;

    fn copy_of(to: Tensor, from: Tensor) -> Lowering {
        let inputs = vec![Arg::Tensor(to), Arg::Tensor(from), Arg::Bool(false)];
        OpSet::standard().lower(&OpCall::new("aten::copy_", inputs))
    }

    fn device(shape: &[i64], dtype: Dtype) -> Tensor {
        Tensor::contiguous(shape, dtype)
    }

    fn kernel(lowered: Lowering) -> Kernel {
        let Lowering::Kernel(call) = lowered else { panic!("no kernel") };
        call.kernel
    }

    #[test]
    fn host_tensors_are_transferred() {
        let host = Tensor { device: Device::Pinned, ..device(&[512, 300], Dtype::F32) };
        let Kernel::Transfer(up) = kernel(copy_of(device(&[512, 300], Dtype::F32), host.clone())) else {
            panic!("another kernel")
        };
        assert_eq!(up, Transfer { direction: TransferDirection::ToDevice, pinned: true, bytes: 614_400 });
        assert_eq!(copy_of(device(&[512, 300], Dtype::Bf16), host.clone()), Lowering::Children);
        let call = OpCall::new(
            "aten::copy_",
            vec![Arg::Tensor(device(&[512, 300], Dtype::Bf16)), Arg::Tensor(host)],
        );
        let children = OpSet::standard().expand(&call);
        assert_eq!(OpSet::standard().lower(&children[0]), Lowering::Nothing);
        assert!(matches!(OpSet::standard().lower(&children[1]), Lowering::Kernel(_)));
    }

    #[test]
    fn equal_layouts_are_copied_whole() {
        let a = device(&[512, 300], Dtype::F32);
        assert_eq!(kernel(copy_of(a.clone(), a.clone())), Kernel::DeviceCopy);
        let transposed = Tensor::strided(&[512, 300], &[1, 512], Dtype::F32);
        assert!(matches!(kernel(copy_of(a.clone(), transposed)), Kernel::Elementwise(_)));
        let broadcast = device(&[300], Dtype::F32);
        assert!(matches!(kernel(copy_of(a.clone(), broadcast)), Kernel::Elementwise(_)));
        assert!(matches!(kernel(copy_of(a, device(&[512, 300], Dtype::Bf16))), Kernel::Elementwise(_)));
    }

    #[test]
    fn a_clone_copies_into_a_tensor_of_its_own() {
        let sliced = Tensor::strided(&[512, 50], &[300, 1], Dtype::F32);
        let children =
            OpSet::standard().expand(&OpCall::new("aten::clone", vec![Arg::Tensor(sliced), Arg::None]));
        let Kernel::Elementwise(copy) = kernel(OpSet::standard().lower(&children[0])) else {
            panic!("another kernel")
        };
        assert_eq!(
            copy.layout,
            Layout::Strided {
                dims: 2,
                run_in: 50,
                run_out: 25_600,
                broadcast: false,
                steps: crate::kernel::Steps { sizes: [50, 512], steps: [1, 300] }
            }
        );
    }
}

//! Matrix products: `mm`, `addmm`, `bmm`, `baddbmm`, `addmv`, `dot` and related ops.

mod gradients;
mod sparse;

use crate::bound_call::BoundCall;
use crate::build_lowering::{launches, made_contiguous};
use crate::call::{Arg, OpCall, Tensor};
use crate::dtype::Dtype;
use crate::kernel::{Epilogue, Gemm, Kernel, Precision};
use crate::op_def::{Lowering, OpDef};
use crate::operands::{count, in_place, precision, read, result};
use gradients::backward;

/// Definitions of matrix products.
pub static OPS: &[OpDef] = &[
    OpDef::leaf(&["aten::mm", "aten::bmm", "aten::_int_mm"], |call| lower(call, &PLAIN))
        .outputs(|call| shape(call, &PLAIN))
        .expand(|call| prepared(call, &PLAIN))
        .backward(|call| backward(call, &PLAIN)),
    OpDef::leaf(&["aten::addmm", "aten::addmm_"], |call| lower(call, &ADDED))
        .outputs(|call| shape(call, &ADDED))
        .expand(|call| prepared(call, &ADDED))
        .backward(|call| backward(call, &ADDED)),
    OpDef::leaf(&["aten::baddbmm", "aten::baddbmm_"], |call| lower(call, &BATCHED))
        .outputs(|call| shape(call, &BATCHED))
        .expand(|call| prepared(call, &BATCHED))
        .backward(|call| backward(call, &BATCHED)),
    OpDef::leaf(&["aten::_addmm_activation"], |call| lower(call, &ACTIVATED))
        .outputs(|call| shape(call, &ACTIVATED))
        .backward(|call| backward(call, &ACTIVATED)),
    OpDef::leaf(&["aten::addmv", "aten::addmv_"], |call| lower(call, &VECTOR))
        .outputs(|call| shape(call, &VECTOR))
        .backward(|call| backward(call, &VECTOR)),
    OpDef::leaf(&["aten::dot"], |call| lower(call, &DOT))
        .outputs(|call| shape(call, &DOT))
        .backward(|call| backward(call, &DOT)),
    OpDef::leaf(&["aten::vdot"], |call| lower(call, &CONJUGATED))
        .outputs(|call| shape(call, &CONJUGATED))
        .backward(|call| backward(call, &CONJUGATED)),
    OpDef::leaf(&["aten::_scaled_mm"], |call| lower(call, &SCALED)).outputs(|call| shape(call, &SCALED)),
];

/// Argument names of an op's factors.
struct Form {
    factors: [&'static str; 2],
    /// Number of arguments that hold input tensors.
    arity: usize,
    /// Argument that is added.
    added: Option<&'static str>,
    activated: bool,
    /// Number of arguments, after which the indices and values of a sparse factor follow.
    parts: usize,
    /// Whether it has an argument for the type of the result, like products of 8-bit floats.
    typed: bool,
}

const PLAIN: Form =
    Form { factors: ["self", "mat2"], arity: 2, added: None, activated: false, parts: 2, typed: false };
const DOT: Form = Form { factors: ["self", "tensor"], ..PLAIN };
const CONJUGATED: Form = Form { factors: ["self", "other"], ..PLAIN };
const ADDED: Form = Form { factors: ["mat1", "mat2"], arity: 3, added: Some("self"), parts: 5, ..PLAIN };
const BATCHED: Form = Form { factors: ["batch1", "batch2"], ..ADDED };
const VECTOR: Form = Form { factors: ["mat", "vec"], ..ADDED };
const ACTIVATED: Form = Form { activated: true, ..ADDED };
const SCALED: Form = Form { arity: 6, added: Some("bias"), typed: true, ..PLAIN };

/// Returns the factors of a call.
fn factors<'c>(call: &BoundCall<'c>, form: &Form) -> Option<(&'c Tensor, &'c Tensor)> {
    Some((call.tensor(form.factors[0])?, call.tensor(form.factors[1])?))
}

/// Sizes of a product.
struct Sizes {
    batch: i64,
    m: i64,
    n: i64,
    k: i64,
}

fn sizes(a: &Tensor, b: &Tensor) -> Option<Sizes> {
    Some(match (&a.shape[..], &b.shape[..]) {
        (&[k], &[_]) => Sizes { batch: 1, m: 1, n: 1, k },
        (&[m, k], &[_]) => Sizes { batch: 1, m, n: 1, k },
        (&[m, k], &[_, n]) => Sizes { batch: 1, m, n, k },
        (&[batch, m, k], &[_, _, n]) => Sizes { batch, m, n, k },
        _ => return None,
    })
}

fn product(call: &BoundCall<'_>, form: &Form) -> Option<Tensor> {
    let (a, b) = factors(call, form)?;
    let Sizes { batch, m, n, .. } = sizes(a, b)?;
    let wanted = form.typed.then(|| call.int("out_dtype")).flatten();
    let dtype = wanted.and_then(Dtype::from_code).unwrap_or(a.dtype);
    Some(match (a.shape.len(), b.shape.len()) {
        (1, _) => Tensor::contiguous(&[], dtype),
        (_, 1) => Tensor::contiguous(&[m], dtype),
        (2, _) => Tensor::contiguous(&[m, n], dtype),
        _ => Tensor::contiguous(&[batch, m, n], dtype),
    })
}

fn shape(call: &BoundCall<'_>, form: &Form) -> Option<Vec<Arg>> {
    Some(vec![Arg::Tensor(product(call, form)?)])
}

fn lower(call: &BoundCall<'_>, form: &Form) -> Option<Lowering> {
    let factors = factors(call, form);
    let (Some((a, b)), Some(computed)) = (factors, product(call, form)) else {
        return None;
    };
    let Sizes { batch, m, n, k } = sizes(a, b)?;
    if a.is_sparse() && !b.is_sparse() {
        // `mm` adds the product to zeros, by `addmm`.
        if form.added.is_none() {
            return Some(Lowering::Children);
        }
        return sparse::lower(call, a, b, form.parts);
    }
    if b.is_sparse() {
        return None;
    }
    if computed.numel() == 0 {
        return Some(Lowering::Nothing);
    }
    // In this case another op fills the result.
    if k == 0 {
        return Some(Lowering::Children);
    }
    let (a_transposed, lda) = storage(a, false);
    let (b_transposed, ldb) = storage(b, true);
    let gemm = Gemm {
        batch: count(batch),
        m: count(m),
        n: count(n),
        k: count(k),
        a_transposed,
        b_transposed,
        lda,
        ldb,
        epilogue: epilogue(call, form, n),
        precision: precision(a.dtype, call.settings.matmul_tf32),
    };
    let gemm = if call.settings.runtime { as_in_runtime(gemm) } else { gemm };
    let sizes = [gemm.batch, gemm.m, gemm.n, gemm.k];
    let flops = sizes.iter().fold(2, |n: u64, &size| n.saturating_mul(size));
    let added = form.added.filter(|_| !in_place(call)).and_then(|name| read(call, name));
    let (target, _) = result(call, form.arity, computed);
    let operands = [read(call, form.factors[0]), read(call, form.factors[1]), added, Some(target)];
    Some(launches(count_launches(&gemm), Kernel::Gemm(gemm), a.dtype, operands, flops))
}

/// Least number of columns that have zeros behind them, and the number that all are multiples of: 16 bytes of 16-bit numbers.
const PADDED: [u64; 2] = [16, 8];
/// Least ratio of the sizes of the left factor and the right one for which that is stored by columns.
const LARGER: u64 = 8;

/// Returns the product of `steptime-runtime`: over rows with zeros behind them, and in TF32 by a right factor that is stored by columns where it is
/// small.
fn as_in_runtime(gemm: Gemm) -> Gemm {
    let padded = |size: u64| if size > PADDED[0] { size.next_multiple_of(PADDED[1]) } else { size };
    let Gemm { batch, m, n, k, .. } = gemm;
    let is_small = batch == 1 && LARGER.saturating_mul(n) <= m;
    let turned = is_small && gemm.precision == Precision::Tf32 && !gemm.b_transposed;
    let (b_transposed, ldb) = if turned { (true, k) } else { (gemm.b_transposed, gemm.ldb) };
    Gemm {
        m: padded(m),
        n: padded(n),
        k: padded(k),
        lda: padded(gemm.lda),
        ldb: padded(ldb),
        b_transposed,
        ..gemm
    }
}

/// Returns copies of factors that are stored neither by row nor by column, for example broadcast from one number.
fn prepared(call: &BoundCall<'_>, form: &Form) -> Vec<OpCall> {
    let odd = |name: &str| {
        let factor = call.tensor(name).filter(|factor| !factor.is_sparse() && !in_order(factor))?;
        made_contiguous(factor)
    };
    form.factors.into_iter().filter_map(odd).collect()
}

/// Whether a library multiplies a matrix without copying it.
fn in_order(matrix: &Tensor) -> bool {
    let (height, width) = (matrix.size(-2), matrix.size(-1));
    match matrix.strides[..] {
        [.., rows, columns] if matrix.shape.len() >= 2 => {
            matrix.is_contiguous() || columns == 1 && rows >= width || rows == 1 && columns >= height
        }
        _ => true,
    }
}

/// Returns the number of launches as recorded with cuBLAS on an H200: a long sum is split, and a second kernel adds its parts; a bias is
/// copied first if the result is a column.
fn count_launches(gemm: &Gemm) -> u32 {
    let split = gemm.batch == 1 && gemm.k >= 4 * gemm.m.max(gemm.n) && gemm.m.min(gemm.n) > 1;
    let copied = gemm.n == 1 && gemm.epilogue == Epilogue::Bias;
    if split || copied { 2 } else { 1 }
}

/// Returns whether a matrix is stored column by column, and its leading dimension. A vector is one column on the right
/// and one row on the left.
fn storage(matrix: &Tensor, right: bool) -> (bool, u64) {
    let strides = &matrix.strides[..];
    let (rows, columns) = match *strides {
        [.., rows, columns] => (rows, columns),
        [stride] if right => (stride, 1),
        [stride] => (1, stride),
        [] => (1, 1),
    };
    let (height, width) = (matrix.size(-2), matrix.size(-1));
    let transposed = columns != 1 && rows == 1 && width > 1;
    let leading =
        if transposed { columns.max(height) } else { rows.max(if columns == 1 { 1 } else { width }) };
    (transposed, count(leading).max(1))
}

fn epilogue(call: &BoundCall<'_>, form: &Form, n: i64) -> Epilogue {
    let Some(added) = form.added.and_then(|name| call.tensor(name)) else { return Epilogue::None };
    if form.activated {
        return Epilogue::BiasActivation;
    }
    let vector = added.numel() <= count(n) || added.strides.first() == Some(&0);
    if vector && !in_place(call) { Epilogue::Bias } else { Epilogue::Matrix }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype::F32;
    use crate::OpSet;
    use crate::kernel::Role;

    pub(super) fn gemm(call: &OpCall) -> (Gemm, u64, u64, u64) {
        let lowered = OpSet::standard().lower(call);
        let Some(kernel) = lowered.kernel() else { panic!("{lowered:?}") };
        let Kernel::Gemm(gemm) = kernel.kernel else { panic!("{kernel:?}") };
        (gemm, kernel.flops, kernel.bytes_read(), kernel.bytes_written())
    }

    pub(super) fn dense(shape: &[i64]) -> Arg {
        Arg::Tensor(Tensor::contiguous(shape, F32))
    }

    #[test]
    fn a_linear_layer_multiplies_by_a_transposed_view() {
        let weight = Arg::Tensor(Tensor::strided(&[13, 512], &[1, 13], F32));
        let call = OpCall::new("aten::addmm", vec![dense(&[512]), dense(&[64, 13]), weight]);
        let (gemm, flops, read, written) = gemm(&call);
        assert_eq!((gemm.m, gemm.n, gemm.k, gemm.lda, gemm.ldb), (64, 512, 13, 13, 13));
        assert_eq!((gemm.a_transposed, gemm.b_transposed, gemm.epilogue), (false, true, Epilogue::Bias));
        assert_eq!(flops, 2 * 64 * 512 * 13);
        assert_eq!((read, written), (4 * (512 + 64 * 13 + 13 * 512), 4 * 64 * 512));
    }

    #[test]
    fn a_weight_gradient_has_its_first_factor_transposed() {
        let grad = Arg::Tensor(Tensor::strided(&[16, 64], &[1, 16], F32));
        let mut call = OpCall::new("aten::mm", vec![grad, dense(&[64, 8])]);
        call.settings.matmul_tf32 = true;
        let (gemm, ..) = gemm(&call);
        assert_eq!((gemm.m, gemm.n, gemm.k, gemm.lda, gemm.a_transposed), (16, 8, 64, 16, true));
        assert_eq!(gemm.precision, Precision::Tf32);
    }

    #[test]
    fn products_of_8_bit_floats_are_written_in_the_type_that_is_wanted() {
        let bytes = |shape: &[i64], strides: &[i64]| Arg::Tensor(Tensor::strided(shape, strides, Dtype::F8));
        let factors = [bytes(&[64, 32], &[32, 1]), bytes(&[32, 48], &[1, 32])];
        let rest = [dense(&[]), dense(&[]), Arg::None, Arg::None, Arg::Int(Dtype::Bf16.code())];
        let call = OpCall::new("aten::_scaled_mm", factors.into_iter().chain(rest).collect());
        let (gemm, flops, read, written) = gemm(&call);
        assert_eq!((gemm.m, gemm.n, gemm.k, gemm.precision), (64, 48, 32, Precision::F8));
        assert_eq!((flops, read, written), (2 * 64 * 48 * 32, 64 * 32 + 32 * 48, 2 * 64 * 48));
    }

    #[test]
    fn batches_matrices_and_in_place() {
        let view = Arg::Tensor(Tensor::strided(&[32, 128, 27], &[3456, 1, 128], F32));
        let call = OpCall::new("aten::bmm", vec![dense(&[32, 27, 128]), view]);
        let (product, flops, ..) = gemm(&call);
        assert_eq!((product.batch, product.m, product.n, product.k), (32, 27, 27, 128));
        assert_eq!((product.b_transposed, product.ldb, flops), (true, 128, 2 * 32 * 27 * 27 * 128));
        let call = OpCall::new("aten::addmm_", vec![dense(&[4, 6]), dense(&[4, 5]), dense(&[5, 6])]);
        let lowered = OpSet::standard().lower(&call);
        let Some(kernel) = lowered.kernel() else { panic!("{lowered:?}") };
        assert_eq!(kernel.operands.last().map(|o| (o.role, o.bytes)), Some((Role::Update, 96)));
        assert_eq!(gemm(&call).0.epilogue, Epilogue::Matrix);
    }

    #[test]
    fn an_empty_product_launches_nothing() {
        let call = OpCall::new("aten::mm", vec![dense(&[0, 5]), dense(&[5, 6])]);
        assert_eq!(OpSet::standard().lower(&call), Lowering::Nothing);
    }
}

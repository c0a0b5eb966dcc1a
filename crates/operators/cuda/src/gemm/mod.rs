//! Matrix products through cuBLASLt, which is loaded at first use: `C = f(alpha A B + beta C + bias)`.
//!
//! Matrices are `[rows, columns]` with rows a stride apart, as elsewhere in this crate. cuBLASLt is column-major, so it
//! computes `C^T = B^T A^T` over the same memory. A batch is many products of one shape in one call.
//!
//! Factors of 16 bits may have a product of 32: sums are 32-bit floats, so that they are stored unrounded. cuBLASLt
//! documents a bias of the product's type. [`Gemm::new`] fails where the library has no algorithm for the three types.

mod library;
mod shape;

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr::from_ref;

use cudarc::cublaslt::result;
use cudarc::cublaslt::sys::{
    self, cublasComputeType_t as Compute, cublasLtEpilogue_t as CublasLtEpilogue,
    cublasLtMatmulDescAttributes_t as OfProduct, cublasLtMatmulPreferenceAttributes_t as Wish,
    cublasLtMatrixLayoutAttribute_t as OfMatrix, cudaDataType_t as Data,
};
use steptime_ops::gemm::Activation;

pub use self::library::{Blas, Factor};
pub use self::shape::Shape;
use crate::{Buffer, Error, Slice, SliceMut, Stream};

/// Bytes of cuBLASLt's workspace.
const WORKSPACE: usize = 32 << 20;

/// Precision of products of 32-bit floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Math {
    /// All bits.
    #[default]
    Full,
    /// Rounded to 10 bits of fraction, by the matrix units; 16-bit floats are unchanged.
    Tf32,
}

/// Operations on each sum before it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Epilogue {
    /// Whether one number for each column of C is added.
    pub bias: bool,
    /// The function that follows; sigmoid is not supported.
    pub activation: Activation,
}

impl Epilogue {
    fn to_cublaslt(self) -> Result<CublasLtEpilogue, Error> {
        Ok(match (self.bias, self.activation) {
            (false, Activation::Identity) => CublasLtEpilogue::CUBLASLT_EPILOGUE_DEFAULT,
            (true, Activation::Identity) => CublasLtEpilogue::CUBLASLT_EPILOGUE_BIAS,
            (false, Activation::Relu) => CublasLtEpilogue::CUBLASLT_EPILOGUE_RELU,
            (true, Activation::Relu) => CublasLtEpilogue::CUBLASLT_EPILOGUE_RELU_BIAS,
            (_, other) => {
                return Err(Error::Unsupported {
                    what: format!("a product with {other:?} behind it"),
                    remedy: "run it without, and the activation as an elementwise program",
                });
            }
        })
    }
}

/// A product's description, layouts and preferences.
#[derive(Debug)]
struct Descriptions {
    product: sys::cublasLtMatmulDesc_t,
    layouts: Vec<sys::cublasLtMatrixLayout_t>,
    wishes: Option<sys::cublasLtMatmulPreference_t>,
}

impl Drop for Descriptions {
    fn drop(&mut self) {
        // SAFETY: each was made once and is used no more.
        unsafe {
            self.layouts.iter().for_each(|&layout| _ = result::destroy_matrix_layout(layout));
            if let Some(wishes) = self.wishes {
                let _ = result::destroy_matmul_pref(wishes);
            }
            let _ = result::destroy_matmul_desc(self.product);
        }
    }
}

/// A product of one shape, with the algorithm that cuBLASLt chose for it: bit-identical in each run.
///
/// A and B have elements `T`, C has elements `D`, the bias has elements `B`. It has a workspace of its own, so it runs in
/// one stream at a time: in another stream it waits for that one first.
#[derive(Debug)]
pub struct Gemm<T, D = T, B = D> {
    blas: Blas,
    shape: Shape,
    epilogue: Epilogue,
    descriptions: Descriptions,
    algorithm: sys::cublasLtMatmulAlgo_t,
    workspace: Buffer<u8>,
    of: PhantomData<(T, D, B)>,
}

// SAFETY: cuBLASLt's descriptions are plain memory, changed by `run` alone, which borrows the product mutably.
unsafe impl<T: Send, D: Send, B: Send> Send for Gemm<T, D, B> {}

impl<T: Factor, D: Factor, B: Factor> Gemm<T, D, B> {
    /// The names of the types in messages.
    fn types(epilogue: Epilogue) -> String {
        let bias = if epilogue.bias { format!(" and a bias of {}", B::NAME) } else { String::new() };
        format!("{} to {}{bias}", T::NAME, D::NAME)
    }

    /// Chooses an algorithm.
    ///
    /// # Errors
    ///
    /// An invalid shape, an activation that is not supported, no memory, or no algorithm.
    pub fn new(blas: &Blas, shape: Shape, math: Math, epilogue: Epilogue) -> Result<Gemm<T, D, B>, Error> {
        shape.check(size_of::<T>().max(size_of::<D>()))?;
        let of_library = epilogue.to_cublaslt()?;
        let wrong = || Error::blas(format!("preparing a product of {} as {shape:?}", Self::types(epilogue)));
        let device = blas.device();
        device.bind()?;
        let compute = match (math, T::KIND) {
            (Math::Tf32, Data::CUDA_R_32F) => Compute::CUBLAS_COMPUTE_32F_FAST_TF32,
            _ => Compute::CUBLAS_COMPUTE_32F,
        };
        let product = result::create_matmul_desc(compute, Data::CUDA_R_32F).map_err(wrong())?;
        let mut all = Descriptions { product, layouts: Vec::new(), wishes: None };
        let strides = shape.strides.into_iter().zip(shape.batch_strides);
        let kinds = [T::KIND, T::KIND, D::KIND];
        for (([rows, cols], (stride, batch_stride)), kind) in
            shape.stored().into_iter().zip(strides).zip(kinds)
        {
            // Rows here are columns in cuBLASLt.
            let layout = result::create_matrix_layout(kind, cols as u64, rows as u64, stride as i64);
            all.layouts.push(layout.map_err(wrong())?);
            if shape.batch > 1 {
                all.set_batch(shape.batch as i32, batch_stride as i64).map_err(wrong())?;
            }
        }
        let wishes = result::create_matmul_pref().map_err(wrong())?;
        all.wishes = Some(wishes);
        // CUBLAS_OP_N is 0, CUBLAS_OP_T is 1.
        let flag = i32::from;
        all.set(OfProduct::CUBLASLT_MATMUL_DESC_TRANSA, &flag(shape.b_transposed)).map_err(wrong())?;
        all.set(OfProduct::CUBLASLT_MATMUL_DESC_TRANSB, &flag(shape.a_transposed)).map_err(wrong())?;
        all.set(OfProduct::CUBLASLT_MATMUL_DESC_EPILOGUE, &of_library).map_err(wrong())?;
        if epilogue.bias {
            let kind = B::KIND as i32;
            all.set(OfProduct::CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &kind).map_err(wrong())?;
        }
        let wish = |which, value: *const c_void, bytes| {
            // SAFETY: the preferences were made above, and the value has `bytes` bytes.
            unsafe { result::set_matmul_pref_attribute(wishes, which, value, bytes) }.map_err(wrong())
        };
        let most = Wish::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
        wish(most, from_ref(&WORKSPACE).cast(), size_of_val(&WORKSPACE))?;
        // Where k is split, parts are added as 32-bit floats, and not as 16-bit ones in C.
        let reduction = sys::cublasLtReductionScheme_t::CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE as u32;
        let which = Wish::CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK;
        wish(which, from_ref(&reduction).cast(), size_of_val(&reduction))?;
        // B is cuBLASLt's A, and A is its B.
        let [of_a, of_b, of_c] =
            shape.alignments([size_of::<T>(), size_of::<T>(), size_of::<D>()]).map(|align| align as u32);
        for (which, align) in [
            (Wish::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, of_b),
            (Wish::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, of_a),
            (Wish::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, of_c),
            (Wish::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, of_c),
        ] {
            wish(which, from_ref(&align).cast(), size_of_val(&align))?;
        }
        let [a, b, c] = [all.layouts[0], all.layouts[1], all.layouts[2]];
        // SAFETY: all were made above.
        let chosen = unsafe { result::get_matmul_algo_heuristic(blas.handle(), product, b, a, c, c, wishes) };
        let chosen = chosen.map_err(Error::blas(format!(
            "choosing an algorithm for a product of {} as {shape:?}, {math:?}, {epilogue:?}",
            Self::types(epilogue)
        )))?;
        Ok(Gemm {
            blas: blas.clone(),
            shape,
            epilogue,
            descriptions: all,
            algorithm: chosen.algo,
            workspace: Buffer::uninit(device, chosen.workspaceSize)?,
            of: PhantomData,
        })
    }

    /// Computes `c = f(alpha * a b + beta * c + bias)`; where `beta` is 0, the previous `c` is not read. `bias` has one
    /// number for each column of C, the same for all products of a batch. Neither waits, within one stream, nor
    /// allocates, so that it can be captured.
    ///
    /// # Errors
    ///
    /// Matrices or a bias that are too short, missing or not aligned; the library refuses.
    pub fn run(
        &mut self,
        stream: &Stream,
        (alpha, beta): (f32, f32),
        a: Slice<'_, T>,
        b: Slice<'_, T>,
        c: &mut SliceMut<'_, D>,
        bias: Option<Slice<'_, B>>,
    ) -> Result<(), Error> {
        self.check(a, b, c.as_ref(), bias)?;
        let wrong = || Error::blas(format!("multiplying {} as {:?}", Self::types(self.epilogue), self.shape));
        stream.device().bind()?;
        if let Some(bias) = bias {
            let at = OfProduct::CUBLASLT_MATMUL_DESC_BIAS_POINTER;
            self.descriptions.set(at, &bias.address()).map_err(wrong())?;
        }
        for read in [a, b] {
            read.before_reading(stream)?;
        }
        bias.map_or(Ok(()), |bias| bias.before_reading(stream))?;
        c.before_writing(stream)?;
        self.workspace.as_mut().before_writing(stream)?;
        let pointer = |address: u64| std::ptr::with_exposed_provenance_mut::<c_void>(address as usize);
        let layouts = &self.descriptions.layouts;
        let (to, workspace) = (pointer(c.address()), self.workspace.as_mut());
        // SAFETY: the descriptions are this product's, and the matrices have the lengths described. Since
        // `before_reading` and `before_writing`, no other stream uses the matrices, the bias or the workspace.
        unsafe {
            result::matmul(
                self.blas.handle(),
                self.descriptions.product,
                from_ref(&alpha).cast(),
                from_ref(&beta).cast(),
                pointer(b.address()),
                layouts[1],
                pointer(a.address()),
                layouts[0],
                to,
                layouts[2],
                to,
                layouts[2],
                &self.algorithm,
                pointer(workspace.address()),
                workspace.len(),
                stream.raw().cast(),
            )
        }
        .map_err(wrong())
    }

    /// Fails where the matrices or the bias do not fit this product.
    fn check(
        &self,
        a: Slice<'_, T>,
        b: Slice<'_, T>,
        c: Slice<'_, D>,
        bias: Option<Slice<'_, B>>,
    ) -> Result<(), Error> {
        let needed = self.shape.lengths();
        let given = [("A", a.len(), a.address()), ("B", b.len(), b.address()), ("C", c.len(), c.address())];
        for ((what, found, address), needed) in given.into_iter().zip(needed) {
            if found < needed {
                return Err(Error::Size { what, found, needed });
            }
            let align = self.shape.alignment;
            if !address.is_multiple_of(align as u64) {
                return Err(Error::Unsupported {
                    what: format!("{what} at an address that is not a multiple of {align} bytes"),
                    remedy: "begin it at such an address, or give the product's shape a smaller alignment",
                });
            }
        }
        let found = bias.map_or(0, Slice::len);
        let needed = if self.epilogue.bias { self.shape.n } else { 0 };
        if found != needed {
            return Err(Error::Size { what: "the bias", found, needed });
        }
        Ok(())
    }

    /// Bytes of the algorithm's workspace.
    #[must_use]
    pub fn workspace(&self) -> usize {
        self.workspace.len()
    }
}

impl Descriptions {
    fn set<V>(&self, which: OfProduct, value: &V) -> Result<(), result::CublasError> {
        // SAFETY: the description lives, and the value has the type that the attribute takes.
        unsafe {
            result::set_matmul_desc_attribute(self.product, which, from_ref(value).cast(), size_of::<V>())
        }
    }

    /// Makes the last layout one of `count` matrices, `stride` elements apart.
    fn set_batch(&self, count: i32, stride: i64) -> Result<(), result::CublasError> {
        let Some(&layout) = self.layouts.last() else { return Ok(()) };
        let set = |which, value: *const c_void, bytes| {
            // SAFETY: the layout lives, and the value has `bytes` bytes.
            unsafe { result::set_matrix_layout_attribute(layout, which, value, bytes) }
        };
        set(OfMatrix::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, from_ref(&count).cast(), size_of_val(&count))?;
        let which = OfMatrix::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET;
        set(which, from_ref(&stride).cast(), size_of_val(&stride))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cublaslt_does_not_do_is_refused() {
        let epilogue = Epilogue { bias: true, activation: Activation::Sigmoid };
        assert!(epilogue.to_cublaslt().unwrap_err().to_string().contains("elementwise"));
    }
}

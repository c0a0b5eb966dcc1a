//! Matrix products, from three loops to the machine's limit, and the linear layers made of them.
//!
//! ```text
//! rung                additional technique                      reads per multiply-add
//! gemm_naive          three loops                               2
//! gemm_vectorized     v2 columns of C in registers              1 + 1/v2
//! gemm_register       v1 x v2 elements of C in registers        1/v1 + 1/v2 from the first level
//! gemm_cache          blocks b1, b2                             1/b1 + 1/b2 from beyond the cache
//! gemm                operands packed, all threads              the same, without misses in between
//! ```
//!
//! A [`Plan`] derives all sizes from the machine and the shape, and prints the expected reads of each level.
//!
//! ```
//! use steptime_ops::Cpu;
//! use steptime_ops::gemm::{MatMut, MatRef, gemm};
//!
//! let (a, b) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]);
//! let mut c = [0.0; 4];
//! let (a, b) = (MatRef::new(&a, 2, 2)?, MatRef::new(&b, 2, 2)?);
//! let cpu = Cpu::new(1).unwrap();
//! gemm(&cpu, 1.0, a, b.t(), 0.0, MatMut::new(&mut c, 2, 2)?)?;
//! assert_eq!(c, [17.0, 23.0, 39.0, 53.0]);
//! # Ok::<(), steptime_ops::gemm::GemmError>(())
//! ```

mod activation;
mod buffer;
mod cache;
mod chains;
mod cut;
mod error;
mod kernel;
mod linear;
mod machine;
mod matrix;
mod naive;
mod operands;
mod pack;
mod packed;
mod part;
mod plan;
mod prepacked;
mod problem;
mod product;
mod register;
mod vectorized;

pub use activation::Activation;
pub use cache::gemm_cache;
pub use error::GemmError;
pub use linear::{
    Gradients, linear, linear_backward, linear_backward_reference, linear_packed, linear_reference,
};
pub use machine::{Cache, Machine};
pub use matrix::{Element, MatMut, MatRef};
pub use naive::gemm_naive;
pub use plan::{Cut, LevelCost, Plan, register_tile};
pub use prepacked::{PackedMatrix, gemm_packed};
pub use product::{gemm, gemm_planned};
pub use register::gemm_register;
pub use vectorized::gemm_vectorized;

// Building blocks of convolutions.
pub(crate) use buffer::with_buffer;
pub(crate) use kernel::{
    Across, Loop, Store, Strip, Window, copy_lanes, multiply_add, tile, tile_cols, tile_rows, transpose,
    widen,
};

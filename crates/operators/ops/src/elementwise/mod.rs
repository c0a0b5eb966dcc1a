//! Elementwise operations and activations, whole chains of them in one pass.
//!
//! A chain is written as an expression over inputs, compiled once, and run over any shapes that broadcast together:
//!
//! ```
//! use steptime_ops::{Cpu, elementwise::{Expr, Input, Program}};
//! use steptime_tensor::Tensor;
//!
//! let (x, bias) = (Expr::input(0), Expr::input(1));
//! let program = Program::new(&[(x + bias).relu() * 0.5])?;
//! let x = Tensor::from_vec(vec![1.0, -2.0, 3.0, 4.0], &[2, 2])?;
//! let bias = Tensor::from_vec(vec![1.0, 1.0], &[2])?;
//! let mut out = Tensor::zeros(&[2, 2])?;
//! program.run(&Cpu::new(1)?, &[Input::View(x.view()), Input::View(bias.view())], &mut [out.view_mut()?])?;
//! assert_eq!(out.to_vec(), [1.0, 0.0, 2.0, 2.5]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A framework runs one operation after the other, and each reads and writes whole tensors. Here all operations run on
//! a block of a few thousand elements before the next block is read. Intermediate results stay in the first-level
//! cache, and each input and output is accessed once in memory. [`Program::cost`] estimates the savings.
//! [`Expr::backward`] gives the gradients as expressions, which run fused in the same way.

mod block;
mod error;
mod expr;
mod gradient;
mod graph;
pub(crate) mod math;
mod operand;
mod program;
pub mod reference;
mod run;

pub use error::ElementwiseError;
pub use expr::{Binary, Expr, Unary};
pub use program::{Cost, Op, Program, Source, Step, Target};
pub use run::Input;

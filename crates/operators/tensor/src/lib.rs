//! Strided n-dimensional views over shared storage.
//!
//! One type, [`Strided`], is a [`Layout`] (shape, strides, offset) over elements held in one of three ways:
//!
//! | type | holds | views of it |
//! |---|---|---|
//! | [`Tensor`] | shared storage, aligned to 64 bytes | share the storage |
//! | [`View`] | a borrowed slice | borrow the same slice |
//! | [`ViewMut`] | a slice borrowed mutably | take the borrow over |
//!
//! Slicing, transposing, broadcasting and reshaping change the layout only. No element is copied unless a method's
//! name says so. Every layout is checked against its storage when it is made, so later reads are in bounds.
//!
//! ```
//! use steptime_tensor::Tensor;
//!
//! let table = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
//! let columns = table.view().transpose(0, 1)?;
//! assert_eq!(columns.shape(), [3, 2]);
//! assert_eq!(columns.slice(0, 1..3)?.to_vec(), [2.0, 5.0, 3.0, 6.0]);
//! # Ok::<(), steptime_tensor::TensorError>(())
//! ```
#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod element;
mod error;
mod joined;
mod layout;
mod runs;
mod storage;
mod strided;
mod tensor;
mod view;

pub use element::{DType, Element};
pub use error::TensorError;
pub use joined::JoinedLayouts;
pub use layout::Layout;
pub use runs::Runs;
pub use storage::{Data, Storage};
pub use strided::Strided;
pub use tensor::Tensor;
pub use view::{View, ViewMut};

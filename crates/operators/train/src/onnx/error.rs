//! Errors of an export.

use std::io;
use std::path::PathBuf;

use steptime_tensor::DType;
use thiserror::Error;

use super::Dim;

/// Reason why a graph cannot be built or written.
#[derive(Debug, Error)]
pub enum OnnxError {
    /// Shapes do not fit an op.
    #[error("{op} of shapes {}: {reason}", written(.shapes))]
    Shapes {
        /// The op.
        op: &'static str,
        /// Shapes of its inputs.
        shapes: Vec<Vec<Dim>>,
        /// The rule that they break.
        reason: &'static str,
    },
    /// An element type does not fit an op.
    #[error("{op} of {given}: it needs {needed}, cast the value first")]
    Type {
        /// The op.
        op: &'static str,
        /// Type of the input.
        given: DType,
        /// The valid types, in words.
        needed: &'static str,
    },
    /// An axis exceeds the dimensions.
    #[error("{op}: axis {axis} of a value with {rank} dimensions")]
    Axis {
        /// The op.
        op: &'static str,
        /// The axis, from 0.
        axis: usize,
        /// Number of dimensions.
        rank: usize,
    },
    /// A name is empty or given twice.
    #[error(
        "the name {name:?} of an input, weight or output is empty or given twice: give each a name of its own"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// The elements of a constant differ in number from its shape.
    #[error("{name}: shape {shape:?} does not have {elements} elements")]
    Elements {
        /// The initializer.
        name: String,
        /// The shape.
        shape: Vec<u64>,
        /// Number of given elements.
        elements: usize,
    },
    /// A value belongs to another graph.
    #[error("{op}: the value is not one of this graph")]
    Foreign {
        /// The op.
        op: &'static str,
    },
    /// The model's file exists.
    #[error("{} exists: remove it or give another name", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The operating system refuses, or a weight cannot be read.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The action, as `create`.
        action: &'static str,
        /// File or weight.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

fn written(shapes: &[Vec<Dim>]) -> String {
    let shape = |shape: &Vec<Dim>| {
        let sizes: Vec<String> = shape.iter().map(Dim::to_string).collect();
        format!("[{}]", sizes.join(", "))
    };
    shapes.iter().map(shape).collect::<Vec<_>>().join(" and ")
}

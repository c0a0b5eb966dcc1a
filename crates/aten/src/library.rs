//! Which library an op leaves its work to: such calls make driver calls of their own, which no trace shows.

/// A library, or a compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// Matrix products: cuBLAS.
    Products,
    /// Convolutions and recurrent networks: cuDNN.
    Convolutions,
    /// A kernel that Inductor generated, launched from Python.
    Compiled,
}

impl Library {
    /// The library that an op of this name calls by itself; `None` for all others.
    #[must_use]
    pub fn of(op: &str) -> Option<Library> {
        match op {
            "aten::mm"
            | "aten::addmm"
            | "aten::bmm"
            | "aten::baddbmm"
            | "aten::addbmm"
            | "aten::mv"
            | "aten::addmv"
            | "aten::_addmm_activation"
            | "aten::_scaled_mm" => Some(Library::Products),
            "aten::cudnn_convolution"
            | "aten::cudnn_convolution_transpose"
            | "aten::cudnn_convolution_relu"
            | "aten::convolution_backward"
            | "aten::_cudnn_rnn"
            | "aten::_cudnn_rnn_backward" => Some(Library::Convolutions),
            _ if op.starts_with("triton_") => Some(Library::Compiled),
            _ => None,
        }
    }
}

//! Tensors of a recorded step by name: parameters, optimizer states, inputs, constants, and the loss.

/// A recording, with the names of the tensors that are older than its step or leave it.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedStep {
    /// The recorded step.
    pub trace: steptime_trace::ExecutionTrace,
    /// Its tensors with a name, each once.
    pub tensors: Vec<NamedTensor>,
    /// Number of ranks of its job; 1 for a step by itself.
    pub ranks: u32,
    /// Tables of which the rank has only a part.
    pub shards: Vec<NamedShard>,
}

/// A parameter of which a rank has only a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedShard {
    /// Name of the parameter.
    pub name: String,
    /// First row and first column of the part.
    pub offset: [i64; 2],
    /// Rows and columns of the whole.
    pub whole: [i64; 2],
}

/// A tensor that exists before the step, or remains after it.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedTensor {
    /// Id of the tensor in the recording.
    pub id: u64,
    /// Name, like that of a PyTorch module's parameter: `bottom.0.weight`, `tables.3.indices`.
    pub name: String,
    /// Purpose.
    pub role: Role,
}

/// Purpose of a named tensor.
#[derive(Debug, Clone, PartialEq)]
pub enum Role {
    /// Trained tensor with the distribution of its initial elements.
    Parameter(Initial),
    /// Optimizer state of a parameter; its elements are zero at first.
    State,
    /// Input of a step, in host memory.
    Input,
    /// Constant number.
    Number(f64),
    /// Constant indices.
    Indices(Vec<i64>),
    /// Loss of the step.
    Loss,
}

/// Distribution of the initial elements of a parameter: the default of its PyTorch module, unless the description has another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Initial {
    /// Uniform from `-bound` to `bound`: weight and bias of `nn.Linear`, with `1 / sqrt(inputs)`; tables with
    /// `table_init = "uniform"`, with `1 / sqrt(rows)`.
    Uniform {
        /// Largest absolute value.
        bound: f64,
    },
    /// Normal with mean 0 and variance 1: `nn.EmbeddingBag`.
    Normal,
}

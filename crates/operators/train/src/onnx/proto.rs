//! The messages of `onnx.proto` that a recommender's graph needs, for writing a model and for reading it back.

/// A model: a graph, and the versions that it needs.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ModelProto {
    /// Version of the file format.
    #[prost(int64, tag = "1")]
    pub ir_version: i64,
    /// Name of the program that wrote it.
    #[prost(string, tag = "2")]
    pub producer_name: String,
    /// Version of that program.
    #[prost(string, tag = "3")]
    pub producer_version: String,
    /// The graph.
    #[prost(message, optional, tag = "7")]
    pub graph: Option<GraphProto>,
    /// Versions of the operator sets.
    #[prost(message, repeated, tag = "8")]
    pub opset_import: Vec<OperatorSetIdProto>,
}

/// Version of an operator set.
#[derive(Clone, PartialEq, prost::Message)]
pub struct OperatorSetIdProto {
    /// Name of the set, empty for ONNX's own.
    #[prost(string, tag = "1")]
    pub domain: String,
    /// Version.
    #[prost(int64, tag = "2")]
    pub version: i64,
}

/// Nodes in an order of computation, weights, inputs and outputs.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GraphProto {
    /// Ops, inputs before their users.
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<NodeProto>,
    /// Name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Weights and constants.
    #[prost(message, repeated, tag = "5")]
    pub initializer: Vec<TensorProto>,
    /// Inputs.
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfoProto>,
    /// Outputs.
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfoProto>,
}

/// An op.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NodeProto {
    /// Names of its inputs; empty for one that is left out.
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    /// Names of its outputs.
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    /// Name.
    #[prost(string, tag = "3")]
    pub name: String,
    /// Name of the op.
    #[prost(string, tag = "4")]
    pub op_type: String,
    /// Attributes.
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<AttributeProto>,
}

/// An attribute of an op; one of the values is present.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AttributeProto {
    /// Name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// A number.
    #[prost(float, optional, tag = "2")]
    pub f: Option<f32>,
    /// An integer.
    #[prost(int64, optional, tag = "3")]
    pub i: Option<i64>,
    /// Integers.
    #[prost(int64, repeated, tag = "8")]
    pub ints: Vec<i64>,
    /// The value that is present: 1 number, 2 integer, 7 integers.
    #[prost(int32, tag = "20")]
    pub r#type: i32,
}

/// A weight or constant.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorProto {
    /// Shape.
    #[prost(int64, repeated, tag = "1")]
    pub dims: Vec<i64>,
    /// Element type.
    #[prost(int32, tag = "2")]
    pub data_type: i32,
    /// Name.
    #[prost(string, tag = "8")]
    pub name: String,
    /// Little-endian bytes, unless they are external.
    #[prost(bytes = "vec", optional, tag = "9")]
    pub raw_data: Option<Vec<u8>>,
    /// `location` (a file beside the model), `offset` and `length` of external bytes.
    #[prost(message, repeated, tag = "13")]
    pub external_data: Vec<StringStringEntryProto>,
    /// 1 for external bytes.
    #[prost(int32, optional, tag = "14")]
    pub data_location: Option<i32>,
}

/// A named text.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StringStringEntryProto {
    /// Name.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Text.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// An input or output.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ValueInfoProto {
    /// Name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Type.
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<TypeProto>,
}

/// Type of a value.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TypeProto {
    /// A tensor's.
    #[prost(message, optional, tag = "1")]
    pub tensor_type: Option<TensorTypeProto>,
}

/// Type of a tensor.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorTypeProto {
    /// Element type.
    #[prost(int32, tag = "1")]
    pub elem_type: i32,
    /// Shape.
    #[prost(message, optional, tag = "2")]
    pub shape: Option<TensorShapeProto>,
}

/// Shape of a tensor.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorShapeProto {
    /// Sizes.
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<DimensionProto>,
}

/// Size of a dimension.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DimensionProto {
    /// A number or a name.
    #[prost(oneof = "DimensionValue", tags = "1, 2")]
    pub value: Option<DimensionValue>,
}

/// A number or a name.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum DimensionValue {
    /// Number.
    #[prost(int64, tag = "1")]
    Value(i64),
    /// Name.
    #[prost(string, tag = "2")]
    Param(String),
}

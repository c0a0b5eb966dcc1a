//! Writing of a graph.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use prost::Message;
use steptime_tensor::DType;

use super::data::{ExternalData, io_error};
use super::graph::{Attribute, Initializer, Node};
use super::proto::{
    AttributeProto, DimensionProto, DimensionValue, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    StringStringEntryProto, TensorProto, TensorShapeProto, TensorTypeProto, TypeProto, ValueInfoProto,
};
use super::{Dim, OnnxError, OnnxGraph, Value};

/// Version of the file format, and of the ops.
const IR_VERSION: i64 = 8;
const OPSET: i64 = 17;
/// Largest weight that is stored in the model's file, in bytes.
const INLINE: u64 = 1024;

impl OnnxGraph<'_> {
    /// Writes the model to `path` and its weights to a file beside it, whose name is the model's and `.data`. Both are
    /// written aside and renamed, the model last: it exists only once it is whole.
    ///
    /// # Errors
    ///
    /// The model's file exists; a weight cannot be read; a file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), OnnxError> {
        if path.exists() {
            return Err(OnnxError::Exists { path: path.to_path_buf() });
        }
        let data = with_end(path, ".data");
        let (model_aside, data_aside) = (with_end(path, ".partial"), with_end(&data, ".partial"));
        let written = self.write_aside(&model_aside, &data_aside, &data).and_then(|()| {
            fs::rename(&data_aside, &data).map_err(io_error("rename", &data_aside))?;
            fs::rename(&model_aside, path).map_err(io_error("rename", &model_aside))
        });
        if written.is_err() {
            // Files that were not made cannot be removed.
            let _ = fs::remove_file(&model_aside);
            let _ = fs::remove_file(&data_aside);
        }
        written
    }

    fn write_aside(&self, model: &Path, data: &Path, location: &Path) -> Result<(), OnnxError> {
        let location = location.file_name().unwrap_or_default().to_string_lossy();
        let mut external = ExternalData::create(data)?;
        let initializers = self
            .weights
            .iter()
            .map(|(value, initializer)| self.initializer(*value, initializer, &mut external, &location));
        let initializer = initializers.collect::<Result<_, _>>()?;
        external.sync()?;
        let graph = GraphProto {
            node: self.nodes.iter().map(|node| self.node_proto(node)).collect(),
            name: self.name.clone(),
            initializer,
            input: self.inputs.iter().map(|&value| self.value_proto(value)).collect(),
            output: self.outputs.iter().map(|&value| self.value_proto(value)).collect(),
        };
        let bytes = ModelProto {
            ir_version: IR_VERSION,
            producer_name: "steptime".to_owned(),
            producer_version: env!("CARGO_PKG_VERSION").to_owned(),
            graph: Some(graph),
            opset_import: vec![OperatorSetIdProto { domain: String::new(), version: OPSET }],
        }
        .encode_to_vec();
        let mut file = File::create(model).map_err(io_error("create", model))?;
        file.write_all(&bytes).map_err(io_error("write", model))?;
        file.sync_all().map_err(io_error("flush", model))
    }

    fn initializer(
        &self,
        value: Value,
        initializer: &Initializer<'_>,
        data: &mut ExternalData<'_>,
        location: &str,
    ) -> Result<TensorProto, OnnxError> {
        let info = self.info("initializer", value)?;
        let sizes: Vec<u64> = info
            .shape
            .iter()
            .filter_map(|dim| if let Dim::Fixed(size) = dim { Some(*size) } else { None })
            .collect();
        let width = info.dtype.bytes() as u64;
        let bytes = sizes.iter().try_fold(width, |bytes, &size| bytes.checked_mul(size));
        let mut tensor = TensorProto {
            dims: sizes.iter().map(|&size| size as i64).collect(),
            data_type: data_type(info.dtype),
            name: info.name.clone(),
            ..TensorProto::default()
        };
        match (initializer, bytes) {
            (_, None) => {
                return Err(OnnxError::Elements {
                    name: info.name.clone(),
                    shape: sizes,
                    elements: usize::MAX,
                });
            }
            (Initializer::Bytes(bytes), _) => tensor.raw_data = Some(bytes.clone()),
            (Initializer::Entry(entry), Some(bytes)) if bytes <= INLINE => {
                let mut raw = vec![0; bytes as usize];
                entry
                    .source()
                    .read(0, &mut raw)
                    .map_err(io_error("read the weight", Path::new(entry.name())))?;
                tensor.raw_data = Some(raw);
            }
            (Initializer::Entry(entry), Some(bytes)) => {
                let offset = data.write(entry, bytes)?;
                let entry = |key: &str, value: String| StringStringEntryProto { key: key.to_owned(), value };
                tensor.data_location = Some(1);
                tensor.external_data = vec![
                    entry("location", location.to_owned()),
                    entry("offset", offset.to_string()),
                    entry("length", bytes.to_string()),
                ];
            }
        }
        Ok(tensor)
    }

    fn node_proto(&self, node: &Node) -> NodeProto {
        let output = self.name_of(node.output);
        NodeProto {
            input: node.inputs.iter().map(|&value| self.name_of(value)).collect(),
            name: output.clone(),
            output: vec![output],
            op_type: node.op.to_owned(),
            attribute: node
                .attributes
                .iter()
                .map(|(name, attribute)| attribute_proto(name, attribute))
                .collect(),
        }
    }

    fn value_proto(&self, value: Value) -> ValueInfoProto {
        let shape = self.shape(value).unwrap_or_default();
        let dim = |dim: &Dim| match dim {
            Dim::Fixed(size) => DimensionValue::Value(*size as i64),
            Dim::Symbol(name) => DimensionValue::Param(name.clone()),
        };
        let dims = shape.iter().map(|size| DimensionProto { value: Some(dim(size)) });
        let elem_type = self.info("value", value).map_or(0, |info| data_type(info.dtype));
        let tensor_type =
            TensorTypeProto { elem_type, shape: Some(TensorShapeProto { dim: dims.collect() }) };
        ValueInfoProto {
            name: self.name_of(value),
            r#type: Some(TypeProto { tensor_type: Some(tensor_type) }),
        }
    }
}

fn attribute_proto(name: &str, attribute: &Attribute) -> AttributeProto {
    let name = name.to_owned();
    match attribute {
        Attribute::Int(value) => {
            AttributeProto { name, i: Some(*value), r#type: 2, ..AttributeProto::default() }
        }
        Attribute::Ints(values) => {
            AttributeProto { name, ints: values.clone(), r#type: 7, ..AttributeProto::default() }
        }
    }
}

/// ONNX's number of an element type.
pub(super) fn data_type(dtype: DType) -> i32 {
    match dtype {
        DType::F32 => 1,
        DType::U8 => 2,
        DType::I32 => 6,
        DType::I64 => 7,
        DType::F16 => 10,
        DType::Bf16 => 16,
    }
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

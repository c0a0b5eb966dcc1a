//! Headers of safetensors files.

use std::collections::HashMap;
use std::ops::Range;

use safetensors::tensor::{Metadata, TensorInfo};
use safetensors::{Dtype, SafeTensorError};
use steptime_tensor::DType;

/// Bytes before the header: its length.
pub(super) const LENGTH: usize = 8;
/// Alignment of the header's end.
const ALIGNMENT: usize = 8;
/// Largest header that readers accept.
pub(super) const LARGEST: u64 = 100_000_000;

/// A tensor of a shard.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part {
    pub name: String,
    pub dtype: DType,
    pub shape: Vec<u64>,
    pub bytes: u64,
}

/// Tensors of a file by name, each with its bytes after the header.
pub(super) type Parts = HashMap<String, (Part, Range<u64>)>;

/// Length and header of a file with these tensors, one after the other.
pub(super) fn encode(parts: &[Part]) -> Result<Vec<u8>, SafeTensorError> {
    let mut end = 0;
    let infos = parts.iter().map(|part| {
        let begin = end;
        end += part.bytes as usize;
        let shape = part.shape.iter().map(|&size| size as usize).collect();
        (part.name.clone(), TensorInfo { dtype: stored(part.dtype), shape, data_offsets: (begin, end) })
    });
    let metadata = Metadata::new(None, infos.collect())?;
    let mut header = vec![0; LENGTH];
    serde_json::to_writer(&mut header, &metadata)?;
    header.resize(header.len().next_multiple_of(ALIGNMENT), b' ');
    let length = (header.len() - LENGTH) as u64;
    header[..LENGTH].copy_from_slice(&length.to_le_bytes());
    Ok(header)
}

/// Tensors of a header without its length, and the number of bytes after it.
pub(super) fn decode(header: &[u8]) -> Result<(Parts, u64), SafeTensorError> {
    let metadata: Metadata =
        serde_json::from_slice(header).map_err(SafeTensorError::InvalidHeaderDeserialization)?;
    let mut parts = HashMap::new();
    let mut length = 0;
    for (name, info) in metadata.tensors() {
        let dtype = known(info.dtype).ok_or(SafeTensorError::TensorInvalidInfo)?;
        let (begin, end) = (info.data_offsets.0 as u64, info.data_offsets.1 as u64);
        let shape = info.shape.iter().map(|&size| size as u64).collect();
        length = length.max(end);
        parts.insert(name.clone(), (Part { name, dtype, shape, bytes: end - begin }, begin..end));
    }
    Ok((parts, length))
}

/// Largest number of bytes that a tensor adds to a header.
pub(super) fn bound(name: &str, dimensions: usize) -> u64 {
    // A character becomes up to six (`\u0000`) a byte; numbers have up to 20 digits and a comma.
    (6 * name.len() + 21 * (dimensions + 2) + 80) as u64
}

fn stored(dtype: DType) -> Dtype {
    match dtype {
        DType::F32 => Dtype::F32,
        DType::F16 => Dtype::F16,
        DType::Bf16 => Dtype::BF16,
        DType::I32 => Dtype::I32,
        DType::I64 => Dtype::I64,
        DType::U8 => Dtype::U8,
    }
}

fn known(dtype: Dtype) -> Option<DType> {
    let all = [DType::F32, DType::F16, DType::Bf16, DType::I32, DType::I64, DType::U8];
    all.into_iter().find(|&known| stored(known) == dtype)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written_and_within_its_bound() {
        let part = |name: &str, dtype: DType, shape: &[u64]| Part {
            name: name.to_owned(),
            dtype,
            shape: shape.to_vec(),
            bytes: shape.iter().product::<u64>() * dtype.bytes() as u64,
        };
        let parts = [
            part("step", DType::I64, &[]),
            part("table \"0\"\u{1}", DType::F32, &[3, 4]),
            part("layer.bias[0..7]", DType::Bf16, &[7]),
            part("nothing", DType::U8, &[0, 9]),
        ];
        let bytes = encode(&parts).unwrap();
        let (decoded, length) = decode(&bytes[LENGTH..]).unwrap();
        assert_eq!(length, 8 + 48 + 14);
        assert_eq!(bytes.len() % ALIGNMENT, 0);
        let mut begin = 0;
        for part in &parts {
            assert_eq!(decoded[&part.name], (part.clone(), begin..begin + part.bytes));
            begin += part.bytes;
        }
        let bounds: u64 = parts.iter().map(|part| bound(&part.name, part.shape.len())).sum();
        assert!(bytes.len() as u64 <= bounds + LENGTH as u64);
    }
}

//! The models of a profile as one file, which stores a fingerprint of its header.

use rayon::prelude::*;

use super::codec::{Reader, Writer};
use super::error::ModelsError;
use super::format::{OLDEST, VERSION};
use super::{FamilyModels, models};

const MAGIC: [u8; 4] = *b"STPM";
/// Length of the magic, the version, and the fingerprints of the header and of the body.
const PREAMBLE: usize = 4 + 4 + 8 + 8;
/// Largest accepted size of one family's models.
const LARGEST: usize = 1 << 28;
/// Compression level: beyond this, files hardly shrink.
const LEVEL: i32 = 19;

/// Encodes the models as one file, sealed with the text of their header. Each family is a separate piece, so that they can be
/// unpacked in parallel.
pub(super) fn seal(models: &[FamilyModels], header: &str) -> Result<Vec<u8>, ModelsError> {
    let mut body = Writer::default();
    body.u32(models.len() as u32);
    for family in models {
        let raw = models::write(family);
        let packed = zstd::bulk::compress(&raw, LEVEL).map_err(ModelsError::Zstd)?;
        body.u32(raw.len() as u32);
        body.u32(packed.len() as u32);
        body.0.extend(packed);
    }
    let mut out = Vec::with_capacity(PREAMBLE + body.0.len());
    out.extend(MAGIC);
    out.extend(VERSION.to_le_bytes());
    out.extend(fingerprint_of_text(header).to_le_bytes());
    out.extend(fingerprint(&body.0).to_le_bytes());
    out.extend(body.0);
    Ok(out)
}

/// Whether models were written with a header of this text.
pub(super) fn belong(bytes: &[u8], text: &str) -> bool {
    bytes.starts_with(&MAGIC) && bytes.get(8..16) == Some(&fingerprint_of_text(text).to_le_bytes())
}

/// Decodes the models of a file; an error if it is damaged or of another header.
pub(super) fn unseal(bytes: &[u8], header: &str) -> Result<Vec<FamilyModels>, ModelsError> {
    let (front, body) = bytes.split_at_checked(PREAMBLE).ok_or(ModelsError::Short)?;
    let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| front[at + byte]));
    let version = number(4) as u32;
    if front[..4] != MAGIC {
        return Err(ModelsError::Magic);
    }
    if !(OLDEST..=VERSION).contains(&version) {
        return Err(ModelsError::Version(version));
    }
    if number(8) != fingerprint_of_text(header) {
        return Err(ModelsError::OtherHeader);
    }
    if number(16) != fingerprint(body) {
        return Err(ModelsError::Damaged);
    }
    let mut from = Reader(body);
    let mut pieces = Vec::new();
    for _ in 0..from.u32()? {
        let (raw, packed) = (from.u32()? as usize, from.u32()? as usize);
        pieces.push((raw.min(LARGEST), from.bytes(packed)?));
    }
    let unpack = |&(raw, packed): &(usize, &[u8])| {
        models::read(&zstd::bulk::decompress(packed, raw).map_err(ModelsError::Zstd)?, version)
    };
    pieces.par_iter().with_max_len(1).map(unpack).collect()
}

/// Fingerprint of a text, with any line endings.
fn fingerprint_of_text(text: &str) -> u64 {
    if text.contains('\r') {
        fingerprint(text.replace("\r\n", "\n").as_bytes())
    } else {
        fingerprint(text.as_bytes())
    }
}

/// FNV-1a over words of eight bytes, the last one filled up: catches damage, not malice.
fn fingerprint(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0u8; 8];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain([&last]).map(|&word| u64::from_le_bytes(word)).chain([bytes.len() as u64]);
    words.fold(0xcbf2_9ce4_8422_2325, |hash: u64, word| {
        let mixed = (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        mixed ^ (mixed >> 29)
    })
}

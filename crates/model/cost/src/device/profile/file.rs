//! A profile's folder on disk.

use std::path::Path;

use rayon::prelude::*;

use super::codec::{Reader, Writer};
use super::error::{ContentsError, HeaderError, ModelsError};
use super::folder;
use super::header::{Header, OLDEST, VERSION};
use super::{DeviceProfile, FamilyModels, models};
use crate::device::error::Error;

/// The readable file.
pub const HEADER: &str = "profile.toml";
/// The models.
pub const MODELS: &str = "models.bin.zst";

/// The longest readable file that is read.
const LONGEST: u64 = 64 << 20;

const MAGIC: [u8; 4] = *b"STPM";
/// Magic, version, fingerprints of the header and of what follows.
const PREAMBLE: usize = 4 + 4 + 8 + 8;
/// Larger models of one family than this are not believed.
const LARGEST: usize = 1 << 28;
/// How hard to compress: beyond this, files hardly shrink.
const LEVEL: i32 = 19;

impl DeviceProfile {
    /// Reads a profile: its folder, or the `profile.toml` in it.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, is of another version, has a field that is not known or cannot be, is cut off or
    /// damaged, or does not belong to the other.
    pub fn read(path: &Path) -> Result<DeviceProfile, Error> {
        let header_path = if path.is_dir() { path.join(HEADER) } else { path.to_owned() };
        let unread = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::Read { path, source }
        };
        let text = steptime_trace::read_text(&header_path, LONGEST).map_err(unread(&header_path))?;
        let models_path = header_path.with_file_name(MODELS);
        let bytes = folder::models(&header_path, &text).map_err(unread(&models_path))?;
        assemble(&text, bytes.as_deref(), &header_path, &models_path)
    }

    /// From the contents of the two files, as where they are part of a program.
    ///
    /// # Errors
    ///
    /// As [`read`](DeviceProfile::read), naming the files by their usual names.
    pub fn from_parts(header: &str, models: Option<&[u8]>) -> Result<DeviceProfile, Error> {
        assemble(header, models, Path::new(HEADER), Path::new(MODELS))
    }

    /// The contents of the two files; no second one where nothing was fitted.
    ///
    /// # Errors
    ///
    /// A header that cannot be written.
    pub fn to_parts(&self) -> Result<(String, Option<Vec<u8>>), ContentsError> {
        let text = self.header().text()?;
        if self.models.is_empty() {
            return Ok((text, None));
        }
        let sealed = seal(&self.models, fingerprint_of_text(&text))?;
        Ok((text, Some(sealed)))
    }

    /// Writes the profile's folder. A profile that is there already is replaced, a folder of anything else is not. What
    /// else lies beside a profile stays. Should the program end meanwhile, the folder holds the old profile or the new
    /// one.
    ///
    /// # Errors
    ///
    /// A place that cannot be written, or that holds something else.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        let (text, bytes) = self.to_parts().map_err(|error| match error {
            ContentsError::Header(source) => Error::Header { path: folder.to_owned(), source },
            ContentsError::Models(source) => Error::Models { path: folder.to_owned(), source },
        })?;
        if !folder::is_free(folder) {
            return Err(Error::Taken { path: folder.to_owned() });
        }
        // What is written must be read again: nothing is worse than a profile that was replaced by one that is none.
        assemble(&text, bytes.as_deref(), Path::new(HEADER), Path::new(MODELS))
            .map_err(|source| Error::Unusable { path: folder.to_owned(), source: Box::new(source) })?;
        folder::replace(folder, &text, bytes.as_deref())
            .map_err(|source| Error::Write { path: folder.to_owned(), source })
    }
}

fn assemble(
    text: &str,
    bytes: Option<&[u8]>,
    header_path: &Path,
    models_path: &Path,
) -> Result<DeviceProfile, Error> {
    let refused = |source| Error::Header { path: header_path.to_owned(), source };
    let damaged = |source| Error::Models { path: models_path.to_owned(), source };
    let header = Header::parse(text).map_err(refused)?;
    let models = match bytes {
        // A specification beside models that are none of its own is a mistake worth telling.
        Some(bytes) => unseal(bytes, fingerprint_of_text(text)).map_err(damaged)?,
        None if header.families.is_empty() => Vec::new(),
        None => return Err(refused(HeaderError::NoModels)),
    };
    DeviceProfile::new(header, models).map_err(damaged)
}

/// Each family is a piece of its own, so that they can be unpacked side by side.
fn seal(models: &[FamilyModels], header: u64) -> Result<Vec<u8>, ModelsError> {
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
    out.extend(header.to_le_bytes());
    out.extend(fingerprint(&body.0).to_le_bytes());
    out.extend(body.0);
    Ok(out)
}

/// Whether models were written with a header of this text.
pub(super) fn belong(bytes: &[u8], text: &str) -> bool {
    bytes.starts_with(&MAGIC) && bytes.get(8..16) == Some(&fingerprint_of_text(text).to_le_bytes())
}

fn unseal(bytes: &[u8], header: u64) -> Result<Vec<FamilyModels>, ModelsError> {
    let (front, body) = bytes.split_at_checked(PREAMBLE).ok_or(ModelsError::Short)?;
    let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| front[at + byte]));
    let version = number(4) as u32;
    if front[..4] != MAGIC {
        return Err(ModelsError::Magic);
    }
    if !(OLDEST..=VERSION).contains(&version) {
        return Err(ModelsError::Version(version));
    }
    if number(8) != header {
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

/// Of a text, whichever way its lines end.
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

//! Compiled kernels on disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The first bytes of an entry, with the version of its layout.
const MAGIC: &[u8; 16] = b"steptime cubin 1";

/// Bytes before the cubin: magic, length, hash.
const HEADER: usize = 16 + 8 + 16;

/// A folder of cubins, each in a file named by the hash of its inputs.
///
/// An entry is written to a temporary file and renamed, so that no reader sees a partial one. Its length and hash are
/// checked on reading: a damaged entry counts as missing. A folder that is not writable only costs time.
#[derive(Debug, Clone)]
pub struct CubinCache {
    folder: Option<PathBuf>,
}

impl CubinCache {
    /// A cache in this folder.
    #[must_use]
    pub fn at(folder: impl Into<PathBuf>) -> CubinCache {
        CubinCache { folder: Some(folder.into()) }
    }

    /// A cache in `STEPTIME_CACHE`, else in `steptime` in the user's cache folder (`XDG_CACHE_HOME`, else `~/.cache`).
    /// Without any of them, nothing is stored.
    #[must_use]
    pub fn usual() -> CubinCache {
        let of = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let users = || of("XDG_CACHE_HOME").or_else(|| of("HOME").map(|home| home.join(".cache")));
        CubinCache { folder: of("STEPTIME_CACHE").or_else(|| users().map(|folder| folder.join("steptime"))) }
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    fn place(&self, key: u128) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(format!("{key:032x}.cubin")))
    }

    /// The cubin of this key, if there is an undamaged one.
    #[must_use]
    pub fn get(&self, key: u128) -> Option<Vec<u8>> {
        let mut entry = fs::read(self.place(key)?).ok()?;
        let (header, cubin) = entry.split_at_checked(HEADER)?;
        let length = u64::from_le_bytes(header[16..24].try_into().ok()?);
        let sum = u128::from_le_bytes(header[24..].try_into().ok()?);
        if &header[..16] != MAGIC || length != cubin.len() as u64 || sum != hash(&[cubin]) {
            return None;
        }
        entry.drain(..HEADER);
        Some(entry)
    }

    /// Stores a cubin. Returns whether that succeeded.
    pub fn put(&self, key: u128, cubin: &[u8]) -> bool {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (Some(folder), Some(place)) = (&self.folder, self.place(key)) else {
            return false;
        };
        let part = format!("{key:032x}.{}.{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let part = folder.join(part);
        let mut entry = Vec::with_capacity(HEADER + cubin.len());
        entry.extend_from_slice(MAGIC);
        entry.extend_from_slice(&(cubin.len() as u64).to_le_bytes());
        entry.extend_from_slice(&hash(&[cubin]).to_le_bytes());
        entry.extend_from_slice(cubin);
        let kept = fs::create_dir_all(folder)
            .and_then(|()| fs::write(&part, &entry))
            .and_then(|()| fs::rename(&part, &place))
            .is_ok();
        if !kept {
            let _ = fs::remove_file(&part);
        }
        kept
    }
}

/// 128-bit FNV-1a over parts and their lengths.
pub(super) fn hash(parts: &[&[u8]]) -> u128 {
    let mut state = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
    let mut add = |byte: u8| state = (state ^ u128::from(byte)).wrapping_mul((1 << 88) + 0x13b);
    for part in parts {
        (part.len() as u64).to_le_bytes().into_iter().for_each(&mut add);
        part.iter().copied().for_each(&mut add);
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_found_and_what_is_damaged_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let cache = CubinCache::at(folder.path().join("deeper"));
        assert_eq!(cache.get(7), None);
        assert!(cache.put(7, b"some code"));
        assert_eq!(cache.get(7).as_deref(), Some(&b"some code"[..]));
        assert_eq!(cache.get(8), None);
        let file = cache.place(7).unwrap();
        let whole = fs::read(&file).unwrap();
        for cut in [0, 5, HEADER, whole.len() - 1] {
            fs::write(&file, &whole[..cut]).unwrap();
            assert_eq!(cache.get(7), None, "{cut}");
        }
        for place in [0, 17, 30, whole.len() - 1] {
            let mut damaged = whole.clone();
            damaged[place] ^= 1;
            fs::write(&file, &damaged).unwrap();
            assert_eq!(cache.get(7), None, "{place}");
        }
        assert!(cache.put(7, b"other code"));
        assert_eq!(cache.get(7).as_deref(), Some(&b"other code"[..]));
        assert_eq!(fs::read_dir(cache.folder().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_no_error() {
        assert!(!CubinCache { folder: None }.put(1, b"x"));
        assert!(!CubinCache::at("/dev/null/nowhere").put(1, b"x"));
        assert_eq!(CubinCache::at("/dev/null/nowhere").get(1), None);
    }

    #[test]
    fn hashes_tell_parts_apart() {
        assert_ne!(hash(&[b"ab", b"c"]), hash(&[b"a", b"bc"]));
        assert_ne!(hash(&[b""]), hash(&[]));
    }
}

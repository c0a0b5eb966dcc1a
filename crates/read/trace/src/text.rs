//! Small files as text.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Reads a file as text, of `most` bytes at most: a device or a pipe may never end.
///
/// # Errors
/// Where it cannot be read, is longer, or is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let bytes = read_bytes(path, most)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// The same of any bytes.
pub(crate) fn read_bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it is longer than {} MiB: is it the right file?", most >> 20)));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_too_long_is_refused() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        assert!(read_text(&path, 1 << 20).is_ok_and(|text| text.contains("[package]")));
        assert!(read_text(&path, 10).is_err_and(|error| error.to_string().contains("longer than")));
    }
}

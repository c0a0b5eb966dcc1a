//! Small files as text.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Reads a file as text, at most `most` bytes: a device or a pipe may never end.
///
/// # Errors
/// If it cannot be read, is longer, or is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let bytes = read_bytes(path, most)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// Reads the bytes of a file, at most `most`.
///
/// # Errors
/// If it cannot be read, or is longer.
pub fn read_bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let too_long =
        || io::Error::other(format!("it is longer than {} MiB: is it the right file?", most >> 20));
    let file = File::open(path)?;
    if file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() > most) {
        return Err(too_long());
    }
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_long()) } else { Ok(bytes) }
}

/// Reads the bytes of a regular file: neither a device nor a pipe, which may never have a writer.
///
/// # Errors
/// As [`read_bytes`]; if it is a device, a pipe or a folder.
pub fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    check_regular(path)?;
    read_bytes(path, most)
}

/// Opens a regular file: neither a device nor a pipe, which may never have a writer.
///
/// # Errors
/// If it cannot be opened; if it is a device, a pipe or a folder.
pub fn open_regular(path: &Path) -> io::Result<File> {
    check_regular(path)?;
    File::open(path)
}

/// Checks the kind of a file before it is opened, because opening a pipe waits for its writer.
fn check_regular(path: &Path) -> io::Result<()> {
    let found = std::fs::metadata(path)?;
    let kind = if found.is_dir() { "a folder" } else { "a device or a pipe" };
    if found.is_file() { Ok(()) } else { Err(io::Error::other(format!("it is {kind}, not a file"))) }
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

    #[cfg(unix)]
    #[test]
    fn a_device_is_read_as_far_as_allowed_or_not_at_all() {
        let endless = Path::new("/dev/zero");
        assert!(
            read_bytes(endless, 1 << 20).is_err_and(|error| error.to_string().contains("longer than 1 MiB"))
        );
        assert!(read_regular(endless, 1 << 20).is_err_and(|error| error.to_string().contains("not a file")));
        assert!(open_regular(endless).is_err_and(|error| error.to_string().contains("a device or a pipe")));
        assert!(open_regular(Path::new("/")).is_err_and(|error| error.to_string().contains("a folder")));
    }
}

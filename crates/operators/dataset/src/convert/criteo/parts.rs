//! Parts of text files that end at the end of a line.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use crate::Error;

/// Bytes of a part.
const BYTES: usize = 1 << 20;
/// Bytes of a compressed file that are read at once.
const COMPRESSED: usize = 1 << 18;

/// Whole lines of one file.
#[derive(Debug)]
pub(super) struct Part {
    /// Position of the file among the inputs.
    pub(super) file: usize,
    pub(super) text: Vec<u8>,
    /// Whether a line follows that is longer than a part, and was left out.
    pub(super) long: bool,
}

/// Reader of the parts of several files.
pub(super) struct Parts<'a> {
    files: &'a [PathBuf],
    /// Position of the next file.
    next: usize,
    current: Option<Box<dyn Read + Send>>,
    /// The beginning of a line at the end of the last part.
    cut: Vec<u8>,
    /// Whether the line to be read next is the rest of a long one.
    skipping: bool,
}

impl<'a> Parts<'a> {
    pub(super) fn new(files: &'a [PathBuf]) -> Parts<'a> {
        Parts { files, next: 0, current: None, cut: Vec::new(), skipping: false }
    }

    /// The next part, or none at the end of the last file.
    pub(super) fn next(&mut self) -> Result<Option<Part>, Error> {
        loop {
            let reader = match &mut self.current {
                Some(reader) => reader,
                none => {
                    let Some(path) = self.files.get(self.next) else { return Ok(None) };
                    self.next += 1;
                    none.insert(open(path).map_err(Error::io(path))?)
                }
            };
            let file = self.next - 1;
            let mut text = std::mem::take(&mut self.cut);
            let room = BYTES - text.len();
            text.reserve_exact(room);
            reader.take(room as u64).read_to_end(&mut text).map_err(Error::io(&self.files[file]))?;
            let ended = text.len() < BYTES;
            if ended {
                self.current = None;
            }
            if self.skipping {
                let end = memchr::memchr(b'\n', &text).map_or(text.len(), |end| end + 1);
                self.skipping = end == text.len() && !text.ends_with(b"\n") && !ended;
                text.drain(..end);
            }
            let mut long = false;
            if !ended {
                match memchr::memrchr(b'\n', &text) {
                    Some(end) => self.cut = text.split_off(end + 1),
                    None if text.is_empty() => {}
                    None if text.len() < BYTES => self.cut = std::mem::take(&mut text),
                    None => {
                        (long, self.skipping) = (true, true);
                        text.clear();
                    }
                }
            }
            if long || !text.is_empty() {
                return Ok(Some(Part { file, text, long }));
            }
        }
    }
}

/// Opens a file, and decompresses it if its first bytes are those of gzip or Zstandard.
fn open(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    let mut file = File::open(path)?;
    let mut magic = Vec::new();
    (&mut file).take(4).read_to_end(&mut magic)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(match magic[..] {
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(BufReader::with_capacity(COMPRESSED, file))),
        [0x28, 0xb5, 0x2f, 0xfd] => {
            Box::new(zstd::Decoder::with_buffer(BufReader::with_capacity(COMPRESSED, file))?)
        }
        _ => Box::new(file),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All text of the parts, and the number of long lines, of one file.
    fn parts(text: &[u8]) -> (Vec<u8>, usize) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("day");
        std::fs::write(&path, text).expect("written");
        let files = [path];
        let mut parts = Parts::new(&files);
        let (mut found, mut long) = (Vec::new(), 0);
        while let Some(part) = parts.next().expect("read") {
            assert!(part.text.len() <= BYTES);
            found.extend(part.text);
            long += usize::from(part.long);
        }
        (found, long)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn lines_are_kept_and_long_ones_left_out(lengths in proptest::collection::vec(
            prop_oneof![0_usize..300, 100_000_usize..600_000, BYTES - 2..2 * BYTES + 3], 0..12), newline: bool) {
            let lines: Vec<Vec<u8>> = lengths.iter().map(|&length| vec![b'x'; length]).collect();
            let mut text = lines.join(&b'\n');
            if newline {
                text.push(b'\n');
            }
            let (found, long) = parts(&text);
            let short = |line: &&[u8]| line.len() < BYTES;
            let all: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
            prop_assert_eq!(long, all.iter().filter(|line| line.len() >= BYTES).count());
            let kept: Vec<&[u8]> = all.into_iter().filter(short).filter(|line| !line.is_empty()).collect();
            let found: Vec<&[u8]> = found.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).collect();
            prop_assert!(found == kept);
        }
    }
}

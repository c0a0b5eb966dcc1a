//! Where text and files go out: a closed pipe is no error, and no file is left half written.

use std::error::Error as StdError;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;

use serde::Serialize;
use steptime::Error;

/// Prints a report.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    ignore_closed(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Prints a value as JSON.
pub fn print_json<T: Serialize>(value: &T) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(value).map_err(io::Error::from)?;
    text.push('\n');
    print(&text)
}

fn ignore_closed(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Says on stderr what failed, with those causes that the message does not name itself.
pub fn complain(failure: &dyn StdError) {
    let mut text = failure.to_string();
    let mut source = failure.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        source = cause.source();
    }
    let _ = writeln!(io::stderr(), "error: {}", text.trim_end());
}

/// Says on stderr what the user should know.
pub fn warn(text: &str) {
    let _ = writeln!(io::stderr(), "warning: {text}");
}

/// Writes a file beside its place and moves it there when it is whole.
pub fn write_file(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Error> {
    let written = || -> io::Result<()> {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        std::fs::metadata(folder)?;
        let file = builder().tempfile_in(folder)?;
        let mut out = BufWriter::new(file);
        fill(&mut out)?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    written().map_err(|source| Error::Write { path: path.into(), source })
}

/// As private as any new file, not more.
fn builder() -> tempfile::Builder<'static, 'static> {
    #[cfg_attr(not(unix), expect(unused_mut))]
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder
}

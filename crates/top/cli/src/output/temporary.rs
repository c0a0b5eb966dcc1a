//! Temporary files. They are removed when writing fails and when a signal ends the program. Those of a killed program
//! are removed by the next one that writes to their folder.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use tempfile::NamedTempFile;

pub use signals::{leave_signals_alone, uninterrupted};

const PREFIX: &str = ".steptime-";
const SUFFIX: &str = ".tmp";
/// Minimum age of a leftover file that is removed: the writer of a younger one may not have locked it yet.
const YOUNG: Duration = Duration::from_secs(60);

/// A temporary file. Its writer holds a lock on it.
pub struct Temporary {
    file: NamedTempFile,
}

impl Temporary {
    /// Creates a temporary file; the leftovers of killed programs in its folder are removed.
    ///
    /// # Errors
    /// A folder that cannot be written to.
    pub fn in_folder(folder: &Path) -> io::Result<Temporary> {
        remove_leftovers(folder);
        let file = signals::created(|| builder().tempfile_in(folder))?;
        // Without locks, as on some network file systems, leftovers stay.
        let _ = file.as_file().try_lock();
        Ok(Temporary { file })
    }

    pub fn as_file(&self) -> &File {
        self.file.as_file()
    }

    /// Removes the file.
    ///
    /// # Errors
    /// A file that cannot be removed.
    pub fn discard(self) -> io::Result<()> {
        let path = self.file.path().to_owned();
        let removed = self.file.close();
        signals::settled(&path);
        removed
    }

    /// Flushes the file to disk and renames it to its place, replacing a file there.
    ///
    /// # Errors
    /// A disk that is full, or a place that cannot be written to.
    pub fn move_to(self, place: &Path) -> io::Result<()> {
        self.as_file().sync_all()?;
        let path = self.file.path().to_owned();
        let moved = self.file.persist(place);
        signals::settled(&path);
        moved.map(|_| ()).map_err(|error| error.error)
    }
}

impl Write for Temporary {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Returns a builder of files with the mode of ordinary new files.
fn builder() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder
}

/// Removes leftover temporary files: older ones that no program holds a lock on.
fn remove_leftovers(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let ours = name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
        if ours && is_left(&entry.path()).unwrap_or(false) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn is_left(path: &Path) -> io::Result<bool> {
    let found = fs::symlink_metadata(path)?;
    let age = SystemTime::now().duration_since(found.modified()?).unwrap_or_default();
    Ok(found.is_file() && age > YOUNG && File::open(path)?.try_lock().is_ok())
}

#[cfg(unix)]
mod signals {
    //! Removal of temporary files when a signal ends the program.

    use std::path::PathBuf;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Mutex, MutexGuard, Once, PoisonError};

    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    use super::*;

    /// Paths of the temporary files.
    static UNSETTLED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

    fn unsettled() -> MutexGuard<'static, Vec<PathBuf>> {
        UNSETTLED.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the process belongs to another program, which handles signals itself.
    static FOREIGN: AtomicBool = AtomicBool::new(false);

    /// Leaves signals to the program that runs in this process; interrupted work may then leave temporary files.
    pub fn leave_signals_alone() {
        FOREIGN.store(true, Ordering::Relaxed);
    }

    /// Creates a file, and registers it. A signal waits until both are done.
    pub fn created(make: impl FnOnce() -> io::Result<NamedTempFile>) -> io::Result<NamedTempFile> {
        watched();
        let mut unsettled = unsettled();
        let file = make()?;
        unsettled.push(file.path().to_owned());
        Ok(file)
    }

    /// Runs work that must not be interrupted: a signal that ends the program waits until it is done.
    pub fn uninterrupted<T>(work: impl FnOnce() -> T) -> T {
        watched();
        let _held = unsettled();
        work()
    }

    /// Unregisters a file that has been renamed or removed.
    pub fn settled(path: &Path) {
        unsettled().retain(|other| other != path);
    }

    /// Starts to watch for signals, unless another program handles them.
    fn watched() {
        static WATCH: Once = Once::new();
        if !FOREIGN.load(Ordering::Relaxed) {
            WATCH.call_once(watch);
        }
    }

    /// Makes these signals remove the files before they end the program as usual. Signals that the program was started to
    /// ignore, as by `nohup`, stay ignored.
    fn watch() {
        let wanted = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| !is_ignored(signal));
        let Ok(mut signals) = Signals::new(wanted) else { return };
        std::thread::spawn(move || {
            for signal in signals.forever() {
                // Held until the end, so that no other file is created.
                let unsettled = unsettled();
                for path in unsettled.iter() {
                    let _ = fs::remove_file(path);
                }
                let _ = emulate_default_handler(signal);
            }
        });
    }

    /// Whether the program ignores a signal; `false` where the system does not report it.
    fn is_ignored(signal: i32) -> bool {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
        (mask >> (signal - 1)) & 1 == 1
    }
}

#[cfg(not(unix))]
mod signals {
    use super::*;

    pub fn created(make: impl FnOnce() -> io::Result<NamedTempFile>) -> io::Result<NamedTempFile> {
        make()
    }

    pub fn settled(_path: &Path) {}

    pub fn leave_signals_alone() {}

    pub fn uninterrupted<T>(work: impl FnOnce() -> T) -> T {
        work()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_makes_any_more_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let make = |name: &str, age: u64| {
            let path = folder.path().join(name);
            let file = File::create(&path).expect("a file");
            file.set_modified(SystemTime::now() - Duration::from_secs(age)).expect("a time");
            (path, file)
        };
        let (left, file) = make(".steptime-a.tmp", 100);
        drop(file);
        let (held, file) = make(".steptime-b.tmp", 100);
        file.lock().expect("a lock");
        let (young, _) = make(".steptime-c.tmp", 0);
        let (other, _) = make("steptime-d.tmp", 100);
        remove_leftovers(folder.path());
        assert!(!left.exists());
        assert!(held.exists() && young.exists() && other.exists());
    }
}

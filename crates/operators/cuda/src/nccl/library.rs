//! The library and its functions.

use std::env;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use libloading::Library;

use crate::Error;

/// Environment variable with the path of the library.
pub const LIBRARY_VARIABLE: &str = "STEPTIME_NCCL";

/// Names by which the loader searches for it.
const NAMES: [&str; 2] = ["libnccl.so.2", "libnccl.so"];

/// The oldest version whose functions are used: exchanges in graphs without the process that captures them.
const OLDEST: c_int = 21_100;

/// Bytes of a unique id.
pub(super) const ID_BYTES: usize = 128;

/// A unique id in the library's layout.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct RawId(pub(super) [u8; ID_BYTES]);

/// A communicator of the library.
pub(super) type RawCommunicator = *mut c_void;
/// A stream of the driver.
pub(super) type RawStream = *mut c_void;
/// Status of a call; 0 for success.
pub(super) type Status = c_int;

/// Status of a call that still runs.
pub(super) const IN_PROGRESS: Status = 7;

/// Functions of the library, as declared in `nccl.h`.
pub(super) struct Functions {
    pub(super) version: c_int,
    pub(super) unique_id: unsafe extern "C" fn(*mut RawId) -> Status,
    pub(super) init_rank: unsafe extern "C" fn(*mut RawCommunicator, c_int, RawId, c_int) -> Status,
    pub(super) destroy: unsafe extern "C" fn(RawCommunicator) -> Status,
    pub(super) abort: unsafe extern "C" fn(RawCommunicator) -> Status,
    pub(super) async_error: unsafe extern "C" fn(RawCommunicator, *mut Status) -> Status,
    pub(super) group_start: unsafe extern "C" fn() -> Status,
    pub(super) group_end: unsafe extern "C" fn() -> Status,
    pub(super) send:
        unsafe extern "C" fn(*const c_void, usize, c_int, c_int, RawCommunicator, RawStream) -> Status,
    pub(super) receive:
        unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, RawCommunicator, RawStream) -> Status,
    pub(super) all_reduce: unsafe extern "C" fn(
        *const c_void,
        *mut c_void,
        usize,
        c_int,
        c_int,
        RawCommunicator,
        RawStream,
    ) -> Status,
    pub(super) broadcast: unsafe extern "C" fn(
        *const c_void,
        *mut c_void,
        usize,
        c_int,
        c_int,
        RawCommunicator,
        RawStream,
    ) -> Status,
    error_string: unsafe extern "C" fn(Status) -> *const c_char,
    /// Kept loaded to the end of the process.
    _library: Library,
}

impl Functions {
    /// The functions of the library, loaded at the first call.
    ///
    /// # Errors
    ///
    /// No such library, or one that is too old.
    pub(super) fn load() -> Result<&'static Functions, Error> {
        static LOADED: OnceLock<Result<Functions, String>> = OnceLock::new();
        let functions =
            LOADED.get_or_init(open).as_ref().map_err(|why| Error::NoNccl { why: why.clone() })?;
        if functions.version < OLDEST {
            return Err(Error::TooOld {
                what: "NCCL",
                found: in_words(functions.version),
                needed: in_words(OLDEST),
                remedy: "install a newer one, such as that of `pip install nvidia-nccl-cu13`",
            });
        }
        Ok(functions)
    }

    /// Fails where a call did, with its action.
    pub(super) fn check(&self, what: &'static str, status: Status) -> Result<(), Error> {
        if status == 0 || status == IN_PROGRESS {
            return Ok(());
        }
        // SAFETY: the library returns a constant text for every number.
        let why = unsafe { CStr::from_ptr((self.error_string)(status)) }.to_string_lossy().into_owned();
        Err(Error::Nccl { what, why })
    }
}

/// Version of the library, such as `2.28.9`.
///
/// # Errors
///
/// No such library, or one that is too old.
pub fn version() -> Result<String, Error> {
    Functions::load().map(|functions| in_words(functions.version))
}

/// Opens the library, or returns the attempts in words.
fn open() -> Result<Functions, String> {
    let given = env::var_os(LIBRARY_VARIABLE).filter(|path| !path.is_empty());
    let names = match &given {
        Some(path) => vec![path.clone()],
        None => NAMES.iter().map(Into::into).collect(),
    };
    let mut tried = Vec::new();
    for name in names {
        // SAFETY: the library's initialization has no requirements.
        match unsafe { Library::new(&name) } {
            Ok(library) => return functions(library).map_err(|why| format!("{}: {why}", name.display())),
            Err(error) => tried.push(format!("{} ({error})", name.display())),
        }
    }
    Err(tried.join(", "))
}

/// Finds the functions in a library.
fn functions(library: Library) -> Result<Functions, String> {
    /// The function of a name.
    ///
    /// # Safety
    ///
    /// `F` is the function's type.
    unsafe fn find<F: Copy>(library: &Library, name: &str) -> Result<F, String> {
        // SAFETY: by the caller's promise.
        unsafe { library.get::<F>(name) }.map(|symbol| *symbol).map_err(|error| error.to_string())
    }
    let mut number = 0;
    // SAFETY: the types are those of `nccl.h`, which have not changed since NCCL 2.7; enums are ints.
    unsafe {
        let version: unsafe extern "C" fn(*mut c_int) -> Status = find(&library, "ncclGetVersion")?;
        if version(&raw mut number) != 0 {
            return Err("its version is not known".to_owned());
        }
        Ok(Functions {
            version: number,
            unique_id: find(&library, "ncclGetUniqueId")?,
            init_rank: find(&library, "ncclCommInitRank")?,
            destroy: find(&library, "ncclCommDestroy")?,
            abort: find(&library, "ncclCommAbort")?,
            async_error: find(&library, "ncclCommGetAsyncError")?,
            group_start: find(&library, "ncclGroupStart")?,
            group_end: find(&library, "ncclGroupEnd")?,
            send: find(&library, "ncclSend")?,
            receive: find(&library, "ncclRecv")?,
            all_reduce: find(&library, "ncclAllReduce")?,
            broadcast: find(&library, "ncclBroadcast")?,
            error_string: find(&library, "ncclGetErrorString")?,
            _library: library,
        })
    }
}

/// A version in words: 22809 is 2.28.9.
fn in_words(version: c_int) -> String {
    let (major, minor, patch) = (version / 10_000, version / 100 % 100, version % 100);
    format!("{major}.{minor}.{patch}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_words() {
        assert_eq!([22_809, 21_100].map(in_words), ["2.28.9", "2.11.0"]);
    }

    #[test]
    fn the_absence_of_the_library_is_named() {
        match version() {
            Ok(version) => assert!(version.starts_with("2."), "{version}"),
            Err(error) => assert!(error.to_string().contains("libnccl.so.2"), "{error}"),
        }
    }
}

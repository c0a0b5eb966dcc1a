//! Compilation of CUDA C++ to cubins, by NVRTC.

use std::borrow::Cow;
use std::ffi::{CStr, CString};
use std::fmt::Write;

use cudarc::nvrtc::result as nvrtc;
use cudarc::nvrtc::sys;

use super::cubin_cache::hash;
use super::{Capability, CubinCache, Error};

/// CUDA C++ source with its compiler options.
#[derive(Debug, Clone)]
pub struct Source {
    name: &'static str,
    text: Cow<'static, str>,
    options: Vec<String>,
    own_features: bool,
}

impl Source {
    /// A source with its name for messages.
    #[must_use]
    pub fn new(name: &'static str, text: impl Into<Cow<'static, str>>) -> Source {
        let options = ["--std=c++17", "--device-as-default-execution-space", "--extra-device-vectorization"];
        let options = options.iter().map(|&option| option.to_owned()).collect();
        Source { name, text: text.into(), options, own_features: false }
    }

    /// Adds a macro.
    #[must_use]
    pub fn define(mut self, name: &str, value: impl std::fmt::Display) -> Source {
        self.options.push(format!("-D{name}={value}"));
        self
    }

    /// Adds a compiler option, such as `--fmad=false`.
    #[must_use]
    pub fn option(mut self, option: &str) -> Source {
        self.options.push(option.to_owned());
        self
    }

    /// Enables the instructions that only GPUs of exactly this capability have.
    #[must_use]
    pub fn own_features(mut self) -> Source {
        self.own_features = true;
        self
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The options, without that of the architecture.
    #[must_use]
    pub fn options(&self) -> &[String] {
        &self.options
    }
}

/// Origin of a cubin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The compiler.
    Compiled,
    /// The cache on disk.
    Cached,
}

/// A compiled source.
#[derive(Debug, Clone)]
pub struct Build {
    /// The source's name.
    pub name: &'static str,
    /// The machine code.
    pub cubin: Vec<u8>,
    /// Origin of the machine code.
    pub origin: Origin,
    /// All options it was compiled with.
    pub options: Vec<String>,
}

impl Build {
    /// Compiles a source for GPUs of this capability and a driver that supports this version of CUDA (13000 is 13.0),
    /// or takes it from the cache. Needs no GPU.
    ///
    /// # Errors
    ///
    /// No compiler, a source that does not compile, or a driver older than the compiler.
    pub fn new(
        source: &Source,
        capability: Capability,
        driver: u32,
        cache: &CubinCache,
    ) -> Result<Build, Error> {
        let version = nvrtc_version()?;
        if driver / 1000 < version.0 {
            return Err(Error::TooOld {
                what: "the driver's CUDA version",
                found: format!("{}.{}", driver / 1000, driver % 1000 / 10),
                needed: format!("{}.0", version.0),
                remedy: "update the driver, or put an older libnvrtc first in LD_LIBRARY_PATH",
            });
        }
        let own = if source.own_features { "a" } else { "" };
        let mut options =
            vec![format!("--gpu-architecture=sm_{}{}{own}", capability.major, capability.minor)];
        options.extend_from_slice(&source.options);
        let joined = options.join("\n");
        let versions = format!("{version:?} {driver}");
        let key = hash(&[source.name, &source.text, &joined, &versions].map(str::as_bytes));
        if let Some(cubin) = cache.get(key) {
            return Ok(Build { name: source.name, cubin, origin: Origin::Cached, options });
        }
        let cubin = compile(source, &options)?;
        cache.put(key, &cubin);
        Ok(Build { name: source.name, cubin, origin: Origin::Compiled, options })
    }
}

/// Returns the compiler's version, major and minor.
///
/// # Errors
///
/// The compiler is missing.
pub fn nvrtc_version() -> Result<(u32, u32), Error> {
    // SAFETY: only tries to load the library.
    if !unsafe { sys::is_culib_present() } {
        return Err(Error::NoCompiler);
    }
    let (mut major, mut minor) = (0, 0);
    // SAFETY: the library is loaded, and writes two numbers.
    unsafe { sys::nvrtcVersion(&mut major, &mut minor) }.result().map_err(|_| Error::NoCompiler)?;
    Ok((u32::try_from(major).unwrap_or(0), u32::try_from(minor).unwrap_or(0)))
}

/// A program of the compiler, destroyed on drop.
struct Program(sys::nvrtcProgram);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: made by `create_program`, and destroyed once.
        let _ = unsafe { nvrtc::destroy_program(self.0) };
    }
}

fn compile(source: &Source, options: &[String]) -> Result<Vec<u8>, Error> {
    let wrong = |log: String| {
        let mut listed = String::new();
        options.iter().for_each(|option| _ = write!(listed, "{option} "));
        Error::Compile { name: source.name.into(), options: listed.trim_end().into(), log }
    };
    let text = CString::new(source.text.as_bytes()).map_err(|_| wrong("the source holds a zero".into()))?;
    let name = CString::new(source.name).map_err(|_| wrong("the name holds a zero".into()))?;
    if options.iter().any(|option| option.contains('\0')) {
        return Err(wrong("an option holds a zero".into()));
    }
    let program = nvrtc::create_program(&text, Some(&name)).map_err(|error| wrong(format!("{error:?}")))?;
    let program = Program(program);
    // SAFETY: the program was just made.
    if let Err(error) = unsafe { nvrtc::compile_program(program.0, options) } {
        // SAFETY: as above.
        let log = unsafe { nvrtc::get_program_log(program.0) }.unwrap_or_default();
        let log: Vec<u8> = log.iter().map(|&byte| byte.to_ne_bytes()[0]).collect();
        let log = CStr::from_bytes_until_nul(&log).map(CStr::to_string_lossy).unwrap_or_default();
        return Err(wrong(if log.is_empty() { format!("{error:?}") } else { log.into_owned() }));
    }
    let mut size = 0;
    // SAFETY: the program is compiled; the compiler writes one number.
    unsafe { sys::nvrtcGetCUBINSize(program.0, &mut size) }
        .result()
        .map_err(|error| wrong(format!("{error:?}")))?;
    let mut cubin = vec![0_u8; size];
    // SAFETY: the compiler writes as many bytes as it reported.
    unsafe { sys::nvrtcGetCUBIN(program.0, cubin.as_mut_ptr().cast()) }
        .result()
        .map_err(|error| wrong(format!("{error:?}")))?;
    Ok(cubin)
}

#[cfg(test)]
mod tests {
    use super::*;

    const H200: Capability = Capability { major: 9, minor: 0 };

    #[test]
    fn a_kernel_is_compiled_once_and_a_wrong_one_is_explained() {
        let Ok((major, _)) = nvrtc_version() else {
            return steptime_skips::skip("no NVRTC");
        };
        let folder = tempfile::tempdir().unwrap();
        let cache = CubinCache::at(folder.path());
        let text = "extern \"C\" __global__ void fill(float* to) { to[threadIdx.x] = VALUE; }";
        let source = Source::new("fill.cu", text).define("VALUE", "1.5f");
        let origin =
            |source: &Source| Build::new(source, H200, major * 1000, &cache).map(|build| build.origin);
        assert_eq!(origin(&source).unwrap(), Origin::Compiled);
        assert_eq!(origin(&source).unwrap(), Origin::Cached);
        assert_eq!(origin(&source.clone().define("MORE", 1)).unwrap(), Origin::Compiled);
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            std::fs::write(entry.unwrap().path(), "damaged").unwrap();
        }
        assert_eq!(origin(&source).unwrap(), Origin::Compiled);
        let error = origin(&Source::new("fill.cu", text)).unwrap_err().to_string();
        assert!(error.contains("VALUE") && error.contains("sm_90"), "{error}");
        let old = Build::new(&source, H200, 11000, &cache).unwrap_err();
        assert!(matches!(old, Error::TooOld { .. }), "{old}");
    }
}

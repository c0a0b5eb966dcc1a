//! Compilation of sources in tests, without a GPU.

use tempfile::TempDir;

use super::{Build, Capability, CubinCache, Source, nvrtc_version};

/// The compiler for Hopper GPUs, with a cache of its own.
pub(crate) struct TestCompiler {
    cache: CubinCache,
    driver: u32,
    _folder: TempDir,
}

impl TestCompiler {
    /// The compiler; `None` where it is missing, and the test is skipped.
    #[track_caller]
    pub(crate) fn new() -> Option<TestCompiler> {
        let Ok((major, _)) = nvrtc_version() else {
            steptime_skips::skip("no NVRTC");
            return None;
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        Some(TestCompiler { cache: CubinCache::at(folder.path()), driver: major * 1000, _folder: folder })
    }

    /// Compiles a source, and panics with the compiler's log if it does not compile.
    #[track_caller]
    pub(crate) fn build(&self, source: &Source) -> Build {
        let build = Build::new(source, Capability { major: 9, minor: 0 }, self.driver, &self.cache);
        build.unwrap_or_else(|error| panic!("{error}"))
    }
}

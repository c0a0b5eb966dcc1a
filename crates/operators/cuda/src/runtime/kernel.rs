//! Loaded code and its launches.

use std::ffi::CString;
use std::sync::Arc;

use cudarc::driver::result;
use cudarc::driver::sys::{self, CUfunction_attribute as Attribute};

use super::{Args, Build, Device, Error, Origin, Source, Stream};

/// Blocks and threads of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Grid {
    /// Number of blocks along x, y, z; x varies fastest.
    pub blocks: [u32; 3],
    /// Number of threads of a block along x, y, z.
    pub threads: [u32; 3],
    /// Bytes of dynamic shared memory of a block.
    pub shared: u32,
}

impl Grid {
    /// `blocks` blocks of `threads` threads.
    #[must_use]
    pub fn line(blocks: u32, threads: u32) -> Grid {
        Grid { blocks: [blocks, 1, 1], threads: [threads, 1, 1], shared: 0 }
    }

    /// `x` blocks along x, for each of `y` along y.
    #[must_use]
    pub fn plane(x: u32, y: u32, threads: u32) -> Grid {
        Grid { blocks: [x, y, 1], threads: [threads, 1, 1], shared: 0 }
    }

    /// The same grid with `bytes` bytes of dynamic shared memory.
    #[must_use]
    pub fn shared(self, bytes: u32) -> Grid {
        Grid { shared: bytes, ..self }
    }
}

/// Code loaded on a device. Clones are the same code.
#[derive(Debug, Clone)]
pub struct Module(Arc<LoadedCode>);

#[derive(Debug)]
struct LoadedCode {
    device: Device,
    module: sys::CUmodule,
    name: &'static str,
    origin: Origin,
}

// SAFETY: the driver's handles may be used from every thread.
unsafe impl Send for LoadedCode {}
// SAFETY: as above; nothing changes after loading.
unsafe impl Sync for LoadedCode {}

impl Device {
    /// Compiles a source for this GPU, or takes it from the cache on disk, and loads it.
    ///
    /// # Errors
    ///
    /// No compiler, a source that does not compile, or a driver older than the compiler.
    pub fn load(&self, source: &Source) -> Result<Module, Error> {
        let build = Build::new(source, self.capability(), self.driver(), self.cubins())?;
        Module::load(self, &build)
    }
}

impl Module {
    fn load(device: &Device, build: &Build) -> Result<Module, Error> {
        device.bind()?;
        // SAFETY: the cubin is complete: fresh from the compiler, or checked by its hash.
        let module = unsafe { result::module::load_data(build.cubin.as_ptr().cast()) }
            .map_err(Error::driver(format!("loading {}", build.name)))?;
        Ok(Module(Arc::new(LoadedCode {
            device: device.clone(),
            module,
            name: build.name,
            origin: build.origin,
        })))
    }

    /// A kernel by its name.
    ///
    /// # Errors
    ///
    /// The module has no kernel of that name.
    pub fn kernel(&self, name: &str) -> Result<Kernel, Error> {
        let wrong = || Error::NoKernel { module: self.0.name.into(), kernel: name.into() };
        let text = CString::new(name).map_err(|_| wrong())?;
        self.0.device.bind()?;
        // SAFETY: the module is loaded, and the kernel keeps it.
        let function = unsafe { result::module::get_function(self.0.module, text) }.map_err(|_| wrong())?;
        Ok(Kernel { function, name: name.into(), module: self.clone() })
    }

    /// Origin of the code.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.0.origin
    }
}

impl Drop for LoadedCode {
    fn drop(&mut self) {
        // Launches of its kernels may still run. If waiting for them fails, the code stays loaded.
        if self.device.synchronize().is_ok() {
            // SAFETY: loaded once. Every `Kernel` keeps the module, so all kernels are dropped, and all their launches
            // are done.
            let _ = unsafe { result::module::unload(self.module) };
        }
    }
}

/// A kernel that can be launched.
#[derive(Debug, Clone)]
pub struct Kernel {
    function: sys::CUfunction,
    name: String,
    module: Module,
}

// SAFETY: the driver's handles may be used from every thread.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

impl Kernel {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Number of registers of a thread.
    ///
    /// # Errors
    ///
    /// The driver refuses.
    pub fn registers(&self) -> Result<u32, Error> {
        self.attribute(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)
    }

    /// Bytes of a thread's registers that are spilled to memory.
    ///
    /// # Errors
    ///
    /// The driver refuses.
    pub fn spilled(&self) -> Result<u32, Error> {
        self.attribute(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)
    }

    fn attribute(&self, which: Attribute) -> Result<u32, Error> {
        self.module.0.device.bind()?;
        // SAFETY: the function belongs to a loaded module.
        let value = unsafe { result::function::get_function_attribute(self.function, which) };
        let value = value.map_err(Error::driver(format!("asking about {}", self.name)))?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    /// Allows this many bytes of dynamic shared memory in a block: required for more than 48 KiB.
    ///
    /// # Errors
    ///
    /// More shared memory than the device has.
    pub fn allow_shared(&self, bytes: u32) -> Result<(), Error> {
        self.set(Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes)
    }

    /// Leaves as much of a multiprocessor's memory to the first-level cache as the kernel's shared memory allows.
    ///
    /// # Errors
    ///
    /// The driver refuses.
    pub fn prefer_cache(&self) -> Result<(), Error> {
        self.set(Attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 0)
    }

    fn set(&self, which: Attribute, value: u32) -> Result<(), Error> {
        self.module.0.device.bind()?;
        let value = i32::try_from(value).unwrap_or(i32::MAX);
        // SAFETY: the function belongs to a loaded module.
        unsafe { result::function::set_function_attribute(self.function, which, value) }
            .map_err(Error::driver(format!("preparing {}", self.name)))
    }

    /// Launches the kernel, once no other stream uses the memory that the arguments name. A grid without blocks does
    /// nothing.
    ///
    /// # Safety
    ///
    /// - The arguments are those of the kernel in number and type.
    /// - All memory that the kernel uses is named by `args`, as read or as written, or belongs to others. It is as long
    ///   as the kernel assumes.
    /// - Memory of others, and memory that `args` does not name, lives until the stream has passed the launch, and no
    ///   other stream uses it before. A [`Buffer`](crate::Buffer) that is named needs no promise: it keeps the streams
    ///   that use it, and waits for them before it is used in another one or freed.
    ///
    /// # Errors
    ///
    /// The driver refuses, or an earlier kernel failed.
    pub unsafe fn launch(&self, stream: &Stream, grid: Grid, mut args: Args<'_>) -> Result<(), Error> {
        if grid.blocks.contains(&0) {
            return Ok(());
        }
        args.take_turn(stream)?;
        stream.device().bind()?;
        let [x, y, z] = grid.blocks;
        let [tx, ty, tz] = grid.threads;
        // SAFETY: by the caller's promise; the driver copies the arguments before it returns.
        unsafe {
            result::launch_kernel(
                self.function,
                (x, y, z),
                (tx, ty, tz),
                grid.shared,
                stream.raw(),
                &mut args.pointers(),
            )
        }
        .map_err(|source| Error::Driver { what: format!("launching {} as {grid:?}", self.name), source })
    }
}

//! Work that Ctrl-C interrupts.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Maximum delay of a signal.
const PATIENCE: Duration = Duration::from_millis(50);
/// Stack size of a thread, bytes: that of the main thread of a Linux process.
const STACK: usize = 8 << 20;

/// The first process that ran work, which uses the global threads.
static FIRST: OnceLock<u32> = OnceLock::new();
/// Threads of a forked process instead of these, with its id.
static FORKED: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

type Job = Box<dyn FnOnce() + Send>;

/// Idle threads, and their process: a fork has none of them. Each keeps its memory from earlier work.
static IDLE: Mutex<Vec<(u32, Sender<Job>)>> = Mutex::new(Vec::new());

/// Runs work on another thread, without the interpreter's lock. A signal whose handler raises, such as Ctrl-C, ends the waiting: the
/// work then runs to its end, and its result is dropped.
///
/// # Errors
/// The exception of a signal's handler, or one if no thread can be started.
///
/// # Panics
/// If the work panics.
pub fn wait<T: Send + 'static>(py: Python<'_>, work: impl FnOnce() -> T + Send + 'static) -> PyResult<T> {
    let (done, mut waiting) = channel();
    begin(Box::new(move || {
        // If the receiver is gone, the result is not needed.
        let _ = done.send(catch_unwind(AssertUnwindSafe(work)));
    }))?;
    loop {
        let mine = &mut waiting;
        match py.detach(move || mine.recv_timeout(PATIENCE)) {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(panic)) => resume_unwind(panic),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("the work ended without an answer"));
            }
        }
    }
}

/// Passes a job to an idle thread, or to a new one.
fn begin(mut job: Job) -> PyResult<()> {
    while let Some((process, worker)) = idle().pop() {
        if process != std::process::id() {
            continue;
        }
        match worker.send(job) {
            Ok(()) => return Ok(()),
            Err(back) => job = back.0,
        }
    }
    let shared = forked()?;
    let (own, jobs) = channel::<Job>();
    let worker = own.clone();
    Builder::new().name("steptime".into()).stack_size(STACK).spawn(move || {
        for job in jobs {
            match &shared {
                None => job(),
                Some(threads) => threads.install(job),
            }
            idle().push((std::process::id(), own.clone()));
        }
    })?;
    worker.send(job).map_err(|_| PyRuntimeError::new_err("a thread ended before its work"))
}

/// Returns the threads of a forked process, which does not have the global ones; `None` for the first process.
fn forked() -> PyResult<Option<Arc<ThreadPool>>> {
    let process = std::process::id();
    if *FIRST.get_or_init(|| process) == process {
        return Ok(None);
    }
    let mut known = FORKED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, threads)) = known.as_ref().filter(|(of, _)| *of == process) {
        return Ok(Some(Arc::clone(threads)));
    }
    let threads = ThreadPoolBuilder::new().stack_size(STACK).build();
    let threads = Arc::new(threads.map_err(|error| PyRuntimeError::new_err(error.to_string()))?);
    // Threads of another process do not exist here, and cannot be ended.
    std::mem::forget(known.replace((process, Arc::clone(&threads))));
    Ok(Some(threads))
}

fn idle() -> MutexGuard<'static, Vec<(u32, Sender<Job>)>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

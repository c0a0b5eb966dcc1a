//! Work that Ctrl-C need not wait for.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// How long a signal waits at most.
const PATIENCE: Duration = Duration::from_millis(50);
/// As much as the main thread of a Linux process has.
const STACK: usize = 8 << 20;

/// The process that worked first, whose threads all share.
static FIRST: OnceLock<u32> = OnceLock::new();
/// What a fork, named by its number, has in their place.
static FORKED: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

type Job = Box<dyn FnOnce() + Send>;

/// Threads that wait for work, and the process they are of: a fork has none of them. Each has its memory from the work before.
static IDLE: Mutex<Vec<(u32, Sender<Job>)>> = Mutex::new(Vec::new());

/// Does some work on another thread, without the interpreter's lock. A signal whose handler raises, as that of Ctrl-C does, ends the
/// waiting: nobody hears then what came of the work, which goes on to its end.
///
/// # Errors
/// What a signal's handler raises; where no thread can be had.
///
/// # Panics
/// Where the work does.
pub fn wait<T: Send + 'static>(py: Python<'_>, work: impl FnOnce() -> T + Send + 'static) -> PyResult<T> {
    let (done, mut waiting) = channel();
    begin(Box::new(move || {
        // Where the other end is gone, so is who asked.
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

/// Gives a job to a thread that waits for one, or to a new one.
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

/// The threads of a fork, which has none of those that others share.
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
    // Those of another process are not there to be ended.
    std::mem::forget(known.replace((process, Arc::clone(&threads))));
    Ok(Some(threads))
}

fn idle() -> MutexGuard<'static, Vec<(u32, Sender<Job>)>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

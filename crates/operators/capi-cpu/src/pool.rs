//! A thread pool of the caller's, called through C.

use std::ffi::{CStr, c_char, c_void};

use steptime_ops::{Cpu, Isa, Pool};

use crate::error;

/// Work of one member, called by a pool with the context and the number of the member.
pub type SteptimeWork = unsafe extern "C" fn(context: *mut c_void, member: usize);

/// Calls `work(context, member)` once for each member `0..count`, in parallel where the pool has threads, and returns
/// when all calls have returned. `pool` is the pointer that was given to [`steptime_cpu_on`].
pub type SteptimePool =
    unsafe extern "C" fn(pool: *mut c_void, count: usize, work: SteptimeWork, context: *mut c_void);

/// A pool function of the caller's, and its pool pointer.
struct Foreign {
    threads: usize,
    run: SteptimePool,
    pool: *mut c_void,
}

// SAFETY: it may be called from any thread with this pointer: `steptime_cpu_on` requires both of the caller.
unsafe impl Send for Foreign {}
// SAFETY: as above.
unsafe impl Sync for Foreign {}

/// Work of one round, as passed through C.
type Work<'a> = &'a (dyn Fn(usize) + Sync);

/// Runs the share of a member.
///
/// # Safety
///
/// `context` points to a [`Work`] that lives.
unsafe extern "C" fn member(context: *mut c_void, member: usize) {
    // SAFETY: as the caller promises.
    let work = unsafe { *context.cast::<Work<'_>>() };
    // It does not unwind: panics of the work are kept for the thread that started the round.
    work(member);
}

impl Pool for Foreign {
    fn threads(&self) -> usize {
        self.threads
    }

    fn run(&self, count: usize, work: Work<'_>) {
        let context = (&raw const work).cast_mut().cast();
        // SAFETY: the function may be called with its pool, as the caller of `steptime_cpu_on` promised, and does not use
        // the context after it has returned.
        unsafe { (self.run)(self.pool, count, member, context) };
    }
}

/// Like [`steptime_cpu_new`](crate::steptime_cpu_new), on threads of the caller's: `run` is called with `pool` for each
/// round of work, such as
///
/// ```c
/// void run(void *pool, size_t count, void (*work)(void *, size_t), void *context) {
///     #pragma omp parallel for num_threads(count) schedule(static, 1)
///     for (size_t member = 0; member < count; ++member) work(context, member);
/// }
/// ```
///
/// # Safety
///
/// `isa` is null or a zero-terminated string. `run` is null or may be called from any thread that uses the handle, with
/// `pool`, until the handle is freed; it does not use `work` and `context` after it has returned, and throws no
/// exception.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_cpu_on(
    threads: usize,
    run: Option<SteptimePool>,
    pool: *mut c_void,
    isa: *const c_char,
) -> *mut Cpu {
    error::handle(|| {
        let run = run.ok_or("the function of the pool is null: give one that calls the work")?;
        let foreign = Foreign { threads, run, pool };
        if isa.is_null() {
            return Ok(Cpu::on(foreign));
        }
        // SAFETY: a zero-terminated string, by the caller's promise.
        let name = unsafe { CStr::from_ptr(isa) }.to_str()?;
        Ok(Cpu::with_isa_on(name.parse::<Isa>()?, foreign)?)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Counts calls, and runs the members in reverse order.
    unsafe extern "C" fn backwards(
        pool: *mut c_void,
        count: usize,
        work: SteptimeWork,
        context: *mut c_void,
    ) {
        // SAFETY: the test gives a counter.
        unsafe { &*pool.cast::<AtomicUsize>() }.fetch_add(1, Ordering::Relaxed);
        for member in (0..count).rev() {
            // SAFETY: the context is that of this call.
            unsafe { work(context, member) };
        }
    }

    #[test]
    fn a_function_of_c_does_all_parts() {
        let calls = AtomicUsize::new(0);
        let pool = (&raw const calls).cast_mut().cast();
        // SAFETY: the function takes a counter, which outlives the handle.
        let cpu = unsafe { steptime_cpu_on(4, Some(backwards), pool, c"scalar".as_ptr()) };
        // SAFETY: just made.
        let on = unsafe { &*cpu };
        assert_eq!((on.threads(), on.isa()), (4, Isa::Scalar));
        let done: Vec<AtomicUsize> = (0..9).map(|_| AtomicUsize::new(0)).collect();
        on.run(9, |part| {
            done[part].fetch_add(1, Ordering::Relaxed);
        });
        assert!(done.iter().all(|count| count.load(Ordering::Relaxed) == 1));
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        // SAFETY: not used any more.
        unsafe { crate::steptime_cpu_free(cpu) };
        // SAFETY: null is allowed.
        let none = unsafe { steptime_cpu_on(4, None, pool, std::ptr::null()) };
        assert!(none.is_null());
    }
}

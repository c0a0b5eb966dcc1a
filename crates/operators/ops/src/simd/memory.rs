//! Instructions for the caches.

/// Prefetches a line of memory into the second-level cache: the first allows fewer outstanding misses. Any address is
/// allowed.
#[inline(always)]
pub(crate) fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    if !cfg!(miri) {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch has no effect that a program can see, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(address.cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    if !cfg!(miri) {
        // SAFETY: a prefetch has no effect that a program can see, whatever the address, and it changes no register.
        unsafe {
            std::arch::asm!("prfm pldl2keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

/// Prefetches all lines of a row.
#[inline(always)]
pub(crate) fn prefetch_row<T>(row: &[T]) {
    for line in row.chunks(64 / size_of::<T>()) {
        prefetch(line.as_ptr());
    }
}

/// Makes stores that bypassed the caches visible to other threads.
#[inline(always)]
pub(crate) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has this instruction, and it touches no memory of the program.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

//! Parallel work, with results in the order of the items.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Returns the number of threads worth starting.
pub(crate) fn available() -> usize {
    std::thread::available_parallelism().map_or(1, |count| count.get().min(16))
}

/// Applies `work` to each item, on up to `threads` threads.
pub(crate) fn map<T: Sync, R: Send>(items: &[T], threads: usize, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = threads.min(items.len());
    if threads <= 1 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { break };
                    let result = work(item);
                    done.lock().unwrap_or_else(|poison| poison.into_inner()).push((index, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(|poison| poison.into_inner());
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::map;

    #[test]
    fn results_keep_the_order_of_the_work() {
        let items: Vec<u32> = (0..100).collect();
        for threads in [0, 1, 3, 200] {
            assert_eq!(
                map(&items, threads, |item| item * 2),
                (0..100).map(|item| item * 2).collect::<Vec<_>>()
            );
        }
        assert!(map(&[], 4, |item: &u32| *item).is_empty());
    }
}

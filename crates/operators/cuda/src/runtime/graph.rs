//! Sequences of launches that start at once.

use cudarc::driver::result;
use cudarc::driver::sys;

use super::graph_parts::Parts;
use super::{Error, Stream};

/// Launches captured from a stream. Buffers and code that they use must outlive the replays.
#[derive(Debug)]
pub struct Graph {
    stream: Stream,
    graph: sys::CUgraph,
    ready: sys::CUgraphExec,
}

// SAFETY: the driver's handles may be used from every thread, by one at a time.
unsafe impl Send for Graph {}

impl Graph {
    /// Captures the work that `work` puts into the stream, without running it. Code must be compiled and memory
    /// allocated before: neither can be captured, nor can anything that waits.
    ///
    /// # Errors
    ///
    /// Errors of `work`; an operation that cannot be captured.
    pub fn capture(stream: &Stream, work: impl FnOnce(&Stream) -> Result<(), Error>) -> Result<Graph, Error> {
        Graph::capture_parts(stream, |stream, _| work(stream))
    }

    /// Captures work in parts: `work` puts launches into the stream, and names after each part those that it waits for.
    /// Launches behind the last part wait for it.
    ///
    /// # Errors
    ///
    /// As [`Graph::capture`].
    pub fn capture_parts(
        stream: &Stream,
        work: impl FnOnce(&Stream, &mut Parts<'_>) -> Result<(), Error>,
    ) -> Result<Graph, Error> {
        stream.device().bind()?;
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is alive.
        unsafe { result::stream::begin_capture(stream.raw(), mode) }
            .map_err(Error::driver("beginning to capture"))?;
        let mut parts = Parts::new(stream);
        let done = work(stream, &mut parts);
        // SAFETY: begun above, and ended in every case.
        let graph = unsafe { result::stream::end_capture(stream.raw()) };
        done?;
        let graph = graph.map_err(Error::driver("capturing a graph"))?;
        let flags = sys::CUgraphInstantiate_flags(0);
        let ready = parts.order(graph).and_then(|()| {
            // SAFETY: the graph was just captured.
            unsafe { result::graph::instantiate(graph, flags) }.map_err(Error::driver("preparing a graph"))
        });
        match ready {
            Ok(ready) => Ok(Graph { stream: stream.clone(), graph, ready }),
            Err(error) => {
                // SAFETY: captured above, and used no more.
                let _ = unsafe { result::graph::destroy(graph) };
                Err(error)
            }
        }
    }

    /// Puts all launches into the stream from which they were captured.
    ///
    /// # Safety
    ///
    /// All buffers and operators that the launches use are still alive, and are not used otherwise until the stream has
    /// passed the launches. Of two parts that use the same memory, one of them writing, one waits for the other.
    ///
    /// # Errors
    ///
    /// The driver refuses.
    pub unsafe fn replay(&self) -> Result<(), Error> {
        self.stream.device().bind()?;
        // SAFETY: by the caller's promise.
        unsafe { result::graph::launch(self.ready, self.stream.raw()) }
            .map_err(Error::driver("replaying a graph"))
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if self.stream.device().bind().is_ok() {
            // SAFETY: both were made once.
            unsafe {
                let _ = result::graph::exec_destroy(self.ready);
                let _ = result::graph::destroy(self.graph);
            }
        }
    }
}

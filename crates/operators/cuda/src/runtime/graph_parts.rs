//! Parts of a captured sequence of launches, each of which waits for named parts before it alone.
//!
//! All launches are captured from one stream, so each follows the one before. The edges between parts are then replaced by those that are needed:
//! parts that do not need one another may run at once.

use std::ptr;

use cudarc::driver::result::DriverError;
use cudarc::driver::sys;

use super::{Error, Stream};

/// The parts of a capture.
#[derive(Debug)]
pub struct Parts<'s> {
    stream: &'s Stream,
    all: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    last: sys::CUgraphNode,
    /// Parts that it waits for.
    after: Vec<usize>,
}

impl<'s> Parts<'s> {
    pub(super) fn new(stream: &'s Stream) -> Parts<'s> {
        Parts { stream, all: Vec::new() }
    }

    /// Ends a part: the launches since the part before. It waits for the parts `after` alone. Returns its number, or `None` where there is no
    /// launch since the part before.
    ///
    /// # Errors
    ///
    /// The driver refuses.
    ///
    /// # Panics
    ///
    /// `after` has the number of no part.
    pub fn end(&mut self, after: &[usize]) -> Result<Option<usize>, Error> {
        assert!(after.iter().all(|&part| part < self.all.len()), "{after:?} of {} parts", self.all.len());
        let last = self.last().map_err(Error::driver("reading the last captured launch"))?;
        let Some(last) = last.filter(|&last| self.all.last().is_none_or(|part| part.last != last)) else {
            return Ok(None);
        };
        self.all.push(Part { last, after: after.to_vec() });
        Ok(Some(self.all.len() - 1))
    }

    /// The launch that was captured last.
    fn last(&self) -> Result<Option<sys::CUgraphNode>, DriverError> {
        let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        let (mut nodes, mut count) = (ptr::null(), 0);
        // SAFETY: the stream is alive. Null stands for what is not wanted.
        unsafe {
            sys::cuStreamGetCaptureInfo_v3(
                self.stream.raw(),
                &raw mut status,
                ptr::null_mut(),
                ptr::null_mut(),
                &raw mut nodes,
                ptr::null_mut(),
                &raw mut count,
            )
        }
        .result()?;
        if count == 0 || nodes.is_null() {
            return Ok(None);
        }
        // SAFETY: the driver has `count` nodes there until the next call for this stream. One stream alone has one.
        Ok(Some(unsafe { *nodes }))
    }

    /// Replaces the edges between the parts of a captured graph.
    pub(super) fn order(self, graph: sys::CUgraph) -> Result<(), Error> {
        if self.all.len() < 2 {
            return Ok(());
        }
        let wrong = || Error::driver("ordering the parts of a graph");
        let edges = Edges::read(graph).map_err(wrong())?;
        let (mut removed, mut added) = (Edges::default(), Edges::default());
        for (before, part) in self.all.iter().zip(self.all.iter().skip(1)) {
            // Captured from one stream, the last launch of a part has one edge: to the first launch of the next part.
            for at in (0..edges.from.len()).filter(|&at| edges.from[at] == before.last) {
                removed.push(edges.from[at], edges.to[at], edges.data[at]);
                part.after.iter().for_each(|&after| added.push(self.all[after].last, edges.to[at], PLAIN));
            }
        }
        removed.apply(graph, sys::cuGraphRemoveDependencies_v2).map_err(wrong())?;
        added.apply(graph, sys::cuGraphAddDependencies_v2).map_err(wrong())
    }
}

/// An edge that waits for the whole launch.
const PLAIN: sys::CUgraphEdgeData =
    sys::CUgraphEdgeData_st { from_port: 0, to_port: 0, type_: 0, reserved: [0; 5] };

/// Edges of a graph.
#[derive(Default)]
struct Edges {
    from: Vec<sys::CUgraphNode>,
    to: Vec<sys::CUgraphNode>,
    data: Vec<sys::CUgraphEdgeData>,
}

/// A function of the driver that changes edges.
type Change = unsafe fn(
    sys::CUgraph,
    *const sys::CUgraphNode,
    *const sys::CUgraphNode,
    *const sys::CUgraphEdgeData,
    usize,
) -> sys::CUresult;

impl Edges {
    fn read(graph: sys::CUgraph) -> Result<Edges, DriverError> {
        let mut count = 0;
        let none = ptr::null_mut;
        // SAFETY: without room the driver writes the number alone.
        unsafe { sys::cuGraphGetEdges_v2(graph, none(), none(), ptr::null_mut(), &raw mut count) }
            .result()?;
        let mut edges = Edges {
            from: vec![ptr::null_mut(); count],
            to: vec![ptr::null_mut(); count],
            data: vec![PLAIN; count],
        };
        let (from, to, data) = (edges.from.as_mut_ptr(), edges.to.as_mut_ptr(), edges.data.as_mut_ptr());
        // SAFETY: all three have room for `count` elements.
        unsafe { sys::cuGraphGetEdges_v2(graph, from, to, data, &raw mut count) }.result()?;
        Ok(edges)
    }

    fn push(&mut self, from: sys::CUgraphNode, to: sys::CUgraphNode, data: sys::CUgraphEdgeData) {
        self.from.push(from);
        self.to.push(to);
        self.data.push(data);
    }

    fn apply(&self, graph: sys::CUgraph, change: Change) -> Result<(), DriverError> {
        if self.from.is_empty() {
            return Ok(());
        }
        // SAFETY: the nodes are of this graph, and all three have as many elements as are named.
        unsafe { change(graph, self.from.as_ptr(), self.to.as_ptr(), self.data.as_ptr(), self.from.len()) }
            .result()
    }
}

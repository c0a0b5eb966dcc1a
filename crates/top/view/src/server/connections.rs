//! Open connections: their number is limited, and one that has not shown the token yet makes room for the next.

use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of open connections.
const MOST: usize = 64;

#[derive(Default)]
pub(super) struct Connections {
    open: Mutex<Vec<OpenConnection>>,
}

/// An open connection; connections are in the order of arrival.
struct OpenConnection {
    stream: Arc<TcpStream>,
    /// Whether it has shown the right token.
    kept: bool,
}

/// An admitted connection; it is closed with the value.
pub(super) struct Guest<'a> {
    stream: Arc<TcpStream>,
    all: &'a Connections,
}

impl Connections {
    /// Admits a connection; returns `None` and closes it if all others have shown the token.
    pub(super) fn admit(&self, stream: TcpStream) -> Option<Guest<'_>> {
        let mut open = self.open();
        if open.len() >= MOST {
            let stranger = open.iter().position(|other| !other.kept)?;
            // Its thread then finds it closed, and ends.
            let _ = open.remove(stranger).stream.shutdown(Shutdown::Both);
        }
        let stream = Arc::new(stream);
        open.push(OpenConnection { stream: Arc::clone(&stream), kept: false });
        Some(Guest { stream, all: self })
    }

    fn open(&self) -> MutexGuard<'_, Vec<OpenConnection>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guest<'_> {
    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Marks the token as right: no other connection takes its place.
    pub(super) fn keep(&self) {
        let mut open = self.all.open();
        if let Some(own) = open.iter_mut().find(|other| Arc::ptr_eq(&other.stream, &self.stream)) {
            own.kept = true;
        }
    }
}

impl Drop for Guest<'_> {
    fn drop(&mut self) {
        self.all.open().retain(|other| !Arc::ptr_eq(&other.stream, &self.stream));
    }
}

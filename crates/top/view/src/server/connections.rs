//! Connections that are open at once: there are few, and one whose token is not seen yet makes room for the next.

use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// So many are open at once.
const MOST: usize = 64;

#[derive(Default)]
pub(super) struct Connections {
    open: Mutex<Vec<Open>>,
}

/// A connection in the order of arrival.
struct Open {
    stream: Arc<TcpStream>,
    /// Whether its token was right.
    kept: bool,
}

/// A connection that was admitted; it is closed with the value.
pub(super) struct Guest<'a> {
    stream: Arc<TcpStream>,
    all: &'a Connections,
}

impl Connections {
    /// Takes a connection in; `None`, and it is closed, where all others have shown the token.
    pub(super) fn admit(&self, stream: TcpStream) -> Option<Guest<'_>> {
        let mut open = self.open();
        if open.len() >= MOST {
            let stranger = open.iter().position(|other| !other.kept)?;
            // Its thread finds it closed, and ends.
            let _ = open.remove(stranger).stream.shutdown(Shutdown::Both);
        }
        let stream = Arc::new(stream);
        open.push(Open { stream: Arc::clone(&stream), kept: false });
        Some(Guest { stream, all: self })
    }

    fn open(&self) -> MutexGuard<'_, Vec<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guest<'_> {
    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// The token was right: no other connection takes its room.
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

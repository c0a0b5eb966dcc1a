//! Streams that may still use device memory.
//!
//! Launches in one stream run one after the other. Launches in two streams may run at once: one may write data that the
//! other reads. So memory keeps the stream that used it last, and a launch in another stream waits for that one, unless
//! both only read.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::stream::User;
use super::{Device, Error, Stream};

/// Streams that may still use a piece of memory.
#[derive(Debug)]
pub(crate) struct StreamUse(Mutex<State>);

#[derive(Debug)]
enum State {
    /// No stream.
    Idle,
    /// One stream, which only reads it.
    Read(User),
    /// One stream, which writes it.
    Written(User),
    /// Several streams, which only read it.
    Shared,
}

/// Kind of access to the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

impl StreamUse {
    /// Memory that no stream uses.
    pub(crate) fn new() -> StreamUse {
        StreamUse(Mutex::new(State::Idle))
    }

    /// Memory that this stream may still write.
    pub(crate) fn written(stream: &Stream) -> StreamUse {
        StreamUse(Mutex::new(State::Written(stream.user())))
    }

    /// Waits for a stream that may still write the memory, before a launch in `stream` reads it.
    pub(crate) fn read(&self, stream: &Stream) -> Result<(), Error> {
        self.change(Access::Read, stream)
    }

    /// Waits for streams that may still use the memory, before a launch in `stream` writes it.
    pub(crate) fn write(&self, stream: &Stream) -> Result<(), Error> {
        self.change(Access::Write, stream)
    }

    /// Transfers the use by `from` to `to`, which already waits for the work in `from`: accesses of `from` count as
    /// accesses of `to`.
    pub(crate) fn hand_over(&self, from: &Stream, to: &Stream) {
        self.state().hand_over(&from.user(), to.user());
    }

    /// Records that this stream was waited for, while the memory was borrowed mutably.
    pub(crate) fn done(&self, stream: &Stream) {
        self.state().done(&stream.user());
    }

    /// Waits for all streams that may still use it.
    pub(crate) fn wait(&self, device: &Device) -> Result<(), Error> {
        self.state().wait(device)
    }

    fn change(&self, access: Access, stream: &Stream) -> Result<(), Error> {
        let (mut state, user) = (self.state(), stream.user());
        if state.conflicts(access, &user) {
            state.wait(stream.device())?;
        }
        state.note(access, user);
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is consistent whenever the lock is free: each change is one assignment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether the access has to wait for other streams.
    fn conflicts(&self, access: Access, user: &User) -> bool {
        match self {
            State::Idle => false,
            State::Shared => access == Access::Write,
            State::Read(other) => access == Access::Write && !other.is(user),
            State::Written(other) => !other.is(user),
        }
    }

    /// Records an access that does not conflict.
    fn note(&mut self, access: Access, user: User) {
        *self = match (mem::replace(self, State::Idle), access) {
            (_, Access::Write) => State::Written(user),
            // A read does not hide the write before it.
            (State::Written(same), Access::Read) => State::Written(same),
            (State::Read(other), Access::Read) if !other.is(&user) => State::Shared,
            (State::Shared, Access::Read) => State::Shared,
            (State::Read(_) | State::Idle, Access::Read) => State::Read(user),
        };
    }

    fn wait(&mut self, device: &Device) -> Result<(), Error> {
        match self {
            State::Idle => {}
            State::Read(user) | State::Written(user) => user.wait(device)?,
            State::Shared => device.synchronize()?,
        }
        *self = State::Idle;
        Ok(())
    }

    fn hand_over(&mut self, from: &User, to: User) {
        match self {
            State::Read(user) | State::Written(user) if user.is(from) => *user = to,
            _ => {}
        }
    }

    fn done(&mut self, stream: &User) {
        match self {
            State::Read(user) | State::Written(user) if user.is(stream) => *self = State::Idle,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(number: u64) -> User {
        User::gone(number)
    }

    /// The state after these accesses, none of which conflicts.
    fn after(all: &[(Access, u64)]) -> State {
        let mut state = State::Idle;
        for &(access, stream) in all {
            assert!(!state.conflicts(access, &user(stream)), "{access:?} in {stream}");
            state.note(access, user(stream));
        }
        state
    }

    use Access::{Read, Write};

    #[test]
    fn one_stream_never_waits() {
        let mut state = after(&[(Read, 1), (Write, 1), (Read, 1), (Write, 1), (Read, 1)]);
        assert!(state.conflicts(Read, &user(2)), "the read does not hide the write before it");
        state.done(&user(2));
        assert!(state.conflicts(Read, &user(2)), "another stream says nothing of this one");
        state.done(&user(1));
        assert!(!state.conflicts(Write, &user(2)));
    }

    #[test]
    fn another_stream_waits_unless_both_read() {
        let written = after(&[(Write, 1)]);
        assert!(written.conflicts(Read, &user(2)) && written.conflicts(Write, &user(2)));
        assert!(after(&[(Read, 1)]).conflicts(Write, &user(2)));
        let shared = after(&[(Read, 1), (Read, 2), (Read, 1)]);
        assert!(shared.conflicts(Write, &user(1)) && !shared.conflicts(Read, &user(3)));
    }

    #[test]
    fn a_stream_that_waits_for_another_takes_its_place() {
        let mut state = after(&[(Write, 1)]);
        state.hand_over(&user(1), user(2));
        assert!(!state.conflicts(Write, &user(2)) && state.conflicts(Read, &user(1)));
        let mut state = after(&[(Read, 3)]);
        state.hand_over(&user(1), user(2));
        assert!(state.conflicts(Write, &user(2)), "it was another one that read");
        let mut shared = after(&[(Read, 1), (Read, 2)]);
        shared.hand_over(&user(1), user(2));
        assert!(shared.conflicts(Write, &user(2)), "who else reads is not known");
    }
}

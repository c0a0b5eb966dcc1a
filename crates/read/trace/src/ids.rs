//! Ids: positions in one table, with a type per table, so that they cannot be mixed up.

/// Defines id types: each a position in the one table that its documentation names.
///
/// Positions are 32 bits wide, like the reader's columns: files with more rows are rejected.
#[macro_export]
macro_rules! ids {
    ($($(#[$meta:meta])* $name:ident;)+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// Returns the position as an index.
            #[inline]
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// Returns the id of the previous row.
            ///
            /// # Panics
            /// If it is the first row, in builds that check arithmetic.
            #[inline]
            #[must_use]
            pub const fn previous(self) -> $name {
                $name(self.0 - 1)
            }

            /// Returns the id of the next row.
            #[inline]
            #[must_use]
            pub const fn next(self) -> $name {
                $name(self.0 + 1)
            }

            /// Returns the ids from this one up to, but excluding, `end`.
            #[inline]
            pub fn until(
                self,
                end: $name,
            ) -> impl DoubleEndedIterator<Item = $name> + ExactSizeIterator + Clone {
                (self.0..end.0).map($name)
            }
        }

        impl From<usize> for $name {
            #[inline]
            fn from(index: usize) -> $name {
                $name(index as u32)
            }
        }

        impl From<$name> for usize {
            #[inline]
            fn from(id: $name) -> usize {
                id.index()
            }
        }
    )+};
}

//! Ids: positions in one table, as types, so that none is taken for a position in another.

/// Makes types of ids: each a position in the one table that its documentation names.
///
/// Positions are 32 bits wide, as the reader's columns are: it refuses files with more rows.
#[macro_export]
macro_rules! ids {
    ($($(#[$meta:meta])* $name:ident;)+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The position as an index.
            #[inline]
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// The id of the row before.
            ///
            /// # Panics
            /// Where it is the first row, in builds that check arithmetic.
            #[inline]
            #[must_use]
            pub const fn previous(self) -> $name {
                $name(self.0 - 1)
            }

            /// The id of the row after.
            #[inline]
            #[must_use]
            pub const fn next(self) -> $name {
                $name(self.0 + 1)
            }

            /// The ids from this one up to, and without, `end`.
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

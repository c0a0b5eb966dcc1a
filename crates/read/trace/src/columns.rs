//! Struct-of-arrays tables.

/// Defines a table with one vector a column, and its row.
macro_rules! columns {
    (
        $(#[$table_doc:meta])*
        pub struct $Table:ident of $Row:ident {
            $($(#[$doc:meta])* $column:ident: $Type:ty,)*
        }
    ) => {
        $(#[$table_doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $Table {
            $($(#[$doc])* pub $column: Vec<$Type>,)*
        }

        #[doc = concat!("One row of [`", stringify!($Table), "`].")]
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $Row {
            $($(#[$doc])* pub $column: $Type,)*
        }

        impl $Table {
            /// How many rows there are.
            #[must_use]
            pub fn len(&self) -> usize {
                columns!(@first self $($column)*).len()
            }

            /// Whether there are none.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// One row, all columns together.
            ///
            /// # Panics
            /// When `index` is not below [`len`](Self::len).
            #[must_use]
            pub fn row(&self, index: usize) -> $Row {
                $Row { $($column: self.$column[index],)* }
            }

            /// All rows, in the order of the file.
            pub fn rows(&self) -> impl ExactSizeIterator<Item = $Row> {
                (0..self.len()).map(|index| self.row(index))
            }

            /// Appends a row.
            pub fn push(&mut self, row: $Row) {
                $(self.$column.push(row.$column);)*
            }

            /// Appends another table's rows, each changed by `map`.
            #[allow(dead_code, reason = "not every table needs it")]
            pub(crate) fn absorb(&mut self, other: &Self, map: impl Fn($Row) -> $Row) {
                $(self.$column.reserve_exact(other.len());)*
                other.rows().for_each(|row| self.push(map(row)));
            }

            /// Rows in another order, given as old positions.
            #[allow(dead_code, reason = "not every table needs it")]
            pub(crate) fn reorder(&mut self, order: &[u32]) {
                $(self.$column = order.iter().map(|&old| self.$column[old as usize]).collect();)*
            }

            /// Gives back memory that no row uses.
            #[allow(dead_code, reason = "not every table needs it")]
            pub(crate) fn shrink(&mut self) {
                $(self.$column.shrink_to_fit();)*
            }
        }
    };
    (@first $self:ident $first:ident $($rest:ident)*) => { $self.$first };
}

pub(crate) use columns;

#[cfg(test)]
mod tests {
    columns! {
        /// Pairs.
        pub struct Pairs of Pair {
            /// One.
            one: u32,
            /// Two.
            two: char,
        }
    }

    #[test]
    fn rows_go_in_and_come_out() {
        let mut pairs = Pairs::default();
        assert!(pairs.is_empty());
        pairs.push(Pair { one: 1, two: 'a' });
        let more = pairs.clone();
        pairs.absorb(&more, |row| Pair { one: row.one + 1, ..row });
        pairs.reorder(&[1, 0]);
        pairs.shrink();
        assert_eq!((pairs.len(), &pairs.one[..], &pairs.two[..]), (2, &[2, 1][..], &['a', 'a'][..]));
        assert_eq!(pairs.rows().next(), Some(Pair { one: 2, two: 'a' }));
    }
}

//! Struct-of-arrays tables.

/// Defines a table with one vector per column, and its row type.
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
            /// Returns the number of rows.
            #[must_use]
            pub fn len(&self) -> usize {
                columns!(@first self $($column)*).len()
            }

            /// Whether there are no rows.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Returns one row with all columns.
            ///
            /// # Panics
            /// If `index` is not below [`len`](Self::len).
            #[must_use]
            pub fn row(&self, index: usize) -> $Row {
                $Row { $($column: self.$column[index],)* }
            }

            /// Returns all rows, in file order.
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

            /// Reorders the rows; `order` has old positions.
            #[allow(dead_code, reason = "not every table needs it")]
            pub(crate) fn reorder(&mut self, order: &[u32]) {
                $(self.$column = order.iter().map(|&old| self.$column[old as usize]).collect();)*
            }

            /// Frees unused capacity.
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

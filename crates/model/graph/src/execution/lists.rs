//! Many small lists in two flat vectors.

/// One list of `T` per index, stored end to end.
#[derive(Clone, Debug)]
pub(super) struct Lists<T> {
    /// Start of each list; one more entry than there are lists.
    starts: Vec<u32>,
    items: Vec<T>,
}

impl<T> Default for Lists<T> {
    fn default() -> Self {
        Lists { starts: vec![0], items: Vec::new() }
    }
}

impl<T: Copy + Default> Lists<T> {
    /// Gathers `(list, item)` pairs into `count` lists; items keep their order.
    pub(super) fn from_pairs(count: usize, pairs: impl Iterator<Item = (usize, T)> + Clone) -> Lists<T> {
        let mut starts = vec![0u32; count + 1];
        for (list, _) in pairs.clone() {
            starts[list + 1] += 1;
        }
        for list in 0..count {
            starts[list + 1] += starts[list];
        }
        let mut items = vec![T::default(); starts[count] as usize];
        let mut free = starts.clone();
        for (list, item) in pairs {
            items[free[list] as usize] = item;
            free[list] += 1;
        }
        Lists { starts, items }
    }

    /// Returns the list at `index`; empty past the end.
    pub(super) fn get(&self, index: usize) -> &[T] {
        match self.starts.get(index..index + 2) {
            Some(&[start, end]) => &self.items[start as usize..end as usize],
            _ => &[],
        }
    }

    /// Returns all items, list after list.
    pub(super) fn items(&self) -> &[T] {
        &self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_order() {
        let pairs = [(2, 'a'), (0, 'b'), (2, 'c')];
        let lists = Lists::from_pairs(3, pairs.into_iter());
        assert_eq!(lists.get(0), ['b']);
        assert_eq!(lists.get(1), []);
        assert_eq!(lists.get(2), ['a', 'c']);
        assert_eq!(lists.get(3), []);
        assert_eq!(lists.items().len(), 3);
        assert_eq!(Lists::<u32>::default().get(0), []);
    }
}

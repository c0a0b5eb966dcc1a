//! Cross-validation: every row is predicted by a model that has not seen its case.

/// Fold in which each row is held out. Rows of one case are always in the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folds {
    of_row: Vec<u8>,
    count: u8,
    held: u8,
}

impl Folds {
    /// Assigns cases to folds by their hash with a seed. `count` folds, at least 2; fewer if there are fewer
    /// cases.
    #[must_use]
    pub fn new(cases: &[u32], count: u8, seed: u64) -> Folds {
        let mut distinct: Vec<(u64, u32)> =
            cases.iter().map(|&case| (mix(u64::from(case), seed), case)).collect();
        distinct.sort_unstable();
        distinct.dedup();
        let count = usize::from(count.max(2)).min(distinct.len().max(1)) as u8;
        let mut fold_of: Vec<(u32, u8)> = distinct
            .iter()
            .enumerate()
            .map(|(at, &(_, case))| (case, (at % usize::from(count)) as u8))
            .collect();
        fold_of.sort_unstable();
        let of_row = cases
            .iter()
            .map(|case| fold_of.binary_search_by_key(case, |pair| pair.0).map_or(0, |at| fold_of[at].1))
            .collect();
        Folds { of_row, count, held: count }
    }

    /// Holds out only `folds` of the folds: with many rows, a part is enough.
    #[must_use]
    pub fn holding(self, folds: u8) -> Folds {
        Folds { held: folds.clamp(1, self.count), ..self }
    }

    /// Returns the rows that are held out in some fold.
    #[must_use]
    pub fn held_out(&self) -> Vec<usize> {
        (0..self.of_row.len()).filter(|&row| self.of_row[row] < self.held).collect()
    }

    /// Returns the number of folds.
    #[must_use]
    pub fn count(&self) -> u8 {
        self.count
    }

    /// Returns the fold in which a row is held out.
    #[must_use]
    pub fn fold(&self, row: usize) -> u8 {
        self.of_row[row]
    }

    /// Returns rows to train on and rows held out.
    #[must_use]
    pub fn split(&self, fold: u8) -> (Vec<usize>, Vec<usize>) {
        (0..self.of_row.len()).partition(|&row| self.of_row[row] != fold)
    }

    /// Returns predictions of every held-out row, by models of the other folds; not-a-number for the others.
    /// `train` gets the rows to learn from and those to predict, in parallel over folds.
    ///
    /// # Errors
    ///
    /// The first error of `train`, in the order of folds.
    pub fn out_of_fold<E: Send>(
        &self,
        train: impl Fn(&[usize], &[usize]) -> Result<Vec<f64>, E> + Sync,
    ) -> Result<Vec<f64>, E> {
        use rayon::prelude::*;
        let splits: Vec<(Vec<usize>, Vec<usize>)> = (0..self.held).map(|fold| self.split(fold)).collect();
        let parts: Vec<Result<Vec<f64>, E>> =
            splits.par_iter().map(|(learn, held_out)| train(learn, held_out)).collect();
        let mut all = vec![f64::NAN; self.of_row.len()];
        for ((_, held_out), part) in splits.iter().zip(parts) {
            held_out.iter().zip(part?).for_each(|(&row, value)| all[row] = value);
        }
        Ok(all)
    }
}

/// Mixes a number and a seed.
#[must_use]
pub fn mix(value: u64, seed: u64) -> u64 {
    steptime_launch::SplitMix::new(value.wrapping_add(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))).bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_case_are_held_out_together_and_every_row_once() {
        let cases: Vec<u32> = (0..600).map(|row| row / 6).collect();
        let folds = Folds::new(&cases, 5, 7);
        assert_eq!(folds.count(), 5);
        for row in 0..600 {
            assert_eq!(folds.fold(row), folds.fold(row / 6 * 6));
        }
        for fold in 0..5 {
            assert_eq!(folds.split(fold).1.len(), 120);
        }
        let seen = folds
            .out_of_fold(|learn, held_out| {
                assert!(learn.iter().all(|&l| held_out.iter().all(|&h| cases[l] != cases[h])));
                Ok::<_, ()>(held_out.iter().map(|&row| row as f64).collect())
            })
            .unwrap();
        assert!(seen.iter().enumerate().all(|(row, &value)| value == row as f64));
    }

    #[test]
    fn of_many_rows_a_part_is_held_out() {
        let folds = Folds::new(&(0..100).collect::<Vec<u32>>(), 5, 3).holding(2);
        let seen = folds.out_of_fold(|_, held_out| Ok::<_, ()>(vec![1.0; held_out.len()])).unwrap();
        let held_out: Vec<usize> = (0..100).filter(|&row| seen[row].is_finite()).collect();
        assert_eq!(held_out, folds.held_out());
        assert_eq!(held_out.len(), 40);
    }

    #[test]
    fn few_cases_make_few_folds() {
        assert_eq!(Folds::new(&[4, 4, 9], 5, 0).count(), 2);
        assert_eq!(Folds::new(&[4], 5, 0).count(), 1);
        assert_eq!(Folds::new(&[], 5, 0).split(0), (vec![], vec![]));
    }
}

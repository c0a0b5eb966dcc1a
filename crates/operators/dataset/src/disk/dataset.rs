//! A dataset on disk, mapped.

use std::path::Path;
use std::sync::Arc;

use super::files::Opened;
use super::split::Split;
use crate::{Error, Features, SplitName};

/// A dataset whose files are mapped. Their lengths agree with the description.
#[derive(Debug, Clone)]
pub struct Dataset {
    opened: Arc<Opened>,
}

impl Dataset {
    /// Opens the dataset of a folder.
    ///
    /// # Errors
    ///
    /// If the description or a file is missing or damaged, or a file's length does not agree with the description.
    pub fn open(folder: &Path) -> Result<Dataset, Error> {
        Ok(Dataset { opened: Arc::new(Opened::open(folder)?) })
    }

    /// The description.
    #[must_use]
    pub fn features(&self) -> &Features {
        &self.opened.features
    }

    /// The rows of a split.
    #[must_use]
    pub fn split(&self, name: SplitName) -> Split {
        let rows = self.opened.features.splits.rows(name);
        Split::new(Arc::clone(&self.opened), rows)
    }
}

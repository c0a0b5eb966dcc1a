//! The steps of a page, and the questions about them.

use std::sync::Arc;

use steptime_predict::{Error, Query, Step};
use steptime_view::{StepViews, Subject};

use super::super::{Failure, pricing};
use crate::cli::Target;

/// A step and its question, and optionally a second step to compare with and its question.
pub struct Subjects<'s> {
    pub first: (&'s Step, Query<'s>),
    second: Option<(&'s Step, Query<'s>)>,
}

impl<'s> Subjects<'s> {
    /// Returns the questions on the GPUs that the steps were recorded on.
    pub fn recorded(
        first: &'s Step,
        second: Option<&'s Step>,
        whom: &Target,
    ) -> Result<Subjects<'s>, Failure> {
        let ask = |step| Ok::<_, Failure>((step, pricing::ask(step, &whom.pricing, whom.host.as_ref())?));
        Ok(Subjects { first: ask(first)?, second: second.map(ask).transpose()? })
    }

    /// Returns the same questions on the GPU of this name.
    ///
    /// # Errors
    /// As [`steptime_predict::device`].
    pub fn on(&self, name: &str) -> Result<Subjects<'s>, Error> {
        let profile = Arc::new(steptime_predict::device(name)?);
        let on = |&(step, ref question): &(&'s Step, Query<'s>)| {
            (step, question.clone().on_read(name, Arc::clone(&profile)))
        };
        Ok(Subjects { first: on(&self.first), second: self.second.as_ref().map(on) })
    }

    /// Whether a GPU was timed in all of the steps.
    pub fn is_timed(&self) -> bool {
        [Some(&self.first), self.second.as_ref()]
            .into_iter()
            .flatten()
            .all(|(step, _)| !step.arguments.is_derived())
    }

    /// Returns the content of the page.
    ///
    /// # Errors
    /// As [`StepViews::build`].
    pub fn viewed(&self) -> Result<StepViews, Error> {
        let against = self.second.as_ref().map(subject);
        StepViews::build(&subject(&self.first), against.as_ref())
    }
}

fn subject<'a>((step, question): &'a (&Step, Query<'_>)) -> Subject<'a> {
    Subject { step, question }
}

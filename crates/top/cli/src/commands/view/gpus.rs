//! Answers of a served page, for each GPU that the user can choose.

use std::borrow::Cow;
use std::sync::{Mutex, OnceLock, PoisonError};

use serde_json::{Map, Value};
use steptime_predict::{Change, WhatIfs};
use steptime_rewrite::Rule;
use steptime_view::{Answers, Devices, StepViews};

use super::super::what_if::{plan, rules, validate};
use super::subjects::Subjects;
use crate::output::words;

/// A value that is computed at its first use, or the reason in words why there is none.
pub type OnFirstUse<T> = OnceLock<Result<T, String>>;

/// Returns the GPUs to choose from: the recorded one if it was timed, a profile that is not shipped, and all shipped ones.
/// `named` is the initial one of the page.
pub fn devices(recorded: &Subjects<'_>, named: Option<&str>) -> Devices {
    let is_named = |shipped: &&str| named.is_some_and(|named| named.eq_ignore_ascii_case(shipped));
    let own = named.filter(|_| !steptime_predict::devices().any(|shipped| is_named(&shipped)));
    // A name keeps its letters as typed: answers show it.
    let shipped = steptime_predict::devices().map(|name| named.filter(|_| is_named(&name)).unwrap_or(name));
    let names = own.into_iter().chain(shipped).map(|name| Some(name.to_owned()));
    let all: Vec<_> = recorded.is_timed().then_some(None).into_iter().chain(names).collect();
    let chosen = all.iter().position(|device| device.as_deref() == named).unwrap_or_default();
    Devices { all, chosen }
}

/// Answers for each GPU, kept once they are computed.
pub struct Gpus<'a, 's> {
    devices: &'a Devices,
    recorded: &'a Subjects<'s>,
    /// Page for the initial GPU.
    viewed: &'a StepViews,
    asked: &'a [OnFirstUse<Subjects<'s>>],
    what_ifs: Vec<OnFirstUse<WhatIfs<'a>>>,
    data: Vec<OnFirstUse<Vec<u8>>>,
    /// Held while a page is predicted: one at a time.
    predicting: Mutex<()>,
}

impl<'a, 's> Gpus<'a, 's> {
    /// Builds the answers for all of `devices`. `asked` has a place for each of them, filled for known questions.
    pub fn new(
        devices: &'a Devices,
        recorded: &'a Subjects<'s>,
        viewed: &'a StepViews,
        asked: &'a [OnFirstUse<Subjects<'s>>],
    ) -> Gpus<'a, 's> {
        let what_ifs = asked.iter().map(|_| OnceLock::new()).collect();
        let data = asked.iter().map(|_| OnceLock::new()).collect();
        let gpus = Gpus { devices, recorded, viewed, asked, what_ifs, data, predicting: Mutex::new(()) };
        let _ = gpus.what_ifs(devices.chosen);
        gpus
    }

    /// Reads a request: the place of its GPU, and its other keys.
    fn request(&self, text: &[u8]) -> Result<(usize, Map<String, Value>), String> {
        let mut request: Map<String, Value> =
            serde_json::from_slice(text).map_err(|error| error.to_string())?;
        let at = match request.remove("device") {
            None => self.devices.chosen,
            Some(Value::Null) => self.place(None)?,
            Some(Value::String(name)) => self.place(Some(&name))?,
            Some(other) => {
                return Err(format!(
                    "`device` is the name of a GPU, or null for as recorded, and not {other}"
                ));
            }
        };
        Ok((at, request))
    }

    fn place(&self, device: Option<&str>) -> Result<usize, String> {
        let all = &self.devices.all;
        let same = |known: &Option<String>| match (known, device) {
            (Some(known), Some(device)) => known.eq_ignore_ascii_case(device),
            (known, device) => known.is_none() && device.is_none(),
        };
        all.iter().position(same).ok_or_else(|| {
            let names = all.iter().flatten().map(String::as_str).collect::<Vec<_>>().join(", ");
            match device {
                Some(name) => format!("no GPU {name:?} to choose: there are {names}"),
                None => format!("no GPU times in the input to show as recorded: choose one of {names}"),
            }
        })
    }

    fn asked(&self, at: usize) -> Result<&'a Subjects<'s>, String> {
        match &self.devices.all[at] {
            None => Ok(self.recorded),
            Some(name) => {
                let on = || self.recorded.on(name).map_err(|error| words(&error));
                self.asked[at].get_or_init(on).as_ref().map_err(Clone::clone)
            }
        }
    }

    fn what_ifs(&self, at: usize) -> Result<&WhatIfs<'a>, String> {
        let make = || self.asked(at)?.first.1.what_ifs().map_err(|error| words(&error));
        self.what_ifs[at].get_or_init(make).as_ref().map_err(Clone::clone)
    }

    fn page(&self, at: usize) -> Result<Vec<u8>, String> {
        let packed = |viewed: &StepViews| steptime_view::data(viewed).map_err(|error| words(&error));
        match at == self.devices.chosen {
            true => packed(self.viewed),
            false => packed(&self.asked(at)?.viewed().map_err(|error| words(&error))?),
        }
        .map(String::into_bytes)
    }
}

impl Answers for Gpus<'_, '_> {
    /// Predicts a change. The request is a plan in JSON: the same names as on the command line.
    fn what_if(&self, request: &[u8]) -> Result<Vec<u8>, String> {
        let (at, plan) = self.request(request)?;
        let asked = self.what_ifs(at)?;
        let table: toml::Table =
            serde_json::from_value(Value::Object(plan)).map_err(|error| error.to_string())?;
        let changes = plan::parse(&table)?;
        validate(&changes)?;
        let rules = rules(&changes);
        let rules: Vec<&dyn Rule> = rules.iter().map(|rule| &**rule).collect();
        if rules.is_empty() && changes.host_speed.is_none() {
            return Err("nothing to change".to_owned());
        }
        let change = Change { rules: &rules, host_times: changes.host_speed };
        steptime_view::what_if(asked, &change).map_err(|error| error.to_string())
    }

    fn data(&self, request: &[u8]) -> Result<Cow<'_, [u8]>, String> {
        let (at, rest) = self.request(request)?;
        if let Some(key) = rest.keys().next() {
            return Err(format!("`{key}` is not a key of this request: it takes only `device`"));
        }
        let known = self.data[at].get().unwrap_or_else(|| {
            let _alone = self.predicting.lock().unwrap_or_else(PoisonError::into_inner);
            self.data[at].get_or_init(|| self.page(at))
        });
        known.as_deref().map(Cow::Borrowed).map_err(Clone::clone)
    }
}

//! The text of a host profile: TOML with a row for each gap.

use std::fmt::Write as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{HostProfile, RecordingSpeed, VERSION};
use crate::host::captured::Captured;
use crate::host::copies::CopyCost;
use crate::host::error::ProfileError;
use crate::host::gap_key::EdgeKey;
use crate::host::gaps::{self, Gap};
use crate::host::host_device_delays::Coupling;
use crate::host::probe::{HostPace, Probe};
use crate::host::profiler::ProfilerCost;
use crate::host::speed::Elasticity;
use crate::host::warmth::Warmth;

/// Head of the file. The gaps follow it, one per line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    #[serde(default)]
    machine: String,
    spread: f64,
    staged_copy_us: CopyCost,
    warmth: Warmth,
    profiler: ProfilerCost,
    profiler_fresh: ProfilerCost,
    attached: ProfilerCost,
    speed: Elasticity,
    reference: Probe,
    coupling: Coupling,
    #[serde(default)]
    captured: Captured,
    #[serde(default)]
    recordings: Vec<RecordingSpeed>,
    #[serde(default, skip_serializing_if = "Gaps::is_empty")]
    gaps: Gaps,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Gaps {
    rows: Vec<(String, String, String, String, String, f64, f64)>,
}

impl Gaps {
    fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

fn no_toml(error: toml::de::Error) -> ProfileError {
    ProfileError::Toml(Box::new(error))
}

impl File {
    /// Checks that every number is finite and not negative, and that sizes of copies rise.
    fn check(&self) -> Result<(), ProfileError> {
        let plain = [("spread", self.spread)];
        let distance = self.warmth.by_distance.map(|factor| ("by_distance", factor));
        let occurrence = self.warmth.by_occurrence.map(|factor| ("by_occurrence", factor));
        let tables: [(&str, &[(&str, f64)]); 10] = [
            ("", &plain),
            ("warmth.", &distance),
            ("warmth.", &occurrence),
            ("profiler.", &self.profiler.numbers()),
            ("profiler_fresh.", &self.profiler_fresh.numbers()),
            ("attached.", &self.attached.numbers()),
            ("speed.", &self.speed.numbers()),
            ("reference.", &self.reference.numbers()),
            ("coupling.", &self.coupling.numbers()),
            ("captured.", &self.captured.numbers()),
        ];
        for (table, fields) in tables {
            for &(field, value) in fields {
                number(value, || format!("{table}{field}"))?;
            }
        }
        for recording in &self.recordings {
            number(recording.slowness, || format!("recordings.slowness of {}", recording.name))?;
        }
        for (at, row) in self.gaps.rows.iter().enumerate() {
            number(row.5, || format!("gaps.rows[{at}], its time,"))?;
            number(row.6, || format!("gaps.rows[{at}], its weight,"))?;
        }
        if self.staged_copy_us.is_valid() { Ok(()) } else { Err(ProfileError::Copies) }
    }
}

/// Checks that a number is finite and not negative.
fn number(value: f64, field: impl Fn() -> String) -> Result<(), ProfileError> {
    if value.is_finite() && value >= 0.0 {
        Ok(())
    } else {
        Err(ProfileError::Number { field: field(), value })
    }
}

impl HostProfile {
    /// Parses the text of a profile.
    ///
    /// # Errors
    /// The defect, with the line or the field.
    pub fn parse(text: &str) -> Result<HostProfile, ProfileError> {
        #[derive(Deserialize)]
        struct Head {
            version: Option<u32>,
        }
        // The version comes before the first table; the gaps, nearly all of the text, are read once, below.
        let start = text.find("\n[").map_or(text, |end| &text[..end]);
        let head: Head = toml::from_str(start).or_else(|_| toml::from_str(text)).map_err(no_toml)?;
        match head.version {
            Some(VERSION) => {}
            Some(other) => return Err(ProfileError::Version(other)),
            None => return Err(ProfileError::NoVersion),
        }
        let file: File = toml::from_str(text).map_err(no_toml)?;
        file.check()?;
        let gaps = file
            .gaps
            .rows
            .into_iter()
            .map(|(before_that, before, left, right, within, us, weight)| Gap {
                key: EdgeKey { before_that, before, left, right, within },
                us,
                weight,
            })
            .collect();
        Ok(HostProfile {
            recordings: file.recordings,
            profiler: file.profiler,
            profiler_fresh: file.profiler_fresh,
            attached: file.attached,
            elasticity: file.speed,
            machine: file.machine,
            reference: file.reference,
            pace: HostPace::default(),
            coupling: file.coupling,
            captured: file.captured,
            copies: file.staged_copy_us,
            warmth: file.warmth,
            gaps: Arc::new(gaps::Gaps::new(gaps)),
            spread: file.spread,
        })
    }

    /// Returns the text of the profile's file.
    pub fn to_text(&self) -> String {
        let file = File {
            version: VERSION,
            spread: self.spread,
            warmth: self.warmth,
            staged_copy_us: self.copies.clone(),
            profiler: self.profiler,
            profiler_fresh: self.profiler_fresh,
            attached: self.attached,
            speed: self.elasticity,
            machine: self.machine.clone(),
            reference: self.reference,
            coupling: self.coupling,
            captured: self.captured,
            recordings: self.recordings.clone(),
            gaps: Gaps::default(),
        };
        let mut text = String::from(
            "# Host profile of steptime: what each gap on the host costs between the beginning or end of one op or\n\
             # call and the next. Made by `steptime host fit`. Times in microseconds.\n\n",
        );
        // The head holds plain numbers and strings: it always serialises.
        text.push_str(&toml::to_string(&file).unwrap_or_default());
        text.push_str(
            "\n# [two marks before, mark before, left, right, within, microseconds when warm, weight]\n\
             # `{` an op begins, `}` ends; `(` a call; `[` an annotation; `~` on another thread; `^` between steps\n\
             [gaps]\nrows = [\n",
        );
        for gap in self.gaps.iter() {
            let key = &gap.key;
            let names = [&key.before_that, &key.before, &key.left, &key.right, &key.within]
                .map(|name| toml::Value::String(name.clone()).to_string());
            let _ = writeln!(text, "  [{}, {:.3}, {:.2}],", names.join(", "), gap.us, gap.weight);
        }
        text.push_str("]\n");
        text
    }
}

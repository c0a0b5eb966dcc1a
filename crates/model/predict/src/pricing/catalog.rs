//! Device profiles: shipped ones, and those in folders.

use std::path::Path;
use std::sync::LazyLock;

use steptime_cost::device::profile::header::Header;
use steptime_cost::device::{DeviceProfile, DeviceSpec, Transfer};

use crate::error::Error;

/// A shipped profile: its name, its header, and its models where it was fitted.
struct ShippedProfile {
    name: &'static str,
    header: &'static str,
    models: Option<&'static [u8]>,
}

/// Every folder of `profiles/` with a `profile.toml`, the fitted ones first (`build.rs`).
static SHIPPED: &[ShippedProfile] = include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// Accuracy of one GPU's models on other GPUs.
static WORTH: &str = include_str!("../../../../../profiles/transfer/worth.toml");

/// Corrections of these models from measurements on other GPUs: header and models.
static CORRECTIONS: Option<(&str, &[u8])> = include!(concat!(env!("OUT_DIR"), "/corrections.rs"));

/// Names of the shipped profiles, the fitted ones first.
pub fn devices() -> impl ExactSizeIterator<Item = &'static str> {
    SHIPPED.iter().map(|shipped| shipped.name)
}

/// Returns a device profile by the name of a shipped one, by the GPU's own name (`NVIDIA H100 80GB HBM3`), or by its folder. To a profile
/// that is only a specification, the models of the best-measured GPU are transferred, corrected by the contents of its folder `corrections`
/// (made by `device transfer`), else by the shipped corrections.
///
/// # Errors
/// Fails where there is neither, or the folder has no usable profile.
pub fn device(name: &str) -> Result<DeviceProfile, Error> {
    let own = own(name)?;
    if own.onto.is_none() && !own.families().is_empty() {
        return Ok(own);
    }
    let worth = worth()?;
    let from = own.onto.clone().unwrap_or_else(|| worth.from.clone());
    let corrections = match corrections_in(name)? {
        None => corrections()?,
        own => own,
    };
    let lender = self::own(&from)?;
    let spec = lender.spec.clone();
    Ok(lender.transfer(own, Transfer { from, ..worth }, corrections).bounded(spec, layers()?))
}

/// The shipped profiles of GPUs that were measured as corrections to the models of another.
fn layers() -> Result<Vec<DeviceProfile>, Error> {
    let with_layer =
        SHIPPED.iter().filter(|shipped| shipped.header.lines().any(|line| line.starts_with("onto = ")));
    with_layer.map(|shipped| own(shipped.name)).collect()
}

/// The corrections in a profile's folder.
fn corrections_in(name: &str) -> Result<Option<DeviceProfile>, Error> {
    let folder = Path::new(name).join("corrections");
    let shipped = devices().any(|shipped| shipped.eq_ignore_ascii_case(name));
    Ok((!shipped && folder.is_dir()).then(|| DeviceProfile::read(&folder)).transpose()?)
}

/// Transfers the models of one GPU to the specification of another, with corrections from other GPUs or without.
///
/// # Errors
/// As [`device`].
pub fn transferred(from: &str, to: &str, corrections: Option<DeviceProfile>) -> Result<DeviceProfile, Error> {
    let mut to = own(to)?;
    to.onto = None;
    Ok(own(from)?.transfer(to, Transfer { from: from.to_owned(), ..worth()? }, corrections))
}

/// Name of the profile whose models are transferred to all others.
///
/// # Errors
/// None, unless the program was built wrongly.
pub fn transfer_source() -> Result<String, Error> {
    Ok(worth()?.from)
}

fn worth() -> Result<Transfer, Error> {
    Ok(Transfer::parse(WORTH).map_err(steptime_cost::device::Error::Transfer)?)
}

fn corrections() -> Result<Option<DeviceProfile>, Error> {
    let read = |(header, models)| DeviceProfile::from_parts(header, Some(models));
    Ok(CORRECTIONS.map(read).transpose()?)
}

/// Returns a device profile as stored, without models of other GPUs.
///
/// # Errors
/// As [`device`].
pub fn own(name: &str) -> Result<DeviceProfile, Error> {
    let shipped = |name: &str| SHIPPED.iter().find(|shipped| shipped.name.eq_ignore_ascii_case(name));
    if let Some(shipped) = shipped(name) {
        return Ok(DeviceProfile::from_parts(shipped.header, shipped.models)?);
    }
    if !Path::new(name).exists() {
        // A GPU's own name contains blanks; the name of a missing folder is not taken for one.
        let is_called = name.contains(' ') && !name.contains(['/', '\\']);
        if let Some(shipped) = is_called.then(|| shipped_for(name)).flatten().and_then(shipped) {
            return Ok(DeviceProfile::from_parts(shipped.header, shipped.models)?);
        }
        let known = devices().collect::<Vec<_>>().join(", ");
        return Err(Error::NoSuchDevice { name: name.into(), known, nearest: nearest(name) });
    }
    Ok(DeviceProfile::read(Path::new(name))?)
}

/// The shipped profile with the most similar name.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let distance = |known: &&str| strsim::damerau_levenshtein(&name, known);
    let nearest = devices().min_by_key(distance)?;
    // Most letters of a short name must match.
    (distance(&nearest) <= 1 + nearest.len() / 4).then_some(nearest)
}

/// Whether a device's own name is this model: `NVIDIA A100-SXM4-80GB` is an `NVIDIA A100`, and not an `NVIDIA A10`.
#[must_use]
pub fn is_named(recorded: &str, name: &str) -> bool {
    let recorded =
        ALIASES.iter().find(|(board, _)| recorded.contains(board)).map_or(recorded, |(_, name)| name);
    let words = |text: &str| -> Vec<String> {
        let words =
            text.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_ascii_lowercase).filter(|word| !VENDOR.contains(&word.as_str())).collect()
    };
    let (recorded, name) = (words(recorded), words(name));
    let another = |word: &&str| recorded.iter().any(|of| of == word) && !name.iter().any(|of| of == word);
    !name.is_empty() && name.iter().all(|word| recorded.contains(word)) && !OTHER_CHIPS.iter().any(another)
}

/// Boards whose own name is a number, or differs from the name of their chip.
const ALIASES: [(&str, &str); 1] = [("PG509-210", "NVIDIA A100-SXM4-80GB")];

/// Words after a GPU's name that mean another GPU: other silicon under the same name, or a part of it.
const OTHER_CHIPS: [&str; 5] = ["laptop", "mobile", "max", "d", "mig"];

/// Words in device names beside the model's.
const VENDOR: [&str; 4] = ["nvidia", "tesla", "geforce", "graphics"];

/// Short name of the shipped profile for a device's own name: of several that match, the one with the most words.
#[must_use]
pub fn shipped_for(recorded: &str) -> Option<&'static str> {
    let fitting = SHIPPED.iter().map(|shipped| shipped.name).filter(|name| is_named(recorded, name));
    fitting.max_by_key(|name| name.split('-').count())
}

/// Specification for a device's own name, where a profile of it ships.
#[must_use]
pub fn shipped_spec(recorded: &str) -> Option<DeviceSpec> {
    static SPECS: LazyLock<Vec<(&str, Option<DeviceSpec>)>> = LazyLock::new(|| {
        let spec = |header| Header::parse(header).ok().map(|header| header.device);
        SHIPPED.iter().map(|shipped| (shipped.name, spec(shipped.header))).collect()
    });
    let name = shipped_for(recorded)?;
    SPECS.iter().find(|(known, _)| *known == name)?.1.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_told_from_another_word() {
        assert_eq!(nearest("h20"), Some("h200"));
        assert_eq!(nearest("TitanXP"), Some("titan-xp"));
        assert_eq!(nearest("voodoo2"), None);
    }

    #[test]
    fn a_profile_is_found_by_what_its_gpu_calls_itself() {
        let name = |called: &str| own(called).ok().map(|profile| profile.spec.name);
        assert_eq!(name("NVIDIA H100 80GB HBM3"), name("h100"));
        assert_eq!(name("Tesla T4"), name("t4"));
        assert_eq!(name("profiles/of a b200"), None);
    }

    #[test]
    fn devices_are_told_apart_by_whole_words() {
        assert!(is_named("NVIDIA A100-SXM4-80GB", "NVIDIA A100"));
        assert!(is_named("Tesla V100-SXM2-16GB", "NVIDIA V100"));
        assert!(!is_named("NVIDIA L40S", "NVIDIA L4"));
        assert!(!is_named("NVIDIA GH200 480GB", "NVIDIA H200"));
        assert!(!is_named("", ""));
        assert!(!is_named("NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA GeForce RTX 4090"));
        assert_eq!(shipped_for("NVIDIA GeForce RTX 4090 D"), None);
        assert_eq!(shipped_for("NVIDIA A100-SXM4-40GB MIG 3g.20gb"), None);
        assert_eq!(shipped_for("NVIDIA TITAN Xp"), Some("titan-xp"));
        assert_eq!(shipped_for("NVIDIA GeForce RTX 2080 Ti"), None);
        assert_eq!(shipped_for("NVIDIA A100-SXM4-40GB"), Some("a100"));
        assert_eq!(shipped_for("NVIDIA A100-SXM4-80GB"), Some("a100-80gb"));
        assert_eq!(shipped_for("NVIDIA H100 PCIe"), Some("h100-pcie"));
        assert_eq!(shipped_for("NVIDIA GB200"), Some("gb200"));
        assert_eq!(shipped_for("NVIDIA L40"), Some("l40"));
        assert_eq!(shipped_for("NVIDIA PG509-210"), Some("a100-80gb"));
        assert_eq!(shipped_for("Tesla T4"), Some("t4"));
        assert_eq!(shipped_for("NVIDIA A100 80GB PCIe"), Some("a100-80gb-pcie"));
        assert_eq!(shipped_spec("NVIDIA H200").map(|spec| spec.name), Some("NVIDIA H200".to_owned()));
    }
}

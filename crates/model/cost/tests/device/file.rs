//! Folders of profiles.

use std::fs;
use std::path::{Path, PathBuf};

use steptime_cost::device::profile::file::{HEADER, MODELS};
use steptime_cost::device::{Context, DeviceProfile, ModelChoice};

use crate::fitted::profile;
use crate::synthetic::observations;

/// Temporary folder of a test, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("steptime-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn refusal(folder: &Path) -> String {
    DeviceProfile::read(folder).unwrap_err().to_string()
}

#[test]
fn what_is_saved_is_what_is_loaded() {
    let folder = Folder::new("round-trip");
    let place = folder.0.join("example");
    profile().write(&place).unwrap();
    profile().write(&place).unwrap();
    let loaded = DeviceProfile::read(&place).unwrap();
    assert_eq!(loaded.families(), profile().families());
    assert_eq!(loaded.spec, profile().spec);
    for row in observations(90) {
        let ctx = Context::after(&row.call, 30_000_000);
        assert_eq!(
            loaded.price(&row.call, &ctx, ModelChoice::Best),
            profile().price(&row.call, &ctx, ModelChoice::Best)
        );
    }
    let names: Vec<_> = fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["example"], "nothing is left beside it");
}

#[test]
fn damaged_files_are_refused_with_reasons() {
    let folder = Folder::new("damage");
    let place = folder.0.join("example");
    profile().write(&place).unwrap();
    let (header, models) = (place.join(HEADER), place.join(MODELS));
    let (text, bytes) = (fs::read_to_string(&header).unwrap(), fs::read(&models).unwrap());

    fs::write(&models, &bytes[..bytes.len() - 100]).unwrap();
    assert!(refusal(&place).contains("cut off or damaged"));
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 4;
    fs::write(&models, flipped).unwrap();
    assert!(refusal(&place).contains("cut off or damaged"));
    fs::write(&models, b"STP").unwrap();
    assert!(refusal(&place).contains("cut off"));
    fs::remove_file(&models).unwrap();
    assert!(refusal(&place).contains("is not beside it"));

    fs::write(&models, &bytes).unwrap();
    let refuse = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        fs::write(&header, text.replacen(from, to, 1)).unwrap();
        refusal(&place)
    };
    assert!(refuse("version = 3", "version = 99").contains("of version 99, and this steptime reads 3"));
    assert!(refuse("version = 3", "").contains("has no version"));
    assert!(refuse("clock_mhz = ", "clock_ghz = ").contains("clock_ghz"));
    assert!(refuse("clock_mhz = 1980.0", "clock_mhz = -1.0").contains("device.clock_mhz is -1"));
    assert!(
        refuse("clock_mhz = 1980.0", "clock_mhz = 1981.0").contains("does not belong to the profile.toml")
    );
    fs::write(&header, text.replace('\n', "\r\n")).unwrap();
    assert!(DeviceProfile::read(&place).is_ok(), "line ends do not matter");
}

/// Every state that a writer passes through, as a folder: none, some and all of its steps done.
#[test]
fn whenever_a_writer_is_killed_the_old_profile_or_the_new_one_is_there() {
    let folder = Folder::new("killed");
    let named = |name: &str| {
        let mut profile = profile().clone();
        profile.name = name.into();
        profile
    };
    let parts = |profile: &DeviceProfile| {
        let (text, models) = profile.to_parts().unwrap();
        (profile.name.clone(), text, models.unwrap_or_default())
    };
    let spec = DeviceProfile::read(Path::new("../../../profiles/h100")).unwrap();
    let [old, new, spec] = [&named("old"), &named("new"), &spec].map(parts);
    let place = folder.0.join("example");
    let at = |name: &str| place.join(name);
    let name = || DeviceProfile::read(&place).unwrap().name;
    for (before, after) in [(&old, &new), (&old, &spec), (&spec, &new)] {
        for (steps, half) in [(0, false), (1, true), (1, false), (2, true), (2, false), (3, false)] {
            let _ = fs::remove_dir_all(&place);
            fs::create_dir_all(&place).unwrap();
            fs::write(at(HEADER), &before.1).unwrap();
            if !before.2.is_empty() {
                fs::write(at(MODELS), &before.2).unwrap();
            }
            fs::write(at("notes.md"), "of the user").unwrap();
            let take =
                |whole: &[u8], step| whole[..whole.len() / (1 + usize::from(half && steps == step))].to_vec();
            if steps >= 1 {
                fs::write(at("models.bin.zst.next"), take(&after.2, 1)).unwrap();
            }
            if steps >= 2 {
                fs::write(at("profile.toml.next"), take(after.1.as_bytes(), 2)).unwrap();
            }
            if steps >= 3 {
                fs::rename(at("profile.toml.next"), at(HEADER)).unwrap();
            }
            assert_eq!(name(), if steps >= 3 { &*after.0 } else { &*before.0 }, "after {steps} steps");
        }
        // The next writer cleans up.
        profile().write(&place).unwrap();
        assert_eq!(name(), profile().name);
        let mut files: Vec<_> =
            fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        files.sort();
        assert_eq!(files, [MODELS, "notes.md", HEADER]);
    }
}

#[test]
fn a_profile_that_was_never_finished_is_written_over() {
    let folder = Folder::new("unfinished");
    fs::write(folder.0.join("models.bin.zst.next"), "half").unwrap();
    assert!(refusal(&folder.0).contains("cannot read"));
    profile().write(&folder.0).unwrap();
    assert_eq!(DeviceProfile::read(&folder.0).unwrap().families(), profile().families());
}

#[test]
fn a_folder_of_something_else_is_not_replaced() {
    let folder = Folder::new("else");
    fs::write(folder.0.join("precious"), "text").unwrap();
    assert!(profile().write(&folder.0).unwrap_err().to_string().contains("holds no profile.toml"));
    assert!(folder.0.join("precious").exists());
    assert!(refusal(&folder.0.join("nowhere")).contains("cannot read"));
}

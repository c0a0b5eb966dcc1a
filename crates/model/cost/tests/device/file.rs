//! The folder of a profile.

use std::fs;
use std::path::{Path, PathBuf};

use steptime_cost::device::profile::file::{HEADER, MODELS};
use steptime_cost::device::{Context, DeviceProfile, ModelChoice};

use crate::fitted::profile;
use crate::synthetic::observations;

/// A folder of its own for a test, gone when it is done.
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

#[test]
fn a_folder_of_something_else_is_not_replaced() {
    let folder = Folder::new("else");
    fs::write(folder.0.join("precious"), "text").unwrap();
    assert!(profile().write(&folder.0).unwrap_err().to_string().contains("holds no profile.toml"));
    assert!(folder.0.join("precious").exists());
    assert!(refusal(&folder.0.join("nowhere")).contains("cannot read"));
}

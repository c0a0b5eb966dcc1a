//! Lists the shipped device profiles, so that a device needs only a folder under `profiles/`.

use std::path::Path;
use std::{env, fs, io};

/// Writes `shipped.rs`, an array of `Shipped`: profiles with models first, their own before transferred ones, each group by name; and
/// `corrections.rs`, the corrections of transferred models.
fn main() -> io::Result<()> {
    let profiles =
        Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../../profiles");
    println!("cargo:rerun-if-changed={}", profiles.display());
    let mut folders = fs::read_dir(&profiles)?.collect::<io::Result<Vec<_>>>()?;
    folders.retain(|folder| folder.path().join("profile.toml").is_file());
    let rank = |folder: &fs::DirEntry| {
        let header = fs::read_to_string(folder.path().join("profile.toml")).unwrap_or_default();
        let lent = header.lines().any(|line| line.starts_with("onto = "));
        (!folder.path().join("models.bin.zst").is_file(), lent)
    };
    folders.sort_by_key(|folder| (rank(folder), folder.file_name()));
    let shipped: String = folders.iter().map(|folder| entry(&folder.path())).collect();
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("shipped.rs");
    fs::write(out, format!("&[{shipped}]"))?;
    let folder = profiles.join("transfer/corrections");
    let [header, models] = ["profile.toml", "models.bin.zst"].map(|file| folder.join(file));
    let text = match models.is_file() {
        true => format!("Some((include_str!({header:?}), include_bytes!({models:?})))"),
        false => "None".to_owned(),
    };
    fs::write(Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("corrections.rs"), text)
}

/// One profile: its name, its header, and its models where it has any.
fn entry(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default();
    let (header, models) = (folder.join("profile.toml"), folder.join("models.bin.zst"));
    let models =
        if models.is_file() { format!("Some(include_bytes!({models:?}))") } else { "None".to_owned() };
    format!("ShippedProfile {{ name: {name:?}, header: include_str!({header:?}), models: {models} }},")
}

//! The device profiles that ship with steptime, and those in folders.

use std::path::Path;

use steptime_cost::device::DeviceProfile;

use crate::error::Error;

/// A profile that ships: its name, its header, its models where it was fitted.
struct Shipped {
    name: &'static str,
    header: &'static str,
    models: Option<&'static [u8]>,
}

macro_rules! specification {
    ($name:literal) => {
        Shipped {
            name: $name,
            header: include_str!(concat!("../../../../profiles/", $name, "/profile.toml")),
            models: None,
        }
    };
}

static SHIPPED: &[Shipped] = &[
    Shipped {
        name: "h200",
        header: include_str!("../../../../profiles/h200/profile.toml"),
        models: Some(include_bytes!("../../../../profiles/h200/models.bin.zst")),
    },
    specification!("a100"),
    specification!("h100"),
    specification!("l4"),
    specification!("p100"),
    specification!("titan-xp"),
    specification!("v100"),
];

/// The names of the profiles that ship with steptime, the fitted ones first.
pub fn devices() -> impl ExactSizeIterator<Item = &'static str> {
    SHIPPED.iter().map(|shipped| shipped.name)
}

/// A device profile by the name of a shipped one, or by its folder.
///
/// # Errors
/// Where there is neither, or the folder holds no usable profile.
pub fn device(name: &str) -> Result<DeviceProfile, Error> {
    if let Some(shipped) = SHIPPED.iter().find(|shipped| shipped.name.eq_ignore_ascii_case(name)) {
        return Ok(DeviceProfile::from_parts(shipped.header, shipped.models)?);
    }
    if !Path::new(name).exists() {
        let known = devices().collect::<Vec<_>>().join(", ");
        return Err(Error::NoSuchDevice { name: name.into(), known });
    }
    Ok(DeviceProfile::read(Path::new(name))?)
}

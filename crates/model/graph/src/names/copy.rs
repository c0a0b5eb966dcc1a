//! Names of device copies.

/// Source and destination of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CopyDirection {
    /// From the host to the device.
    HostToDevice,
    /// From the device to the host.
    DeviceToHost,
    /// Within a device, or unknown.
    DeviceToDevice,
}

/// Host memory that a copy reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HostMemory {
    /// Ordinary memory: the driver stages the copy through its own buffer.
    Pageable,
    /// Page-locked memory.
    Pinned,
    /// No host memory, or not known from the name.
    Unknown,
}

/// Parsed name of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CopyName {
    /// Source and destination.
    pub direction: CopyDirection,
    /// Host memory that it reads or writes.
    pub host: HostMemory,
}

/// Kineto's name of a memset.
pub const MEMSET: &str = "Memset (Device)";

impl CopyName {
    /// Parses a name of CUDA, `Memcpy HtoD (Pageable -> Device)`, or of HIP, `CopyHostToDevice`.
    pub fn parse(name: &str) -> CopyName {
        let direction = if name.contains("HtoD") || name.contains("HostToDevice") {
            CopyDirection::HostToDevice
        } else if name.contains("DtoH") || name.contains("DeviceToHost") {
            CopyDirection::DeviceToHost
        } else {
            CopyDirection::DeviceToDevice
        };
        let host = if name.contains("Pageable") {
            HostMemory::Pageable
        } else if name.contains("Pinned") {
            HostMemory::Pinned
        } else {
            HostMemory::Unknown
        };
        CopyName { direction, host }
    }

    /// Returns Kineto's name of such a copy on CUDA.
    pub fn text(self) -> &'static str {
        match (self.direction, self.host) {
            (CopyDirection::HostToDevice, HostMemory::Pinned) => "Memcpy HtoD (Pinned -> Device)",
            (CopyDirection::HostToDevice, _) => "Memcpy HtoD (Pageable -> Device)",
            (CopyDirection::DeviceToHost, HostMemory::Pinned) => "Memcpy DtoH (Device -> Pinned)",
            (CopyDirection::DeviceToHost, _) => "Memcpy DtoH (Device -> Pageable)",
            (CopyDirection::DeviceToDevice, _) => "Memcpy DtoD (Device -> Device)",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_written_is_read_again() {
        for direction in [CopyDirection::HostToDevice, CopyDirection::DeviceToHost] {
            for host in [HostMemory::Pageable, HostMemory::Pinned] {
                let copy = CopyName { direction, host };
                assert_eq!(CopyName::parse(copy.text()), copy);
            }
        }
        let within = CopyName { direction: CopyDirection::DeviceToDevice, host: HostMemory::Unknown };
        assert_eq!(CopyName::parse(within.text()), within);
    }

    #[test]
    fn names_of_hip_say_the_direction() {
        assert_eq!(CopyName::parse("CopyHostToDevice").direction, CopyDirection::HostToDevice);
        assert_eq!(CopyName::parse("CopyDeviceToHost").direction, CopyDirection::DeviceToHost);
        assert_eq!(CopyName::parse("CopyDeviceToDevice").direction, CopyDirection::DeviceToDevice);
    }
}

//! What the operating system says about a PCI device before DPDK looks at it.
//!
//! The commonest mistakes are an address that is not there and a device bound to the wrong driver, and DPDK says
//! nothing of either: its list of ports is just empty.

use std::fs;
use std::path::Path;

use crate::error::PortError;

/// Where the kernel lists its PCI devices.
pub(crate) const SYSFS: &str = "/sys/bus/pci/devices";

/// Drivers through which user space has the device to itself.
const HANDED_OVER: [&str; 3] = ["vfio-pci", "uio_pci_generic", "igb_uio"];

/// Drivers that keep the device and let DPDK use it beside the kernel.
const SHARED: [&str; 3] = ["mlx5_core", "mlx4_core", "mana"];

/// The vendor whose devices stay with their kernel driver.
const MELLANOX: &str = "0x15b3";

/// The full address (`0000:83:00.0`) when `name` is a PCI address, in full or without its domain.
pub(crate) fn address(name: &str) -> Option<String> {
    let (rest, function) = name.rsplit_once('.')?;
    let parts: Vec<&str> = rest.split(':').collect();
    let (domain, bus, device) = match parts.as_slice() {
        [bus, device] => ("0", *bus, *device),
        [domain, bus, device] => (*domain, *bus, *device),
        _ => return None,
    };
    let hex = |text: &str, digits: usize| {
        let fits = (1..=digits).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if fits { u32::from_str_radix(text, 16).ok() } else { None }
    };
    let (domain, bus, device, function) = (hex(domain, 8)?, hex(bus, 2)?, hex(device, 2)?, hex(function, 1)?);
    (device < 32 && function < 8).then(|| format!("{domain:04x}:{bus:02x}:{device:02x}.{function:x}"))
}

/// Refuses a device that is not there or that DPDK cannot use with the driver it is bound to. `device` is the name
/// for messages, `address` the full address, `devices` the folder [`SYSFS`].
pub(crate) fn check(devices: &Path, device: &str, address: &str) -> Result<(), PortError> {
    let folder = devices.join(address);
    if !folder.exists() {
        return Err(PortError::NoSuchPciDevice { device: device.to_owned() });
    }
    let driver = fs::read_link(folder.join("driver"))
        .ok()
        .and_then(|link| link.file_name().map(|name| name.to_string_lossy().into_owned()));
    let vendor = fs::read_to_string(folder.join("vendor")).unwrap_or_default();
    let kept_by_kernel = vendor.trim() == MELLANOX;
    let wrong =
        |reason: String, remedy: String| Err(PortError::WrongDriver { device: device.to_owned(), reason, remedy });
    match driver.as_deref() {
        Some(driver) if SHARED.contains(&driver) => Ok(()),
        Some(driver) if kept_by_kernel => wrong(
            format!("bound to {driver}, but NVIDIA (Mellanox) cards stay with their kernel driver"),
            format!("bind it back: dpdk-devbind.py --bind=mlx5_core {address} (ConnectX-3: mlx4_core)"),
        ),
        None if kept_by_kernel => wrong(
            "bound to no driver, but NVIDIA (Mellanox) cards need their kernel driver".to_owned(),
            format!(
                "load it: modprobe -a mlx5_core mlx5_ib, dpdk-devbind.py --bind=mlx5_core {address} (ConnectX-3: mlx4_core, mlx4_ib)"
            ),
        ),
        Some(driver) if HANDED_OVER.contains(&driver) => Ok(()),
        Some(driver) => {
            let interface = first_entry(&folder.join("net"));
            let holds = interface.map_or(String::new(), |name| format!(", which has it as interface {name}"));
            wrong(
                format!("bound to kernel driver {driver}{holds}"),
                format!("bind it with dpdk-devbind.py --bind=vfio-pci {address}"),
            )
        }
        None => {
            wrong("bound to no driver".to_owned(), format!("bind it with dpdk-devbind.py --bind=vfio-pci {address}"))
        }
    }
}

fn first_entry(folder: &Path) -> Option<String> {
    fs::read_dir(folder).ok()?.flatten().next().map(|entry| entry.file_name().to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_from_names() {
        for (name, full) in [
            ("0000:83:00.0", "0000:83:00.0"),
            ("83:00.1", "0000:83:00.1"),
            ("1:2:1F.7", "0001:02:1f.7"),
            ("10000:01:00.0", "10000:01:00.0"),
        ] {
            assert_eq!(address(name).as_deref(), Some(full), "{name}");
        }
        for name in ["net_tap0", "", ".", "83:00", "83:20.0", "83:00.8", "0:0:0:0.0", "+1:00.0", "g:00.0", "83:00.0 "] {
            assert_eq!(address(name), None, "{name}");
        }
    }

    /// What is said of a device of this vendor, bound to this driver.
    fn said(vendor: &str, driver: Option<&str>) -> Result<(), String> {
        let devices = tempfile::tempdir().unwrap();
        let folder = devices.path().join("0000:01:00.0");
        fs::create_dir_all(folder.join("net/eth7")).unwrap();
        fs::write(folder.join("vendor"), format!("{vendor}\n")).unwrap();
        if let Some(driver) = driver {
            std::os::unix::fs::symlink(format!("../../drivers/{driver}"), folder.join("driver")).unwrap();
        }
        check(devices.path(), "DEVICE", "0000:01:00.0").map_err(|error| error.to_string())
    }

    #[test]
    fn devices_with_the_right_driver_pass() {
        for driver in HANDED_OVER {
            assert_eq!(said("0x8086", Some(driver)), Ok(()));
        }
        assert_eq!(said("0x15b3", Some("mlx5_core")), Ok(()));
        assert_eq!(said("0x15b3", Some("mlx4_core")), Ok(()));
    }

    #[test]
    fn others_are_refused_with_the_command_that_helps() {
        let taken = said("0x8086", Some("igb")).unwrap_err();
        assert_eq!(
            taken,
            "device DEVICE: bound to kernel driver igb, which has it as interface eth7: bind it with dpdk-devbind.py \
             --bind=vfio-pci 0000:01:00.0"
        );
        assert!(said("0x8086", None).unwrap_err().contains("bound to no driver"));
        let given_away = said("0x15b3", Some("vfio-pci")).unwrap_err();
        assert!(given_away.contains("stay with their kernel driver"), "{given_away}");
        assert!(given_away.contains("--bind=mlx5_core 0000:01:00.0"), "{given_away}");
        assert!(said("0x15b3", None).unwrap_err().contains("modprobe"));
        let missing = check(Path::new("/nonexistent"), "DEVICE", "0000:01:00.0").unwrap_err().to_string();
        assert_eq!(missing, "device DEVICE: no such PCI device: lspci -D lists them");
    }
}

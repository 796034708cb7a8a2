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

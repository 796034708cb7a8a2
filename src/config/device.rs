//! Names of devices: PCI addresses and vdevs with their arguments.

use super::error::quote;
use super::table::Complaint;

/// What EAL keeps of a device's name, its NUL not counted (`RTE_DEV_NAME_MAX_LEN`).
const NAME_MAX: usize = 63;

pub(super) const WANTED: &str = "a PCI address such as 0000:3b:00.0, or a vdev such as net_af_packet0,iface=eth1";

/// A device as written, arguments included.
///
/// # Errors
///
/// It is empty, its name has spaces, or it starts as a PCI address and is none. Whether the device exists is not looked at.
pub(super) fn check(device: &str) -> Result<&str, Complaint> {
    let complain = |what: &str| Err((format!("`device` {what}"), WANTED.to_owned()));
    let name = name(device);
    if name.is_empty() {
        return complain("is empty");
    }
    if name.contains(char::is_whitespace) || device.contains(char::is_control) {
        return complain(&format!("has a space or a control character in it: {}", quote(device)));
    }
    if name.len() > NAME_MAX {
        return complain(&format!("has a name of more than {NAME_MAX} bytes"));
    }
    // Other buses have colons too (`auxiliary:…`), but none starts with a hexadecimal number.
    let starts_as_pci = name.split_once(':').is_some_and(|(start, _)| start.bytes().all(|b| b.is_ascii_hexdigit()));
    if starts_as_pci && pci(name).is_none() {
        return complain(&format!("{} is not a PCI address", quote(name)));
    }
    Ok(device)
}

/// What of a device can be claimed only once.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Claim<'d> {
    /// The device's name in one spelling.
    pub name: String,
    /// Devices with several ports, and with representors, are told apart by these arguments.
    pub port: Option<&'d str>,
    representor: Option<&'d str>,
}

impl Claim<'_> {
    /// Whether two ports of the configuration would take the same port of a device.
    pub(super) fn collides(&self, other: &Self) -> bool {
        let same_port = self.port == other.port || self.port.is_none() || other.port.is_none();
        self.name == other.name && self.representor == other.representor && same_port
    }
}

/// What a device claims.
pub(super) fn claim(device: &str) -> Claim<'_> {
    let name = name(device);
    let Some((domain, rest)) = pci(name) else { return Claim { name: name.to_owned(), port: None, representor: None } };
    let argument = |key: &str| {
        device
            .split(',')
            .skip(1)
            .filter_map(|argument| argument.split_once('='))
            .find(|(k, _)| *k == key)
            .map(|(_, v)| v)
    };
    Claim {
        name: format!("{domain:04x}:{}", rest.to_ascii_lowercase()),
        port: argument("port"),
        representor: argument("representor"),
    }
}

fn name(device: &str) -> &str {
    device.split(',').next().unwrap_or(device)
}

/// The domain and the rest of `[domain:]bus:device.function`.
fn pci(name: &str) -> Option<(u32, &str)> {
    let (domain, rest) = match name.split(':').count() {
        2 => (0, name),
        3 => {
            let (domain, rest) = name.split_once(':')?;
            if !(4..=8).contains(&domain.len()) {
                return None;
            }
            (hex(domain)?, rest)
        }
        _ => return None,
    };
    let (bus, rest_of_rest) = rest.split_once(':')?;
    let (device, function) = rest_of_rest.split_once('.')?;
    let fits = bus.len() == 2 && device.len() == 2 && function.len() == 1;
    hex(bus)?;
    (fits && hex(device)? < 32 && hex(function)? < 8).then_some((domain, rest))
}

fn hex(digits: &str) -> Option<u32> {
    if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) { u32::from_str_radix(digits, 16).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_pci_addresses_or_vdevs() {
        for good in [
            "0000:3b:00.0",
            "3b:00.1",
            "0000:83:1f.7,port=1",
            "00010000:01:00.0",
            "net_af_packet0,iface=eth1",
            "net_pcap0,rx_pcap=/tmp/a b.pcap",
            "auxiliary:mlx5_core.sf.4",
        ] {
            assert_eq!(check(good), Ok(good));
        }
        for bad in [
            "",
            ",iface=eth1",
            "net tap0",
            " 0000:3b:00.0",
            "net_tap0,iface=a\n",
            "0000:3b:00",
            "0000:3b:00.8",
            "0000:3b:20.0",
            "3b:00:00",
            "0:3b:00.0",
            "3b:0.0",
            "::",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
        assert!(check(&"x".repeat(64)).is_err());
    }

    #[test]
    fn a_port_of_a_device_is_claimed_once() {
        for (one, other, collide) in [
            ("0000:3b:00.0", "3B:00.0,mprq_en=1", true),
            ("0000:3b:00.0", "0000:3b:00.1", false),
            ("0000:83:00.0,port=0", "0000:83:00.0,port=1", false),
            ("0000:83:00.0,port=1", "0000:83:00.0,port=1", true),
            ("0000:83:00.0", "0000:83:00.0,port=1", true),
            ("0000:3b:00.0", "0000:3b:00.0,representor=vf0", false),
            ("net_tap0,iface=a", "net_tap0,iface=b", true),
            ("net_tap0", "net_tap1", false),
        ] {
            assert_eq!(claim(one).collides(&claim(other)), collide, "{one} {other}");
        }
    }
}

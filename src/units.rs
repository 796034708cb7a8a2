//! Identifiers and quantities with a unit, so that a port number is never taken for a queue number.

use std::fmt;
use std::str::FromStr;

/// A port of the configuration: its position in the list of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u16);

/// A hardware queue of one port, receive or transmit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId(pub u16);

/// A processor as the kernel numbers it (`/proc/cpuinfo`, `taskset -c`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoreId(pub u16);

impl PortId {
    /// Its position in the list of ports.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl fmt::Display for CoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An Ethernet (MAC) address, bytes in wire order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// True for broadcast and multicast addresses: the I/G bit, the lowest of the first byte (IEEE 802 8.2.2).
    pub fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// True for the address of all zeros, which no station has.
    pub fn is_zero(self) -> bool {
        self.0 == [0; 6]
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not six two-digit hexadecimal numbers with colons between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a MAC address (six hexadecimal bytes such as 02:00:00:00:00:01)")]
pub struct BadMacAddr;

impl FromStr for MacAddr {
    type Err = BadMacAddr;

    fn from_str(text: &str) -> Result<Self, BadMacAddr> {
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts.next().ok_or(BadMacAddr)?;
            if part.len() != 2 || !part.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return Err(BadMacAddr);
            }
            *byte = u8::from_str_radix(part, 16).map_err(|_| BadMacAddr)?;
        }
        match parts.next() {
            None => Ok(Self(bytes)),
            Some(_) => Err(BadMacAddr),
        }
    }
}

impl serde::Serialize for MacAddr {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for MacAddr {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mac_addresses_are_read_and_written() {
        let mac: MacAddr = "02:00:5e:00:53:af".parse().unwrap();
        assert_eq!(mac, MacAddr([2, 0, 0x5e, 0, 0x53, 0xaf]));
        assert_eq!(mac.to_string(), "02:00:5e:00:53:af");
        assert!(!mac.is_group());
        assert!(MacAddr([0xff; 6]).is_group());
        for bad in ["", "02", "2:0:0:0:0:1", "02:00:00:00:00:01:02", "02:00:00:00:00:+1", "0g:00:00:00:00:01"] {
            assert_eq!(bad.parse::<MacAddr>(), Err(BadMacAddr), "{bad}");
        }
    }
}

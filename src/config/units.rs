//! Quantities written with a unit, as `tc` reads them.

use super::table::Complaint;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Bytes from a size as `tc` writes it.
///
/// A number, with or without a decimal fraction, and a unit in either case: none or `b` for bytes; `k` or
/// `kb` for 1024 bytes, `m` or `mb` for 1024², `g` or `gb` for 1024³; `kbit`, `mbit`, `gbit` for an eighth of
/// those (`get_size` of iproute2). `kib`, `mib` and `gib`, which `tc` does not know, mean the same as `k`,
/// `m` and `g`. A fraction of a byte is cut off.
///
/// # Errors
///
/// What is wrong with the text, and what a size looks like.
pub(crate) fn size(text: &str) -> Result<u64, Complaint> {
    let complain = || {
        let what = format!("{} is not a size", super::error::quote(text));
        (what, "a number of bytes with a unit as in tc: 1500b, 100k, 512M, 2G, 8mbit".to_owned())
    };
    let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let (number, unit) = text.split_at_checked(digits).ok_or_else(complain)?;
    let unit: f64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" | "kib" => KIB,
        "m" | "mb" | "mib" => KIB * KIB,
        "g" | "gb" | "gib" => KIB * KIB * KIB,
        "kbit" => KIB / 8.0,
        "mbit" => KIB * KIB / 8.0,
        "gbit" => KIB * KIB * KIB / 8.0,
        _ => return Err(complain()),
    };
    let number: f64 = number.parse().map_err(|_| complain())?;
    // The conversion saturates; a size beyond all memory is out of range for whoever asks.
    Ok((number * unit) as u64)
}

const KIB: f64 = 1024.0;

/// Bytes per second from a rate as `tc` writes it.
///
/// A number, with or without a decimal fraction, and a unit in either case: none or `bit` for bits per second; `bps` for
/// bytes per second; before either a prefix, `k`, `m`, `g` or `t` for powers of 1000, `ki`, `mi`, `gi` or `ti` for powers of 1024
/// (`get_rate64` of iproute2). A fraction of a byte is cut off.
///
/// # Errors
///
/// What is wrong with the text, and what a rate looks like.
pub(crate) fn rate(text: &str) -> Result<u64, Complaint> {
    let complain = || {
        let what = format!("{} is not a rate", super::error::quote(text));
        (what, RATE.to_owned())
    };
    let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let (number, unit) = text.split_at_checked(digits).ok_or_else(complain)?;
    let unit = unit.to_ascii_lowercase();
    let (prefix, bits) = match unit.strip_suffix("bps") {
        Some(prefix) => (prefix, 1.0),
        None if unit.is_empty() => ("", 8.0),
        None => (unit.strip_suffix("bit").ok_or_else(complain)?, 8.0),
    };
    let (prefix, base) = match prefix.strip_suffix('i') {
        Some(letter) if !letter.is_empty() => (letter, KIB),
        Some(_) => return Err(complain()),
        None => (prefix, 1000.0),
    };
    let power = match prefix {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return Err(complain()),
    };
    // Whole numbers exactly, as far as they go.
    if let (Ok(number), 1000.0) = (number.parse::<u64>(), base)
        && let Some(rate) = number.checked_mul(1000_u64.pow(power))
    {
        return Ok(rate / bits as u64);
    }
    let number: f64 = number.parse().map_err(|_| complain())?;
    Ok((number * base.powi(power as i32) / bits) as u64)
}

/// What a rate looks like.
pub(crate) const RATE: &str =
    "a rate as in tc: 2gbit, 100mbit, 1mbps (bytes per second), or a number of bits per second";

/// A time as `tc` writes it: a number, with or without a decimal fraction, and `s`, `ms`, `us` or `ns`.
///
/// # Errors
///
/// What is wrong with the text, and what a time looks like.
pub(crate) fn duration(text: &str) -> Result<Duration, Complaint> {
    let complain = || (format!("{} is not a time", super::error::quote(text)), "a time such as 1s or 250ms".to_owned());
    let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let (number, unit) = text.split_at_checked(digits).ok_or_else(complain)?;
    let unit = match unit {
        "s" => 1.0,
        "ms" => 1e-3,
        "us" => 1e-6,
        "ns" => 1e-9,
        _ => return Err(complain()),
    };
    let number: f64 = number.parse().map_err(|_| complain())?;
    Duration::try_from_secs_f64(number * unit).map_err(|_| complain())
}

/// What a number of packets looks like.
const COUNT: &str = "a whole number";

/// A number without a unit.
///
/// # Errors
///
/// That it is none.
pub(crate) fn count(text: &str) -> Result<u64, Complaint> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let complain = || (format!("{} is not a whole number", super::error::quote(text)), COUNT.to_owned());
    text.parse().ok().filter(|_| digits).ok_or_else(complain)
}

/// Protocols that go by a name, as in `/etc/protocols`.
const PROTOCOLS: [(&str, u8); 15] = [
    ("icmp", 1),
    ("igmp", 2),
    ("ipip", 4),
    ("tcp", 6),
    ("udp", 17),
    ("dccp", 33),
    ("ipv6", 41),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("icmpv6", 58),
    ("ospf", 89),
    ("vrrp", 112),
    ("sctp", 132),
    ("udplite", 136),
];

/// What a protocol looks like.
pub(crate) const PROTOCOL: &str = "a name such as tcp, udp or icmp, or a number from 0 to 255";

/// A protocol by its name or number.
///
/// # Errors
///
/// That there is none of that name.
pub(crate) fn protocol(text: &str) -> Result<u8, Complaint> {
    let lower = text.to_ascii_lowercase();
    let named = PROTOCOLS.iter().find(|(name, _)| *name == lower).map(|(_, number)| *number);
    let number = || count(text).ok().and_then(|number| u8::try_from(number).ok());
    named.or_else(number).ok_or_else(|| (format!("{} is no protocol", super::error::quote(text)), PROTOCOL.to_owned()))
}

/// What ports look like.
pub(crate) const PORTS: &str = "a port from 0 to 65535, or a range such as 1024-2047";

/// A port or a range of them.
///
/// # Errors
///
/// That it is neither.
pub(crate) fn ports(text: &str) -> Result<RangeInclusive<u16>, Complaint> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let port = |text: &str| count(text).ok().and_then(|number| u16::try_from(number).ok());
    let range = port(first).zip(port(last)).filter(|(first, last)| first <= last).map(|(first, last)| first..=last);
    range.ok_or_else(|| {
        (format!("{} is neither a port nor a range of ports", super::error::quote(text)), PORTS.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_tc() {
        for (text, bytes) in [
            ("0", 0),
            ("1500", 1500),
            ("1500b", 1500),
            ("100k", 102_400),
            ("100kb", 102_400),
            ("1.5K", 1536),
            ("512M", 536_870_912),
            ("512MiB", 536_870_912),
            ("2G", 2_147_483_648),
            ("8kbit", 1024),
            ("8mbit", 1_048_576),
            ("1Gbit", 134_217_728),
            (".5k", 512),
            ("99999999999999999999999g", u64::MAX),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in
            ["", "m", "-1", "+1", "1e3", "0x10", "1 k", " 1", "1t", "inf", "nan", "1.2.3", ".", "1kk", "ü", "1µ"]
        {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_are_those_of_tc() {
        for (text, rate) in [
            ("8", 1),
            ("8bit", 1),
            ("1bps", 1),
            ("2gbit", 250_000_000),
            ("2Gbit", 250_000_000),
            ("100mbit", 12_500_000),
            ("1mbps", 1_000_000),
            ("1.5kbit", 187),
            ("1kibit", 128),
            ("1mibps", 1_048_576),
            ("1tbit", 125_000_000_000),
            ("0", 0),
            (".5gbit", 62_500_000),
            ("18446744073709551615bps", u64::MAX),
        ] {
            assert_eq!(super::rate(text), Ok(rate), "{text}");
        }
        for text in ["", "bit", "-1", "1 mbit", "1m", "1b", "1ibit", "1xbit", "1kk", "1e9", "1/2", "µbit", "1.2.3bit"]
        {
            assert!(super::rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_have_a_unit() {
        let ms = Duration::from_millis;
        assert_eq!((duration("1s"), duration("250ms"), duration("1.5s")), (Ok(ms(1000)), Ok(ms(250)), Ok(ms(1500))));
        assert_eq!(duration("62500us"), Ok(Duration::from_micros(62_500)));
        for text in ["", "1", "s", "-1s", "1 s", "1m", "inf", "99999999999999999999999s"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn protocols_and_ports_are_read() {
        assert_eq!((protocol("TCP"), protocol("17"), protocol("255")), (Ok(6), Ok(17), Ok(255)));
        for text in ["", "256", "-1", "+6", "tpc", "6 "] {
            assert!(protocol(text).is_err(), "{text}");
        }
        assert_eq!((ports("53"), ports("1-1023"), ports("0-65535")), (Ok(53..=53), Ok(1..=1023), Ok(0..=65535)));
        for text in ["", "-", "1-", "-1", "2-1", "65536", "1-2-3", "a", "1 - 2", "+1"] {
            assert!(ports(text).is_err(), "{text}");
        }
    }
}

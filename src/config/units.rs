//! Quantities written with a unit, as `tc` reads them.

use super::table::Complaint;

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
}

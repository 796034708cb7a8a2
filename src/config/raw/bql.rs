//! `[port.bql]` and `tx_completion` as they are written.

use crate::bql::MAX_LIMIT;
use crate::config::TxCompletion;
use crate::config::error::{Log, quote};
use crate::config::table::{At, Complaint, Field, Table, closest};
use std::ops::RangeInclusive;
use toml::de::DeTable;

/// One `[port.bql]`
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::config) struct Bql {
    pub enabled: Field<bool>,
    pub limit_min: Field<u32>,
    pub limit_max: Field<u32>,
    pub hold_time_ms: Field<u16>,
    /// 0 for no detector.
    pub stall_thrs_ms: Field<u16>,
}

const LIMIT: RangeInclusive<u32> = 0..=MAX_LIMIT;
const HOLD: RangeInclusive<u16> = 0..=u16::MAX;
const STALL: RangeInclusive<u16> = 0..=128;

impl Bql {
    pub(super) fn read(table: &DeTable<'_>, log: &mut Log<'_>) -> Self {
        let keys = ["enabled", "limit_min", "limit_max", "hold_time_ms", "stall_thrs_ms"];
        let table = Table::open(table, "[port.bql]", &keys, &[], log);
        let stall_thrs_ms = table.integer("stall_thrs_ms", STALL, log);
        if let Field::Given(At { value: value @ 1..=3, offset }) = stall_thrs_ms {
            log.error(offset, format!("`stall_thrs_ms` is {value}"), "0 for none, or 4 to 128");
        }
        Self {
            enabled: table.boolean("enabled", log),
            limit_min: table.size("limit_min", LIMIT, log),
            limit_max: table.size("limit_max", LIMIT, log),
            hold_time_ms: table.integer("hold_time_ms", HOLD, log),
            stall_thrs_ms,
        }
    }
}

const COMPLETIONS: [(&str, Option<TxCompletion>); 5] = [
    ("auto", None),
    ("descriptor-status", Some(TxCompletion::DescriptorStatus)),
    ("mbuf-refcount", Some(TxCompletion::MbufRefcount)),
    ("paced", Some(TxCompletion::Paced)),
    ("synchronous", Some(TxCompletion::Synchronous)),
];

pub(super) const COMPLETION: &str = "\"auto\", \"descriptor-status\", \"mbuf-refcount\", \"paced\" or \"synchronous\"";

/// `tx_completion`; none for `auto`.
pub(super) fn completion(text: &str) -> Result<Option<TxCompletion>, Complaint> {
    if let Some((_, completion)) = COMPLETIONS.iter().find(|(name, _)| *name == text) {
        return Ok(*completion);
    }
    let near = closest(text, &COMPLETIONS.map(|(name, _)| name)).map(|near| format!("did you mean \"{near}\"?"));
    Err((format!("no way of completion is called {}", quote(text)), near.unwrap_or_else(|| COMPLETION.to_owned())))
}

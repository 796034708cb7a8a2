//! `[port.qdisc]` as it is written.

use crate::config::error::{Log, quote};
use crate::config::table::{Array, At, Complaint, Field, Table, closest, integer};
use crate::qdisc::{Band, Priomap};
use std::ops::RangeInclusive;
use toml::de::DeTable;

/// `kind`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) enum Kind {
    PfifoFast,
    Noqueue,
}

/// One `[port.qdisc]`
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::config) struct Qdisc {
    pub kind: Field<Kind>,
    pub limit: Field<u16>,
    pub bypass: Field<bool>,
    pub priomap: Field<Priomap>,
}

const KINDS: [&str; 2] = ["pfifo_fast", "noqueue"];
const KIND: &str = "\"pfifo_fast\" or \"noqueue\"";
const LIMIT: RangeInclusive<u16> = 1..=u16::MAX;
const PRIOMAP: &str = "16 numbers from 0 to 2: the bands of priorities 0 to 15";

impl Qdisc {
    pub(super) fn read(table: &DeTable<'_>, log: &mut Log<'_>) -> Self {
        let table = Table::open(table, "[port.qdisc]", &["kind", "limit", "bypass", "priomap"], &[], log);
        let kind = table.parsed("kind", KIND, log, kind);
        if kind.given().is_some_and(|kind| kind.value == Kind::Noqueue) {
            for (key, offset) in ["limit", "bypass", "priomap"].iter().filter_map(|key| Some((key, table.key(key)?))) {
                log.error(offset, format!("`{key}` means nothing to noqueue"), format!("leave out `{key}`"));
            }
        }
        let bands = table.array("priomap", PRIOMAP, log, |label, item, log| {
            let At { value, offset } = integer(label, item, 0..=2, log)?;
            Some(At { value: Band::ALL[usize::from(value)], offset })
        });
        Self {
            kind,
            limit: table.integer("limit", LIMIT, log),
            bypass: table.boolean("bypass", log),
            priomap: priomap(bands, log),
        }
    }
}

fn kind(text: &str) -> Result<Kind, Complaint> {
    match text {
        "pfifo_fast" => Ok(Kind::PfifoFast),
        "noqueue" => Ok(Kind::Noqueue),
        other => {
            let near = closest(other, &KINDS).map(|near| format!("did you mean \"{near}\"?"));
            Err((format!("no qdisc is called {}", quote(other)), near.unwrap_or_else(|| KIND.to_owned())))
        }
    }
}

/// As many bands as there are priorities.
fn priomap(bands: Field<Array<Band>>, log: &mut Log<'_>) -> Field<Priomap> {
    let At { value, offset } = match bands {
        Field::Given(at) => at,
        Field::Absent => return Field::Absent,
        Field::Bad => return Field::Bad,
    };
    let count = value.elements.len();
    let bands: Vec<Band> = value.elements.into_iter().map(|band| band.value).collect();
    match bands.try_into() {
        Ok(value) => Field::Given(At { value, offset }),
        Err(_) => {
            if value.complete {
                log.error(offset, format!("`priomap` has {count} bands"), PRIOMAP);
            }
            Field::Bad
        }
    }
}

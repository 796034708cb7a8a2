//! The ports: names and devices given once, addresses that go together, queues spread over the workers.

use super::connected::Connected;
use super::runtime::Workers;
use super::{qdisc, queues};
use crate::config::error::{Log, quote};
use crate::config::raw::{self, Raw};
use crate::config::table::{At, Field, closest};
use crate::config::{MTU, Port, RX_QUEUES, device};
use crate::units::PortId;
use std::collections::HashMap;

/// RFC 8200 section 5
const IPV6_MTU_MIN: u16 = 1280;
const DESCRIPTORS: u16 = 1024;

/// The ports by their names.
pub(super) struct Names<'t> {
    by_name: HashMap<&'t str, PortId>,
    /// By [`PortId`]; empty text where there is none.
    pub list: Vec<&'t str>,
    /// Every port has a name, so that a name that is not here is wrong.
    complete: bool,
}

impl Names<'_> {
    /// The port of a name; records an error if there is none.
    pub(super) fn find(&self, name: At<&str>, log: &mut Log<'_>) -> Option<PortId> {
        let port = self.by_name.get(name.value).copied();
        if port.is_none() && self.complete {
            const LISTED: usize = 8;
            let mut known: Vec<_> = self.by_name.keys().copied().collect();
            known.sort_unstable();
            let remedy = match closest(name.value, &known) {
                Some(near) => format!("did you mean `{near}`?"),
                None if known.is_empty() => "add a [[port]]".to_owned(),
                None if known.len() > LISTED => "the name of a [[port]]".to_owned(),
                None => format!("one of: {}", known.join(", ")),
            };
            log.error(name.offset, format!("no port is called {}", quote(name.value)), remedy);
        }
        port
    }

    /// The port of a name, if there is one.
    pub(super) fn by_name(&self, name: &str) -> Option<PortId> {
        self.by_name.get(name).copied()
    }

    /// A port's name.
    pub(super) fn of(&self, port: PortId) -> &str {
        self.list.get(port.index()).copied().unwrap_or_default()
    }
}

/// The ports, their names, and what they are connected to.
pub(super) fn validate<'t>(raw: &Raw<'t>, workers: &Workers, log: &mut Log<'_>) -> (Vec<Port>, Names<'t>, Connected) {
    if raw.ports.is_empty() && raw.ports_complete {
        log.error(0, "there is no port", "add a [[port]] with `name` and `device`");
    }
    let names = names(raw, log);
    devices(raw, log);
    let mut connected = Connected::new();
    connected.complete = raw.ports_complete;
    let queue_cores = queues::assign(raw, workers, log);
    let mut ports = Vec::with_capacity(raw.ports.len());
    for ((id, port), queue_cores) in (0..).map(PortId).zip(&raw.ports).zip(queue_cores) {
        let addresses = match port.addresses.as_ref() {
            Field::Given(addresses) => {
                connected.complete &= addresses.value.complete;
                addresses.value.elements.as_slice()
            }
            Field::Absent => &[],
            Field::Bad => {
                connected.complete = false;
                &[]
            }
        };
        for &address in addresses {
            connected.add(id, names.of(id), address, &names.list, log);
        }
        check_mtu(port, log);
        ports.push(Port {
            name: port.name.or("").to_owned(),
            device: port.device.or("").to_owned(),
            mac: port.mac.given().map(|mac| mac.value),
            addresses: addresses.iter().map(|address| address.value).collect(),
            mtu: port.mtu.or(MTU),
            rx_queues: port.rx_queues.or(RX_QUEUES),
            tx_queues: qdisc::transmit_queues(port, workers, log),
            rx_descriptors: port.rx_descriptors.or(DESCRIPTORS),
            tx_descriptors: port.tx_descriptors.or(DESCRIPTORS),
            promiscuous: port.promiscuous.or(false),
            gro: port.gro.or(false),
            queue_cores,
            qdisc: qdisc::qdisc(port),
            bql: qdisc::byte_limit(port, log),
            tx_completion: port.tx_completion.or(None),
        });
    }
    (ports, names, connected)
}

fn names<'t>(raw: &Raw<'t>, log: &mut Log<'_>) -> Names<'t> {
    let mut names = Names { by_name: HashMap::new(), list: Vec::new(), complete: raw.ports_complete };
    let mut first = HashMap::new();
    for (id, port) in (0..).map(PortId).zip(&raw.ports) {
        let Field::Given(name) = port.name else {
            if port.name == Field::Absent {
                log.error(port.offset, "a port has no `name`", "name = \"NAME\"");
            }
            names.complete = false;
            names.list.push("");
            continue;
        };
        names.list.push(name.value);
        if let Some(&offset) = first.get(name.value) {
            let line = log.line(offset);
            let what = format!("two ports are called {}, the first on line {line}", quote(name.value));
            log.error(name.offset, what, "a name of its own for each port");
            continue;
        }
        first.insert(name.value, name.offset);
        names.by_name.insert(name.value, id);
    }
    names
}

fn devices(raw: &Raw<'_>, log: &mut Log<'_>) {
    let mut claims: HashMap<String, Vec<(device::Claim<'_>, usize)>> = HashMap::new();
    for port in &raw.ports {
        let Field::Given(At { value: device, offset }) = port.device else {
            if port.device == Field::Absent {
                let remedy = "device = \"…\": a PCI address, or a vdev such as net_af_packet0,iface=eth1";
                log.error(port.offset, "a port has no `device`", remedy);
            }
            continue;
        };
        let claim = device::claim(device);
        let of_device = claims.entry(claim.name.clone()).or_default();
        if let Some((_, first)) = of_device.iter().find(|(earlier, _)| earlier.collides(&claim)) {
            let line = log.line(*first);
            let what = format!("device {} is used twice, first on line {line}", quote(&claim.name));
            log.error(offset, what, "a device of its own for each port");
        } else {
            of_device.push((claim, offset));
        }
    }
}

fn check_mtu(port: &raw::Port<'_>, log: &mut Log<'_>) {
    let Field::Given(At { value: mtu, offset }) = port.mtu else { return };
    let Field::Given(addresses) = port.addresses.as_ref() else { return };
    let ipv6 = addresses.value.elements.iter().any(|address| address.value.addr().is_ipv6());
    if ipv6 && mtu < IPV6_MTU_MIN {
        let what = format!("`mtu` is {mtu}, too small for the port's IPv6 addresses");
        log.error(offset, what, format!("at least {IPV6_MTU_MIN}, or no IPv6 address"));
    }
}

//! The configuration in force as JSON, with the keys and the nesting of the TOML file.
//!
//! Invariant: written out as TOML it is a configuration file again, and means the same.

use super::{Config, Memory, Port, Route, RouteAction};
use serde_json::{Value, json};

impl Config {
    /// The configuration with every default filled in, for `show config`.
    ///
    /// `memory` is `"auto"` or a number of bytes, `mode` an octal string; keys without a value (`mac`, `group`)
    /// are left out. Keys whose feature does not exist yet have the only value they may have.
    pub fn to_json(&self) -> Value {
        let name = |port: super::PortId| self.ports.get(port.index()).map_or("", |port| port.name.as_str());
        let runtime = &self.runtime;
        let workers: Vec<u16> = runtime.worker_cores.iter().map(|core| core.0).collect();
        let memory = match runtime.memory {
            Memory::Auto => json!("auto"),
            Memory::Bytes(bytes) => json!(bytes),
        };
        let mut control = json!({
            "socket": self.control.socket.to_string_lossy(),
            "mode": format!("{:04o}", self.control.mode),
        });
        if let Some(group) = &self.control.group {
            control["group"] = json!(group);
        }
        let route = |route: &Route| {
            let prefix = route.prefix.to_string();
            match route.action {
                RouteAction::Via { address, port } => json!({ "prefix": prefix, "via": address, "port": name(port) }),
                RouteAction::Blackhole => json!({ "prefix": prefix, "kind": "blackhole" }),
            }
        };
        let neighbors = self
            .neighbors
            .iter()
            .map(|neighbor| json!({ "address": neighbor.address, "mac": neighbor.mac, "port": name(neighbor.port) }));
        json!({
            "runtime": {
                "main_core": runtime.main_core.0,
                "worker_cores": workers,
                "memory": memory,
                "eal_args": runtime.eal_args,
                "file_prefix": runtime.file_prefix,
            },
            "control": control,
            "port": self.ports.iter().map(port_json).collect::<Vec<_>>(),
            "route": self.routes.iter().map(route).collect::<Vec<_>>(),
            "neighbor": neighbors.collect::<Vec<_>>(),
        })
    }
}

fn port_json(port: &Port) -> Value {
    let addresses: Vec<String> = port.addresses.iter().map(ToString::to_string).collect();
    let queue_map: Vec<_> = (0_u16..).zip(&port.queue_cores).map(|(queue, core)| [queue, core.0]).collect();
    let mut json = json!({
        "name": port.name,
        "device": port.device,
        "addresses": addresses,
        "mtu": port.mtu,
        "rx_queues": port.rx_queues,
        "tx_queues": port.tx_queues,
        "rx_descriptors": port.rx_descriptors,
        "tx_descriptors": port.tx_descriptors,
        "promiscuous": port.promiscuous,
        "gro": false,
        "queue_map": queue_map,
        "qdisc": { "kind": "noqueue" },
        "bql": { "enabled": false },
    });
    if let Some(mac) = port.mac {
        json["mac"] = json!(mac);
    }
    json
}

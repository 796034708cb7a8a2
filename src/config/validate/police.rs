//! Policers: names given once, settings that go together, ports that there are.

use super::ports::Names;
use crate::classify::{Direction, MAX_RULES, Rule};
use crate::config::Policer;
use crate::config::error::{Log, quote};
use crate::config::raw::{Match, Police, Raw};
use crate::config::table::Field;
use crate::datapath::policing::MAX_POLICERS;
use crate::police::Settings;
use std::collections::HashMap;

/// The policers, in order.
pub(super) fn validate(raw: &Raw<'_>, names: &Names<'_>, log: &mut Log<'_>) -> Vec<Policer> {
    if let Some(police) = raw.policers.get(MAX_POLICERS) {
        let what = format!("there are {} policers", raw.policers.len());
        log.error(police.offset, what, format!("at most {MAX_POLICERS}"));
    }
    let mut first = HashMap::new();
    let mut policers = Vec::with_capacity(raw.policers.len());
    let mut rules = 0;
    for police in &raw.policers {
        match police.name.given() {
            Some(name) => {
                if let Some(earlier) = first.insert(name.value, name.offset) {
                    let line = log.line(earlier);
                    let what = format!("two policers are called {}, the first on line {line}", quote(name.value));
                    log.error(name.offset, what, "a name of its own for each policer");
                }
            }
            None if police.name == Field::Absent => {
                log.error(police.offset, "a policer has no `name`", "name = \"NAME\"");
            }
            None => {}
        }
        if rules <= MAX_RULES && rules + police.matches.len() > MAX_RULES {
            let what = "there are too many [[police.match]]";
            log.error(police.offset, what, format!("at most {MAX_RULES} of all policers together"));
        }
        rules += police.matches.len();
        policers.push(Policer {
            name: police.name.or("").to_owned(),
            settings: settings(police, log),
            matches: police.matches.iter().map(|rule| self::rule(rule, names, log)).collect(),
        });
    }
    policers
}

fn settings(police: &Police<'_>, log: &mut Log<'_>) -> Settings {
    let usual = Settings::default();
    let settings = Settings {
        rate: police.rate.given().map(|rate| rate.value),
        burst: police.burst.given().map(|burst| burst.value),
        mtu: police.mtu.given().map(|mtu| mtu.value),
        peakrate: police.peakrate.given().map(|rate| rate.value),
        avrate: police.avrate.given().map(|rate| rate.value),
        pkts_rate: police.pkts_rate.given().map(|rate| rate.value),
        pkts_burst: police.pkts_burst.given().map(|burst| burst.value),
        overhead: police.overhead.or(usual.overhead),
        mpu: police.mpu.or(usual.mpu),
        link_layer: police.link_layer.or(usual.link_layer),
        estimator: police.estimator.or(usual.estimator),
        arithmetic: police.arithmetic.or(usual.arithmetic),
        sharing: police.sharing.or(usual.sharing),
        exceed: police.exceed.or(usual.exceed),
        conform: police.conform.or(usual.conform),
    };
    // What has been complained of is not known.
    if police.complete
        && let Err(faults) = settings.check()
    {
        for fault in faults {
            let key = if fault.key() == "link_layer" { "linklayer" } else { fault.key() };
            let text = fault.to_string();
            let (what, remedy) = text.rsplit_once(": ").unwrap_or((&text, "values that go together"));
            log.error(police.table.key(key).unwrap_or(police.offset), what, remedy);
        }
    }
    settings
}

fn rule(rule: &Match<'_>, names: &Names<'_>, log: &mut Log<'_>) -> Rule {
    Rule {
        port: rule.port.given().and_then(|port| names.find(port, log)),
        direction: rule.direction.or(Direction::Ingress),
        source: rule.source.given().map(|prefix| prefix.value),
        destination: rule.destination.given().map(|prefix| prefix.value),
        dscp: rule.dscp.given().map(|dscp| dscp.value as u8),
        protocol: rule.protocol.given().map(|protocol| protocol.value),
        source_ports: rule.source_ports.as_ref().given().map(|ports| ports.value.clone()),
        destination_ports: rule.destination_ports.as_ref().given().map(|ports| ports.value.clone()),
    }
}

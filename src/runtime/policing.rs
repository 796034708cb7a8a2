//! Policers as control has them: made, shown, changed, put in the packets' way.

use crate::classify::{MAX_RULES, Rule};
use crate::config;
use crate::control::backend::Refusal;
use crate::control::protocol::PolicerSpec;
use crate::control::report::{CorePoliced, MatchSpec, PolicerReport};
use crate::datapath::policing::{MAX_POLICERS, Policing};
use crate::police::{Policer, Settings};
use crate::units::{CoreId, PortId};
use dpdk::clock::nanoseconds;
use std::sync::Arc;
use std::time::Duration;

/// How often policers are looked after, if there are any.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// All policers, in the order in which packets meet them.
#[derive(Debug)]
pub(super) struct Policers {
    all: Vec<Entry>,
    workers: usize,
}

#[derive(Clone, Debug)]
struct Entry {
    name: String,
    policer: Arc<Policer>,
    rules: Vec<Rule>,
}

impl Entry {
    fn new(name: &str, settings: &Settings, rules: Vec<Rule>, workers: usize) -> Result<Self, Refusal> {
        let policer = Policer::new(settings.clone(), workers, nanoseconds()).map_err(|faults| refusal(name, faults))?;
        warn(name, settings);
        Ok(Self { name: name.to_owned(), policer: Arc::new(policer), rules })
    }

    fn change(&self, settings: &Settings) -> Result<(), Refusal> {
        if *self.policer.settings() == *settings {
            return Ok(());
        }
        warn(&self.name, settings);
        self.policer.change(settings.clone(), nanoseconds()).map_err(|faults| refusal(&self.name, faults))
    }
}

impl Policers {
    /// Those of a configuration, for so many workers.
    ///
    /// # Errors
    ///
    /// If one cannot be; the configuration has been checked for that.
    pub fn new(policers: &[config::Policer], workers: usize) -> Result<Self, Refusal> {
        let entry =
            |policer: &config::Policer| Entry::new(&policer.name, &policer.settings, policer.matches.clone(), workers);
        Ok(Self { all: policers.iter().map(entry).collect::<Result<_, _>>()?, workers })
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// What workers are to have of them, for so many ports.
    pub fn policing(&self, ports: usize) -> Option<Policing> {
        let policers = self.all.iter().map(|entry| (entry.policer.clone(), entry.rules.as_slice()));
        Policing::new(policers, ports, nanoseconds)
    }

    /// As a configuration has them.
    pub fn config(&self) -> Vec<config::Policer> {
        let policer = |entry: &Entry| config::Policer {
            name: entry.name.clone(),
            settings: (*entry.policer.settings()).clone(),
            matches: entry.rules.clone(),
        };
        self.all.iter().map(policer).collect()
    }

    /// Has them look at the load if it is time to. To be called every [`TICK`].
    pub fn tick(&self) {
        let now = nanoseconds();
        self.all.iter().for_each(|entry| entry.policer.tick(now));
    }

    /// What is shown of them.
    pub fn reports(&self, cores: &[CoreId], port_name: impl Fn(PortId) -> String) -> Vec<PolicerReport> {
        let report = |entry: &Entry| {
            let of_core = |(core, counted): (&CoreId, crate::police::CoreStatistics)| CorePoliced {
                core: core.0,
                packets: counted.packets,
                bytes: counted.bytes,
                conformed: counted.conformed,
                overlimits: counted.overlimits,
                dropped: counted.dropped,
            };
            let per_core = cores.iter().zip(entry.policer.statistics()).map(of_core).collect();
            let rules = entry.rules.iter().map(|rule| MatchSpec::of(rule, &port_name)).collect();
            PolicerReport::new(entry.name.clone(), &entry.policer.settings(), rules, per_core)
        };
        self.all.iter().map(report).collect()
    }

    /// Adds one behind the others.
    pub fn add(&mut self, spec: &PolicerSpec, rules: Vec<Rule>) -> Result<(), Refusal> {
        let name = &spec.name;
        if self.find(name).is_some() {
            return Err(Refusal::new(format!("policer {name} exists: use change to change it")));
        }
        if self.all.len() >= MAX_POLICERS {
            return Err(Refusal::new(format!("policer {name}: there are {MAX_POLICERS} already: remove one first")));
        }
        self.check_rules(name, rules.len())?;
        let entry = Entry::new(name, &spec.settings(&Settings::default()), rules, self.workers)?;
        self.all.push(entry);
        Ok(())
    }

    /// Changes what is given of one; `rules` is what its `match` becomes, if that is given. Returns whether packets now meet it in
    /// other places.
    pub fn change(&mut self, spec: &PolicerSpec, rules: Option<Vec<Rule>>) -> Result<bool, Refusal> {
        let name = &spec.name;
        let position = self.find(name).ok_or_else(|| none(name))?;
        let others = self.all[position].rules.len();
        if let Some(rules) = &rules {
            self.check_rules(name, rules.len().saturating_sub(others))?;
        }
        let entry = &mut self.all[position];
        entry.change(&spec.settings(&entry.policer.settings()))?;
        let moved = rules.as_ref().is_some_and(|rules| *rules != entry.rules);
        if let Some(rules) = rules {
            entry.rules = rules;
        }
        Ok(moved)
    }

    /// Removes one.
    pub fn remove(&mut self, name: &str) -> Result<(), Refusal> {
        let position = self.find(name).ok_or_else(|| none(name))?;
        self.all.remove(position);
        Ok(())
    }

    /// Brings them in line with a file that has been read again: what differs between `old` and `new`. Those of the file come
    /// first, in its order. All of it, or nothing.
    pub fn follow(&mut self, old: &[config::Policer], new: &[config::Policer]) -> Result<(), Refusal> {
        let before = |name: &str| old.iter().find(|policer| policer.name == name);
        let mut rest = self.all.clone();
        let mut all = Vec::with_capacity(new.len());
        let mut changes = Vec::new();
        for policer in new {
            let position = rest.iter().position(|entry| entry.name == policer.name);
            let mut entry = match position.map(|position| rest.remove(position)) {
                Some(entry) => entry,
                // It has been removed by hand, and the file says what it said.
                None if before(&policer.name) == Some(policer) => continue,
                None => Entry::new(&policer.name, &policer.settings, policer.matches.clone(), self.workers)?,
            };
            if before(&policer.name).is_none_or(|before| before.settings != policer.settings) {
                changes.push((entry.clone(), &policer.settings));
            }
            if before(&policer.name).is_none_or(|before| before.matches != policer.matches) {
                entry.rules.clone_from(&policer.matches);
            }
            all.push(entry);
        }
        // What is not in the file any more goes, unless it has been changed by hand since.
        all.extend(rest.into_iter().filter(|entry| {
            before(&entry.name)
                .is_none_or(|before| (&before.settings, &before.matches) != (&*entry.policer.settings(), &entry.rules))
        }));
        let rules: usize = all.iter().map(|entry| entry.rules.len()).sum();
        if all.len() > MAX_POLICERS || rules > MAX_RULES {
            let sentence = format!(
                "with those that were added by hand there are more than {MAX_POLICERS} policers or {MAX_RULES} rules: remove some"
            );
            return Err(Refusal::new(sentence));
        }
        for (entry, settings) in changes {
            entry.change(settings)?;
        }
        self.all = all;
        Ok(())
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.all.iter().position(|entry| entry.name == name)
    }

    fn check_rules(&self, name: &str, more: usize) -> Result<(), Refusal> {
        let known: usize = self.all.iter().map(|entry| entry.rules.len()).sum();
        if known + more > MAX_RULES {
            let sentence =
                format!("policer {name}: more than {MAX_RULES} rules of all policers together: remove some first");
            return Err(Refusal::new(sentence));
        }
        Ok(())
    }
}

fn none(name: &str) -> Refusal {
    Refusal::new(format!("there is no policer {name}: show police lists those that exist"))
}

fn refusal(name: &str, faults: Vec<crate::police::Fault>) -> Refusal {
    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
    Refusal::new(format!("policer {name}: {}", faults.join("; ")))
}

fn warn(name: &str, settings: &Settings) {
    for warning in settings.check().unwrap_or_default() {
        log::warn!("policer {name}: {warning}");
    }
}

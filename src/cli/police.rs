//! The words of `thruway police`: those of `tc action police`, and what packets it is for.

use crate::cli::args::PoliceCommand;
use crate::cli::failure::Failure;
use crate::cli::words::{Once, Words, usage};
use crate::control::protocol::{
    ActionSpec, ArithmeticSpec, DirectionSpec, LinkLayerSpec, MatchSpec, PoliceRequest, PolicerSelector, PolicerSpec,
    SharingSpec,
};
use ipnet::IpNet;
use std::net::IpAddr;

const RATE: &str = "a rate such as 2gbit, 100mbit or 1mbps (bytes per second)";
const SIZE: &str = "bytes, such as 3000 or 100k";
const COUNT: &str = "a number of packets";
const BYTES: &str = "a number of bytes from 0 to 65535";
const TIME: &str = "an interval and a time constant such as 1s 8s";
const PORTS: &str = "a port or a range such as 1024-2047";
const ACTION: &str = "EXCEED or EXCEED/CONFORM, each of them drop, pass, dscp=0 to dscp=63, or band=0 to band=2";

/// Reads `NAME` and what is to be set of the policer.
///
/// # Errors
/// [`Failure::Usage`] with the first word that is wrong.
pub(super) fn police(command: &PoliceCommand) -> Result<PoliceRequest, Failure> {
    let (PoliceCommand::Add { words } | PoliceCommand::Change { words } | PoliceCommand::Del { words }) = command;
    let mut words = Words::new(words);
    let name = words.next().ok_or_else(|| usage("the policer's name is missing: give NAME".to_owned()))?.to_owned();
    if let PoliceCommand::Del { .. } = command {
        return match words.next() {
            None => Ok(PoliceRequest::Del(PolicerSelector { name })),
            Some(word) => Err(usage(format!("`{word}` is too much: to remove policer {name}, its name is enough"))),
        };
    }
    let spec = spec(name, &mut words)?;
    Ok(match command {
        PoliceCommand::Change { .. } => PoliceRequest::Change(spec),
        PoliceCommand::Add { .. } | PoliceCommand::Del { .. } => PoliceRequest::Add(spec),
    })
}

fn spec(name: String, words: &mut Words<'_>) -> Result<PolicerSpec, Failure> {
    let (mut rate, mut burst, mut mtu) = (Once::new("rate"), Once::new("burst"), Once::new("mtu"));
    let (mut peakrate, mut avrate) = (Once::new("peakrate"), Once::new("avrate"));
    let (mut pkts_rate, mut pkts_burst) = (Once::new("pkts_rate"), Once::new("pkts_burst"));
    let (mut overhead, mut mpu, mut linklayer) = (Once::new("overhead"), Once::new("mpu"), Once::new("linklayer"));
    let (mut estimator, mut arithmetic) = (Once::new("estimator"), Once::new("arithmetic"));
    let (mut sharing, mut exceed) = (Once::new("sharing"), Once::new("conform-exceed"));
    let (mut conform, mut matches): (_, Option<Vec<MatchSpec>>) = (None, None);
    while let Some(word) = words.next() {
        match word {
            "rate" => rate.set(words.value(word, RATE)?)?,
            "burst" | "buffer" | "maxburst" => burst.set(words.value(word, SIZE)?)?,
            "mtu" => mtu.set(words.value(word, SIZE)?)?,
            "peakrate" => peakrate.set(words.value(word, RATE)?)?,
            "avrate" => avrate.set(words.value(word, RATE)?)?,
            "pkts_rate" => pkts_rate.set(words.value(word, COUNT)?)?,
            "pkts_burst" => pkts_burst.set(words.value(word, COUNT)?)?,
            "overhead" => overhead.set(words.value(word, BYTES)?)?,
            "mpu" => mpu.set(words.value(word, BYTES)?)?,
            "linklayer" => {
                let layers =
                    [("ethernet", LinkLayerSpec::Ethernet), ("atm", LinkLayerSpec::Atm), ("adsl", LinkLayerSpec::Atm)];
                linklayer.set(one_of(words, word, &layers)?)?;
            }
            "estimator" => estimator.set([words.value(word, TIME)?, words.value(word, TIME)?])?,
            "arithmetic" => {
                arithmetic.set(one_of(
                    words,
                    word,
                    &[("exact", ArithmeticSpec::Exact), ("kernel", ArithmeticSpec::Kernel)],
                )?)?;
            }
            "sharing" => {
                let ways = [
                    ("credit", SharingSpec::Credit),
                    ("exact", SharingSpec::Exact),
                    ("spinlock", SharingSpec::Spinlock),
                ];
                sharing.set(one_of(words, word, &ways)?)?;
            }
            "conform-exceed" => {
                let actions = words.required(word, ACTION)?;
                let (first, second) = match actions.split_once('/') {
                    Some((first, second)) => (first, Some(second)),
                    None => (actions, None),
                };
                exceed.set(action(first)?)?;
                conform = second.map(action).transpose()?;
            }
            "match" => matches.get_or_insert_default().push(choice(words)?),
            "index" | "action" | "police" => {
                return Err(usage(format!("`{word}` is not needed: policers go by their names")));
            }
            word => {
                return Err(usage(format!(
                    "`{word}` is not understood: expected rate, burst, mtu, peakrate, avrate, estimator, pkts_rate, pkts_burst, \
                     overhead, mpu, linklayer, arithmetic, sharing, conform-exceed or match"
                )));
            }
        }
    }
    Ok(PolicerSpec {
        name,
        rate: rate.value,
        burst: burst.value,
        mtu: mtu.value,
        peakrate: peakrate.value,
        avrate: avrate.value,
        pkts_rate: pkts_rate.value,
        pkts_burst: pkts_burst.value,
        overhead: overhead.value,
        mpu: mpu.value,
        linklayer: linklayer.value,
        estimator: estimator.value,
        arithmetic: arithmetic.value,
        sharing: sharing.value,
        exceed: exceed.value,
        conform,
        matches,
    })
}

/// What follows `match`: all that packets are to have.
fn choice(words: &mut Words<'_>) -> Result<MatchSpec, Failure> {
    let (mut port, mut direction) = (Once::new("dev"), Once::new("a direction"));
    let (mut src, mut dst) = (Once::new("src"), Once::new("dst"));
    let (mut dscp, mut protocol) = (Once::new("dscp"), Once::new("protocol"));
    let (mut sport, mut dport) = (Once::new("sport"), Once::new("dport"));
    let keys = ["dev", "ingress", "egress", "src", "dst", "dscp", "protocol", "sport", "dport"];
    while let Some(word) = words.peek().filter(|word| keys.contains(word)) {
        words.next();
        match word {
            "dev" => port.set(words.value::<String>(word, "the name of a port")?)?,
            "ingress" => direction.set(DirectionSpec::Ingress)?,
            "egress" => direction.set(DirectionSpec::Egress)?,
            "src" => src.set(prefix(words, word)?)?,
            "dst" => dst.set(prefix(words, word)?)?,
            "dscp" => dscp.set(words.value(word, "a code point from 0 to 63")?)?,
            "protocol" => {
                protocol.set(words.value(word, "a name such as tcp, udp or icmp, or a number from 0 to 255")?)?
            }
            "sport" => sport.set(words.value(word, PORTS)?)?,
            _ => dport.set(words.value(word, PORTS)?)?,
        }
    }
    let direction = direction.value.unwrap_or_default();
    Ok(MatchSpec {
        port: port.value,
        direction,
        src: src.value,
        dst: dst.value,
        dscp: dscp.value,
        protocol: protocol.value,
        sport: sport.value,
        dport: dport.value,
    })
}

/// A prefix, or an address for itself alone.
fn prefix(words: &mut Words<'_>, keyword: &str) -> Result<IpNet, Failure> {
    let wanted = "a prefix such as 198.51.100.0/24, or an address";
    let word = words.required(keyword, wanted)?;
    let address = word.parse::<IpAddr>().map(IpNet::from);
    address.or_else(|_| word.parse()).map_err(|_| usage(format!("`{word}` after `{keyword}` is wrong: give {wanted}")))
}

fn action(word: &str) -> Result<ActionSpec, Failure> {
    let number = |text: &str| text.parse().ok();
    let marking = match word.split_once('=') {
        Some(("dscp", text)) => number(text).map(ActionSpec::Dscp),
        Some(("band", text)) => number(text).map(ActionSpec::Band),
        _ => return ActionSpec::from_word(word).map_err(usage),
    };
    marking.ok_or_else(|| usage(format!("`{word}` is not understood: expected {ACTION}")))
}

fn one_of<T: Copy>(words: &mut Words<'_>, keyword: &str, choices: &[(&str, T)]) -> Result<T, Failure> {
    let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
    let wanted = names.join(" or ");
    let word = words.required(keyword, &wanted)?;
    let found = choices.iter().find(|(name, _)| *name == word).map(|(_, value)| *value);
    found.ok_or_else(|| usage(format!("`{word}` after `{keyword}` is wrong: give {wanted}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::protocol::{Ports, Protocol, Rate, Size, Time};
    use proptest::prelude::*;
    use std::time::Duration;

    fn split(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn add(text: &str) -> Result<PoliceRequest, String> {
        police(&PoliceCommand::Add { words: split(text) }).map_err(|failure| match failure {
            Failure::Usage(sentence) => sentence,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn policers_are_read_as_tc_reads_them() {
        let spec = PolicerSpec { name: "a".into(), ..PolicerSpec::default() };
        let rule = |rule: MatchSpec| Some(vec![rule]);
        for (words, expected) in [
            ("a", spec.clone()),
            (
                "a rate 2gbit burst 100k mtu 9k conform-exceed pass/drop",
                PolicerSpec {
                    rate: Some(Rate(250_000_000)),
                    burst: Some(Size(102_400)),
                    mtu: Some(Size(9216)),
                    exceed: Some(ActionSpec::Pass),
                    conform: Some(ActionSpec::Drop),
                    ..spec.clone()
                },
            ),
            (
                "a pkts_rate 2000 pkts_burst 400 conform-exceed dscp=8",
                PolicerSpec {
                    pkts_rate: Some(2000),
                    pkts_burst: Some(400),
                    exceed: Some(ActionSpec::Dscp(8)),
                    ..spec.clone()
                },
            ),
            (
                "a peakrate 1mbps avrate 8 estimator 1s 8s overhead 4 mpu 64 linklayer adsl sharing exact arithmetic kernel",
                PolicerSpec {
                    peakrate: Some(Rate(1_000_000)),
                    avrate: Some(Rate(1)),
                    estimator: Some([Time(Duration::from_secs(1)), Time(Duration::from_secs(8))]),
                    overhead: Some(4),
                    mpu: Some(64),
                    linklayer: Some(LinkLayerSpec::Atm),
                    sharing: Some(SharingSpec::Exact),
                    arithmetic: Some(ArithmeticSpec::Kernel),
                    ..spec.clone()
                },
            ),
            ("a match", PolicerSpec { matches: rule(MatchSpec::default()), ..spec.clone() }),
            (
                "a match dev p0 egress src 10.0.0.1 dst 10.0.0.0/8 dscp 46 protocol udp sport 1-9 dport 53",
                PolicerSpec {
                    matches: rule(MatchSpec {
                        port: Some("p0".into()),
                        direction: DirectionSpec::Egress,
                        src: Some("10.0.0.1/32".parse().unwrap()),
                        dst: Some("10.0.0.0/8".parse().unwrap()),
                        dscp: Some(46),
                        protocol: Some(Protocol(17)),
                        sport: Some(Ports(1..=9)),
                        dport: Some(Ports(53..=53)),
                    }),
                    ..spec.clone()
                },
            ),
            (
                "a match dev p0 match dev p1 rate 8bit",
                PolicerSpec {
                    rate: Some(Rate(1)),
                    matches: Some(
                        ["p0", "p1"].map(|port| MatchSpec { port: Some(port.into()), ..MatchSpec::default() }).into(),
                    ),
                    ..spec.clone()
                },
            ),
        ] {
            assert_eq!(add(words), Ok(PoliceRequest::Add(expected)), "{words}");
        }
        let del = police(&PoliceCommand::Del { words: split("a") }).unwrap();
        assert_eq!(del, PoliceRequest::Del(PolicerSelector { name: "a".into() }));
        let change = police(&PoliceCommand::Change { words: split("a") }).unwrap();
        assert_eq!(change, PoliceRequest::Change(spec));
    }

    #[test]
    fn wrong_policers_are_refused_with_the_word() {
        for (words, part) in [
            ("", "name is missing"),
            ("a rate", "`rate` ends"),
            ("a rate fast", "`fast` after `rate`"),
            ("a burst 5x", "`5x` after `burst`"),
            ("a rate 1 rate 2", "rate is given twice"),
            ("a conform-exceed dscp=x", "`dscp=x`"),
            ("a conform-exceed dropp", "dropp is not an action"),
            ("a conform-exceed reclassify", "write pass or drop"),
            ("a linklayer token", "give ethernet or atm"),
            ("a estimator 1s", "`estimator` ends"),
            ("a match dev", "`dev` ends"),
            ("a match src 10.0.0.0/33", "`10.0.0.0/33` after `src`"),
            ("a match ingress egress", "a direction is given twice"),
            ("a match sport 9-1", "`9-1` after `sport`"),
            ("a dev p0", "`dev` is not understood"),
            ("a index 1", "go by their names"),
        ] {
            let sentence = add(words).unwrap_err();
            assert!(sentence.contains(part), "{words}: {sentence}");
        }
        let del = police(&PoliceCommand::Del { words: split("a rate 1") });
        assert!(matches!(del, Err(Failure::Usage(sentence)) if sentence.contains("`rate` is too much")));
    }

    proptest! {
        #[test]
        fn no_words_are_a_panic(
            words in proptest::collection::vec("rate|burst|match|src|dport|conform-exceed|estimator|1-2|1s|8|/|dscp=|.{0,6}", 0..8)
        ) {
            let _ = police(&PoliceCommand::Add { words: words.clone() });
            let _ = police(&PoliceCommand::Del { words });
        }
    }
}

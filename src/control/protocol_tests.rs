//! Requests as text and back, and what they refuse.

use super::*;
use proptest::prelude::*;
use std::net::{Ipv4Addr, Ipv6Addr};

fn parse(text: &str) -> Result<Request, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

fn prefix() -> impl Strategy<Value = IpNet> {
    prop_oneof![
        (any::<u32>(), 0u8..=32)
            .prop_map(|(bits, length)| IpNet::new(IpAddr::V4(Ipv4Addr::from(bits)), length).unwrap().trunc()),
        (any::<u128>(), 0u8..=128)
            .prop_map(|(bits, length)| IpNet::new(IpAddr::V6(Ipv6Addr::from(bits)), length).unwrap().trunc()),
    ]
}

fn request() -> impl Strategy<Value = Request> {
    let address = || prefix().prop_map(|prefix| prefix.addr());
    let mac = || any::<[u8; 6]>().prop_map(MacAddr);
    let port = || "[ -~é\"\\\\\n]{1,12}";
    let route = || {
        (prefix(), proptest::option::of(address()), proptest::option::of(port()), any::<bool>())
            .prop_map(|(prefix, via, port, blackhole)| RouteSpec { prefix, via, port, blackhole })
    };
    let neighbor = (address(), mac(), port()).prop_map(|(address, mac, port)| NeighborSpec { address, mac, port });
    prop_oneof![
        proptest::sample::select(&What::ALL[..]).prop_map(Request::Show),
        route().prop_map(|route| Request::Route(RouteRequest::Add(route))),
        route().prop_map(|route| Request::Route(RouteRequest::Replace(route))),
        address().prop_map(|address| Request::Route(RouteRequest::Get(address))),
        (prefix(), proptest::option::of(address())).prop_map(|(prefix, via)| Request::Route(RouteRequest::Del(
            RouteSelector { prefix, via, port: None, kind: via.is_none().then_some(RouteKind::Blackhole) }
        ))),
        neighbor.prop_map(|neighbor| Request::Neighbor(NeighborRequest::Add(neighbor))),
        (address(), proptest::option::of(mac()), port()).prop_map(|(address, mac, port)| Request::Neighbor(
            NeighborRequest::Del(NeighborSelector { address, mac, port })
        )),
    ]
}

proptest! {
    #[test]
    fn a_request_is_one_line_and_reads_back(request in request()) {
        let text = serde_json::to_string(&request).unwrap();
        prop_assert!(!text.contains('\n'));
        prop_assert_eq!(parse(&text).unwrap(), request);
    }

    #[test]
    fn no_text_is_a_panic(text in ".{0,80}") {
        let _ = parse(&text).map(|request| request.check());
    }
}

#[test]
fn the_documented_requests_are_read() {
    assert_eq!(parse(r#"{"show":"ports"}"#), Ok(Request::Show(What::Ports)));
    let Ok(Request::Route(RouteRequest::Add(route))) =
        parse(r#"{"route":{"add":{"prefix":"198.51.100.0/24","via":"192.0.2.2","port":"p0"}}}"#)
    else {
        panic!("not a route")
    };
    assert_eq!(route.port.as_deref(), Some("p0"));
    assert!(parse(r#"{"route":{"get":"198.51.100.7"}}"#).is_ok());
    assert!(parse(r#"{"neighbor":{"replace":{"address":"192.0.2.2","mac":"02:00:00:00:00:02","port":"p0"}}}"#).is_ok());
    for what in What::ALL {
        assert_eq!(parse(&format!(r#"{{"show":"{what}"}}"#)), Ok(Request::Show(what)));
    }
}

#[test]
fn what_is_not_understood_whole_is_refused() {
    for bad in [
        "",
        "null",
        "7",
        "\"show\"",
        "{}",
        r#"{"show":"teapots"}"#,
        r#"{"show":"ports","json":true}"#,
        r#"{"stop":null}"#,
        r#"{"route":{"add":{"prefix":"10.0.0.0/33","blackhole":true}}}"#,
        r#"{"route":{"add":{"prefix":"10.0.0.0/8","blackhole":true,"table":7}}}"#,
        r#"{"route":{"get":"10.0.0"}}"#,
        r#"{"neighbor":{"add":{"address":"192.0.2.2","mac":"02:00","port":"p0"}}}"#,
        r#"{"neighbor":{"add":{"address":"192.0.2.2","mac":"02:00:00:00:00:02"}}}"#,
    ] {
        assert!(parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn what_cannot_be_meant_is_refused_with_its_reason() {
    let route = |via: Option<&str>, port: Option<&str>, blackhole| {
        Request::Route(RouteRequest::Add(RouteSpec {
            prefix: "10.0.0.0/8".parse().unwrap(),
            via: via.map(|via| via.parse().unwrap()),
            port: port.map(str::to_owned),
            blackhole,
        }))
    };
    let message = |request: Request| request.check().unwrap_err().to_string();
    assert_eq!(route(Some("192.0.2.1"), None, false).check(), Ok(()));
    assert_eq!(route(None, None, true).check(), Ok(()));
    assert!(message(route(None, None, false)).contains("needs either"));
    assert!(message(route(Some("192.0.2.1"), None, true)).contains("not both"));
    assert!(message(route(None, Some("p0"), true)).contains("without a next hop"));
    assert!(message(route(Some("2001:db8::1"), None, false)).contains("same address family"));
    for via in ["0.0.0.0", "224.0.0.1", "255.255.255.255", "127.0.0.1"] {
        assert!(message(route(Some(via), None, false)).contains("unicast"), "{via}");
    }
    let host_bits = Request::Route(RouteRequest::Del(RouteSelector {
        prefix: "10.0.0.1/8".parse().unwrap(),
        via: None,
        port: None,
        kind: None,
    }));
    assert!(message(host_bits).contains("10.0.0.0/8 would be right"));
    for mac in [MacAddr([0; 6]), MacAddr([0xff; 6])] {
        let neighbor = NeighborSpec { address: "192.0.2.2".parse().unwrap(), mac, port: "p0".into() };
        assert!(message(Request::Neighbor(NeighborRequest::Add(neighbor))).contains("one station"));
    }
}

#[test]
fn answers_are_told_apart() {
    let Ok(Answer::Ok(report)) = serde_json::from_str(r#"{"ok":[1, 2]}"#) else { panic!("not ok") };
    assert_eq!(report.get(), "[1, 2]");
    let Ok(Answer::Error(sentence)) = serde_json::from_str(r#"{"error":"no \"p9\""}"#) else { panic!("not error") };
    assert_eq!(sentence, "no \"p9\"");
    assert!(serde_json::from_str::<Answer<'_>>(r#"{"ok":1,"error":""}"#).is_err());
}

//! What hosts do with their own IP stacks, which check every checksum.

use crate::lab::{A, B, Lab};
use crate::namespace::{Namespace, command};
use crate::process::{Thruway, wait};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes that differ from place to place and from one seed to another.
fn pattern(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|position| (position * 7 + position / 251 + seed) as u8).collect()
}

/// Echo requests, small and as large as the MTU allows, from host a.
pub fn ping(lab: &Lab) {
    for (address, largest) in B.host().into_iter().zip([1472, 1452]) {
        for size in [1, 56, largest] {
            // With a deadline it waits for three answers; without, only for twice as long as the first took.
            let words = format!("ping -n -q -M do -c 3 -w 10 -i 0.1 -s {size} {address}");
            let text = command(&mut lab.a.command(&words));
            let state = || ["ports", "drops"].map(|what| lab.forwarder().client(&format!("show {what}"))).concat();
            assert!(text.contains(" 3 received, "), "{text}{}", state());
        }
    }
}

/// One answer comes to host a, as soon as it does.
pub fn quick_ping(lab: &Lab, round: usize) {
    for address in B.host() {
        wait("an answer after a port has come up", || {
            let words = format!("ping -n -q -c 1 -W 1 -s {} {address}", 56 + round);
            lab.a.command(&words).output().unwrap().status.success().then_some(())
        });
    }
}

/// No answer comes to host a.
pub fn no_ping(lab: &Lab) {
    for address in B.host() {
        let output = lab.a.command(&format!("ping -n -q -c 2 -i 0.2 -W 1 {address}")).output().unwrap();
        assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

/// Counters of all ports, by their place in the report.
pub fn counters(forwarder: &Thruway) -> BTreeMap<String, u64> {
    let ports = forwarder.show("ports");
    let ports = ports.as_array().unwrap().iter().enumerate();
    ports
        .flat_map(|(number, port)| {
            ["rx", "tx"]
                .map(|way| port[way].as_object().unwrap().clone())
                .into_iter()
                .flatten()
                .map(move |(key, value)| (format!("{number} {key}"), value.as_u64().unwrap()))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Datagrams there and back.
pub fn udp(lab: &Lab) {
    let bind = |host: &Namespace, address: IpAddr| {
        let socket = host.within(|| UdpSocket::bind((address, 0)).unwrap());
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        socket
    };
    for ((from, to), largest) in A.host().into_iter().zip(B.host()).zip([1472, 1452]) {
        let (here, there) = (bind(&lab.a, from), bind(&lab.b, to));
        for (seed, length) in [0, 1, 64, 1400, largest].into_iter().enumerate() {
            let sent = pattern(length, seed);
            here.send_to(&sent, there.local_addr().unwrap()).unwrap();
            let mut buffer = [0; 2000];
            let (received, source) = there.recv_from(&mut buffer).unwrap();
            assert_eq!((source, &buffer[..received]), (here.local_addr().unwrap(), &sent[..]));
            there.send_to(&sent, source).unwrap();
            let received = here.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..received], sent);
        }
    }
}

/// Connections that carry single bytes, segments and a lot.
pub fn tcp(lab: &Lab) {
    for address in B.host() {
        for (seed, length) in [1, 64, 1500, 2_000_000].into_iter().enumerate() {
            let listener = lab.b.within(|| TcpListener::bind((address, 0)).unwrap());
            let to = listener.local_addr().unwrap();
            let echo = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                stream.set_read_timeout(Some(TIMEOUT)).unwrap();
                let mut received = Vec::new();
                stream.read_to_end(&mut received).unwrap();
                stream.write_all(&received).unwrap();
            });
            let mut stream = lab.a.within(|| connect(to));
            let sent = pattern(length, seed);
            stream.write_all(&sent).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let mut received = Vec::new();
            stream.read_to_end(&mut received).unwrap();
            assert!(received == sent, "{length} bytes to {address} came back as {} other ones", received.len());
            echo.join().unwrap();
        }
    }
}

fn connect(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&to, TIMEOUT).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream
}

/// As much as goes for a second, where iperf3 is installed.
pub fn iperf(lab: &Lab) {
    if !Command::new("iperf3").arg("--version").output().is_ok_and(|output| output.status.success()) {
        println!("iperf3 is not installed: no load");
        return;
    }
    for address in B.host() {
        let mut server = lab.b.command(&format!("iperf3 -s -1 -B {address}"));
        let _server = Killed(server.stdout(Stdio::null()).spawn().unwrap());
        let bits = wait("iperf3 to measure", || {
            let mut client = lab.a.command(&format!("iperf3 -J -t 1 -c {address} --connect-timeout 2000"));
            // It reports failures in its report alone.
            let report: serde_json::Value = serde_json::from_slice(&client.output().unwrap().stdout).unwrap();
            report["end"]["sum_received"]["bits_per_second"].as_f64()
        });
        println!("{address}: {:.0} Mbit/s", bits / 1e6);
        assert!(bits > 1e6);
    }
}

/// A process that does not outlive its test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

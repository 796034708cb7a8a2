//! A list, made a chain, is cut again by a driver into the packets that it was made of.
//!
//! Needs the right to make network interfaces; without it nothing is tested, and the test says so.

mod common {
    pub mod environment;
}

use std::io;
use std::mem::size_of_val;

use arrayvec::ArrayVec;
use common::environment::start;
use dpdk::list::link;
use dpdk::mempool::DEFAULT_DATA_ROOM;
use dpdk::segmentation::{Request, Work};
use dpdk::{Mbuf, Mempool, Port, PortConfig};

const HEADERS: usize = 14 + 20 + 20;

/// RFC 1071 word by word, not complemented.
fn sum(bytes: &[u8]) -> u16 {
    let mut sum = 0_u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// A TCP packet over IPv4, as number `n` of its connection.
fn frame(n: u8, payload: &[u8], flags: u8) -> Vec<u8> {
    let length = (payload.len() + 40) as u16;
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
    frame.extend(length.to_be_bytes());
    frame.extend([0, 100 + n, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x10, 0, 0, 80, 0, 0]);
    frame.extend((1000 + u16::from(n) * 500).to_be_bytes());
    frame.extend([0, 0, 0, 9, 0x50, flags, 1, 0, 0, 0, 0, 0]);
    frame.extend(payload);
    let ip = !sum(&frame[14..34]);
    frame[24..26].copy_from_slice(&ip.to_be_bytes());
    let tcp = !sum(&[&frame[26..34], &[0, 6], &(length - 20).to_be_bytes(), &frame[34..]].concat());
    frame[50..52].copy_from_slice(&tcp.to_be_bytes());
    frame
}

/// A socket that gets all frames of this thread's network namespace.
fn socket() -> io::Result<i32> {
    let protocol = i32::from((libc::ETH_P_ALL as u16).to_be());
    // SAFETY: makes a socket, and gives it a time limit of two seconds by a structure that is alive during the call.
    unsafe {
        let socket = libc::socket(libc::AF_PACKET, libc::SOCK_RAW, protocol);
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        let limit = libc::timeval { tv_sec: 2, tv_usec: 0 };
        let length = size_of_val(&limit) as libc::socklen_t;
        libc::setsockopt(socket, libc::SOL_SOCKET, libc::SO_RCVTIMEO, (&raw const limit).cast(), length);
        Ok(socket)
    }
}

fn receive(socket: i32) -> Option<Vec<u8>> {
    let mut bytes = vec![0; 70_000];
    // SAFETY: the buffer is as long as said.
    let length = unsafe { libc::recv(socket, bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    bytes.truncate(usize::try_from(length).ok()?);
    Some(bytes)
}

#[test]
fn a_driver_cuts_a_chain_into_what_the_list_was_made_of() {
    // SAFETY: only this thread moves to a namespace of its own, which ends with it.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        println!("skipped: network namespaces cannot be made here");
        return;
    }
    start("tap");
    let Ok(port) = Port::open("net_tap0,iface=cut0") else {
        println!("skipped: there is no driver net_tap, or it cannot make an interface");
        return;
    };
    let pool = Mempool::create("packets", 2047, 0, DEFAULT_DATA_ROOM, None).unwrap();
    let config = PortConfig { tx_cutting: true, ..PortConfig::new(vec![pool.clone()], 1) };
    let port = port.configure_and_start(&config).unwrap();
    assert!(port.applied().tx_cutting);
    let socket = socket().unwrap();
    let mut tx = port.take_tx_queue(0).unwrap();

    let payload = |n: u8, length: usize| (0..length).map(|i| (i as u8).wrapping_mul(n + 3)).collect::<Vec<_>>();
    let mut frames: Vec<_> = (0..3).map(|n| frame(n, &payload(n, 500), 0x10)).collect();
    frames.push(frame(3, &payload(3, 123), 0x18));
    let mut burst = ArrayVec::<Mbuf, 8>::new();
    assert_eq!(pool.alloc_bulk(&mut burst, frames.len()), frames.len());
    for (packet, frame) in burst.iter_mut().zip(&frames) {
        packet.extend_from_slice(frame).unwrap();
    }
    link(&mut burst, &[0; 4], 1);
    let list = burst.pop().unwrap();
    assert!(list.may_be_cut());
    let mut chain = list
        .into_chain(HEADERS as u16, |leader, last, length| {
            leader[16..18].copy_from_slice(&(length as u16 - 14).to_be_bytes());
            leader[24..26].fill(0);
            leader[47] |= last[47] & 0x08;
            let pseudo = sum(&[&leader[26..34], &[0, 6]].concat());
            leader[50..52].copy_from_slice(&pseudo.to_be_bytes());
            true
        })
        .unwrap();
    assert!(chain.request(&Request { is_ipv4: true, l2_len: 14, l3_len: 20, l4_len: 20, work: Work::CutTcp(500) }));
    burst.push(chain);
    assert_eq!(tx.prepare(&mut burst), 1);
    assert_eq!(tx.transmit(&mut burst), 1);

    let ours = |bytes: &Vec<u8>| bytes.get(..14) == Some(&frames[0][..14]);
    let received: Vec<_> = std::iter::from_fn(|| receive(socket)).filter(ours).take(4).collect();
    assert_eq!(received.iter().map(Vec::len).collect::<Vec<_>>(), frames.iter().map(Vec::len).collect::<Vec<_>>());
    assert_eq!(received, frames);
    // SAFETY: the socket is this test's.
    unsafe { libc::close(socket) };
}

//! Both tables against a trie of single bits that follows the definition of longest-prefix match.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::atomic::Ordering::{Acquire, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};

use ipnet::{Ipv4Net, Ipv6Net};

use super::dir24::Ipv4Writer;
use super::routes::Writer;
use super::trie_writer::Ipv6Writer;
use super::*;

/// A family, with addresses as 128 bits of which the first `BITS` count.
trait Family: Writer<Fib: Send + Sync> {
    const BITS: u8;
    fn prefix(bits: u128, length: u8) -> Self::Prefix;
    fn lookup(fib: &Self::Fib, bits: u128) -> NextHopId;
    fn lookup_bulk(fib: &Self::Fib, bits: &[u128]) -> Vec<NextHopId>;
    fn set_large(fib: &Self::Fib, large: bool);
}

impl Family for Ipv4Writer {
    const BITS: u8 = 32;
    fn prefix(bits: u128, length: u8) -> Ipv4Net {
        Ipv4Net::new(Ipv4Addr::from((bits >> 96) as u32), length).unwrap()
    }
    fn lookup(fib: &Ipv4Fib, bits: u128) -> NextHopId {
        fib.lookup((bits >> 96) as u32)
    }
    fn lookup_bulk(fib: &Ipv4Fib, bits: &[u128]) -> Vec<NextHopId> {
        let view = fib.view();
        bits.iter().map(|bits| view.lookup((bits >> 96) as u32)).collect()
    }
    fn set_large(_: &Ipv4Fib, _: bool) {}
}

impl Family for Ipv6Writer {
    const BITS: u8 = 128;
    fn prefix(bits: u128, length: u8) -> Ipv6Net {
        Ipv6Net::new(Ipv6Addr::from(bits), length).unwrap()
    }
    fn lookup(fib: &Ipv6Fib, bits: u128) -> NextHopId {
        fib.lookup(bits.into())
    }
    fn lookup_bulk(fib: &Ipv6Fib, bits: &[u128]) -> Vec<NextHopId> {
        let keys: Vec<Ipv6Key> = bits.iter().map(|bits| (*bits).into()).collect();
        let mut out = vec![NextHopId(9999); keys.len() + 1];
        fib.lookup_bulk(&keys, &mut out);
        assert_eq!(out.pop(), Some(NextHopId(9999)), "a result beyond the keys");
        out
    }
    fn set_large(fib: &Ipv6Fib, large: bool) {
        fib.large.store(large, SeqCst);
    }
}

/// xorshift64*: a fixed sequence, so that a failure repeats.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
    fn wide(&mut self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }
    fn next_hop(&mut self) -> NextHopId {
        NextHopId::new(1 + self.below(NextHopId::CAPACITY as u64 - 1) as usize).unwrap()
    }
    /// An address of which each byte has one of few values, so that prefixes lie in and beside each other.
    fn address(&mut self) -> u128 {
        let (mut bits, choice) = (0, self.wide());
        for byte in 0..16 {
            let few = [0_u128, 1, 0x80, 0xff];
            let skewed = [0, 0, 0, 0, 1, 1, 2, 3][(choice >> (8 * byte)) as usize & 7];
            bits |= few[skewed] << (8 * byte);
        }
        bits
    }
    /// A length: mostly long, seldom one that covers much of the first level, which is slow to write.
    fn length(&mut self, bits: u8) -> u8 {
        match self.below(10_000) {
            0 if self.below(5) == 0 => self.below(4) as u8,
            1..10 => 4 + self.below(9) as u8,
            _ if self.below(8) == 0 => bits,
            _ => 13 + self.below(u64::from(bits) - 12) as u8,
        }
    }
}

fn mask(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}

/// The definition: of the prefixes that an address lies in, the longest counts.
#[derive(Default)]
struct Naive {
    next_hops: Vec<Option<NextHopId>>,
    children: Vec<[usize; 2]>,
}

impl Naive {
    fn new() -> Self {
        Self { next_hops: vec![None], children: vec![[0; 2]] }
    }
    fn slot(&mut self, bits: u128, length: u8) -> &mut Option<NextHopId> {
        let mut node = 0;
        for bit in 0..length {
            let side = (bits >> (127 - bit) & 1) as usize;
            if self.children[node][side] == 0 {
                self.children[node][side] = self.next_hops.len();
                self.next_hops.push(None);
                self.children.push([0; 2]);
            }
            node = self.children[node][side];
        }
        &mut self.next_hops[node]
    }
    fn lookup(&self, bits: u128, length: u8) -> NextHopId {
        let (mut node, mut best) = (0, self.next_hops[0]);
        for bit in 0..length {
            node = self.children[node][(bits >> (127 - bit) & 1) as usize];
            if node == 0 {
                break;
            }
            best = self.next_hops[node].or(best);
        }
        best.unwrap_or(NextHopId::NONE)
    }
}

fn random_changes_leave_the_table_equal_to_the_definition<W: Family>(changes: usize) {
    let mut routes = Routes::<W>::new().unwrap();
    let fib = routes.fib();
    let empty = routes.memory();
    let (mut naive, mut random, mut live) = (Naive::new(), Random(0x5eed), Vec::<(u128, u8)>::new());
    let bases: Vec<u128> = (0..3000).map(|_| random.address()).collect();
    for change in 0..changes {
        // Grow for a while, then shrink, so that small and big tables are both seen.
        let removals = if change / 20_000 % 2 == 0 { 3 } else { 7 };
        let (bits, length) = if !live.is_empty() && random.below(10) < removals {
            let (bits, length) = live.swap_remove(random.below(live.len() as u64) as usize);
            let next_hop = naive.slot(bits, length).take();
            assert_eq!(routes.remove(W::prefix(bits, length)), next_hop);
            (bits, length)
        } else {
            let length = random.length(W::BITS);
            let bits = bases[random.below(3000) as usize] & mask(length);
            let next_hop = random.next_hop();
            let old = naive.slot(bits, length).replace(next_hop);
            // Host bits do not matter.
            let given = bits | (random.wide() & !mask(length));
            assert_eq!(routes.insert(W::prefix(given, length), next_hop), Ok(old));
            if old.is_none() {
                live.push((bits, length));
            }
            (bits, length)
        };
        let last = bits | !mask(length);
        let step = 1 << (128 - W::BITS);
        let outside = [bits.wrapping_sub(step), last.wrapping_add(step)];
        let keys = [bits, last, outside[0], outside[1], random.address(), bits | random.wide() >> length.min(127)];
        for key in keys {
            assert_eq!(W::lookup(&fib, key), naive.lookup(key, W::BITS), "{key:#034x} after {change} changes");
        }
        if change % 64 == 0 {
            W::set_large(&fib, change % 128 == 0);
            let keys: Vec<u128> = (0..1 + random.below(130)).map(|_| random.address()).collect();
            let expected: Vec<_> = keys.iter().map(|key| naive.lookup(*key, W::BITS)).collect();
            assert_eq!(W::lookup_bulk(&fib, &keys), expected);
        }
        if change % 16 == 0 {
            let retired = routes.take_retired();
            routes.reclaim(retired);
        }
        assert_eq!(routes.len(), live.len());
        if change % 100_000 == 19_999 {
            assert_history_leaves_no_trace(&mut routes);
        }
    }
    assert_history_leaves_no_trace(&mut routes);
    for (bits, length) in live {
        assert!(routes.remove(W::prefix(bits, length)).is_some());
    }
    let retired = routes.take_retired();
    routes.reclaim(retired);
    assert_eq!((routes.memory(), routes.len()), (empty, 0));
    for _ in 0..1000 {
        assert_eq!(W::lookup(&fib, random.address()), NextHopId::NONE);
    }
}

/// A table that has seen many changes takes no more blocks than one made of the same routes.
fn assert_history_leaves_no_trace<W: Family>(routes: &mut Routes<W>) {
    let retired = routes.take_retired();
    routes.reclaim(retired);
    let mut fresh = Routes::<W>::new().unwrap();
    for (prefix, next_hop) in routes.iter() {
        fresh.insert(prefix, next_hop).unwrap();
    }
    let retired = fresh.take_retired();
    fresh.reclaim(retired);
    assert_eq!(fresh.writer().memory(), routes.writer().memory());
    assert_eq!(fresh.len(), routes.len());
}

#[test]
fn a_million_random_changes_of_ipv4_routes() {
    random_changes_leave_the_table_equal_to_the_definition::<Ipv4Writer>(1_000_000);
}

#[test]
fn a_million_random_changes_of_ipv6_routes() {
    random_changes_leave_the_table_equal_to_the_definition::<Ipv6Writer>(1_000_000);
}

/// Ends the readers also when the writer panics.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Release);
    }
}

/// Two threads look up while one changes routes. Each result must be the answer in one of the states that the table
/// had between the start and the end of its lookup.
fn lookups_see_the_old_or_the_new_route<W: Family>(rounds: u64) {
    const READERS: usize = 2;
    let mut random = Random(0xf1a9);
    // Few prefixes close together, put in and taken out one at a time, and then all back in reverse.
    let mut prefixes: Vec<(u128, u8)> = (0..48)
        .map(|_| {
            let length = 18 + random.below(u64::from(W::BITS) - 17) as u8;
            ((random.address() | 1 << 126) & mask(length), length)
        })
        .collect();
    prefixes.sort();
    prefixes.dedup();
    let mut script: Vec<usize> = (0..300).map(|_| random.below(prefixes.len() as u64) as usize).collect();
    script.extend(script.clone().into_iter().rev());
    let keys: Vec<u128> = prefixes.iter().flat_map(|(bits, length)| [*bits, bits | !mask(*length)]).collect();
    let (mut naive, mut present) = (Naive::new(), vec![false; prefixes.len()]);
    let next_hop = |index: usize| NextHopId::new(1 + index).unwrap();
    let mut answers = vec![keys.iter().map(|_| NextHopId::NONE).collect::<Vec<_>>()];
    for index in &script {
        present[*index] ^= true;
        let (bits, length) = prefixes[*index];
        *naive.slot(bits, length) = present[*index].then_some(next_hop(*index));
        answers.push(keys.iter().map(|key| naive.lookup(*key, W::BITS)).collect());
    }
    assert_eq!(answers.pop().as_ref(), answers.first(), "the script ends where it began");

    let mut routes = Routes::<W>::new().unwrap();
    let empty = routes.memory();
    let fib = routes.fib();
    let (started, finished, stop) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let turns: [AtomicU64; READERS] = Default::default();
    let (answers, keys) = (&answers, &keys);
    std::thread::scope(|scope| {
        let readers: Vec<_> = turns
            .each_ref()
            .map(|turn| {
                let (fib, started, finished, stop) = (&fib, &started, &finished, &stop);
                scope.spawn(move || {
                    let (mut changed, mut bulk) = (0_u64, false);
                    while !stop.load(Acquire) {
                        let size = if bulk { 64 } else { 1 };
                        for (position, keys) in keys.chunks(size).enumerate() {
                            let first = finished.load(SeqCst);
                            let results = match keys {
                                [key] => vec![W::lookup(fib, *key)],
                                keys => W::lookup_bulk(fib, keys),
                            };
                            let last = started.load(SeqCst);
                            if last - first >= answers.len() as u64 {
                                continue;
                            }
                            changed += u64::from(last > first);
                            let base = position * size;
                            for (offset, result) in results.into_iter().enumerate() {
                                let mut states = (first..=last).map(|state| &answers[state as usize % answers.len()]);
                                assert!(
                                    states.any(|state| state[base + offset] == result),
                                    "{first}..={last}: {result:?}"
                                );
                            }
                        }
                        bulk = !bulk;
                        turn.fetch_add(1, Release);
                    }
                    changed
                })
            })
            .into_iter()
            .collect();
        let guard = StopOnDrop(&stop);
        let mut present = vec![false; prefixes.len()];
        for round in 0..rounds {
            for (step, index) in script.iter().enumerate() {
                let (bits, length) = prefixes[*index];
                started.fetch_add(1, SeqCst);
                present[*index] ^= true;
                if present[*index] {
                    assert_eq!(routes.insert(W::prefix(bits, length), next_hop(*index)), Ok(None));
                } else {
                    assert_eq!(routes.remove(W::prefix(bits, length)), Some(next_hop(*index)));
                }
                finished.fetch_add(1, SeqCst);
                if step % 8 == 0 {
                    W::set_large(&fib, round % 2 == 0);
                    let retired = routes.take_retired();
                    let before = turns.each_ref().map(|turn| turn.load(Acquire));
                    while turns.iter().zip(before).any(|(turn, before)| turn.load(Acquire) < before + 1)
                        && readers.iter().all(|reader| !reader.is_finished())
                    {
                        std::thread::yield_now();
                    }
                    routes.reclaim(retired);
                }
            }
        }
        drop(guard);
        let changed: u64 = readers.into_iter().map(|reader| reader.join().unwrap()).sum();
        assert!(changed > 0, "no lookup ran during a change");
    });
    let retired = routes.take_retired();
    routes.reclaim(retired);
    assert_eq!(routes.memory(), empty);
}

#[test]
fn ipv4_lookups_see_the_old_or_the_new_route() {
    lookups_see_the_old_or_the_new_route::<Ipv4Writer>(4);
}

#[test]
fn ipv6_lookups_see_the_old_or_the_new_route() {
    lookups_see_the_old_or_the_new_route::<Ipv6Writer>(4);
}

#[test]
fn a_full_ipv4_table_refuses_and_stays_as_it_is() {
    let mut routes = Ipv4Routes::new().unwrap();
    let fib = routes.fib();
    let (one, two) = (NextHopId(1), NextHopId(2));
    let host = |index: u32| Ipv4Net::from(Ipv4Addr::from(0x0a00_0001 + (index << 8)));
    for index in 0..32_768 {
        assert_eq!(routes.insert(host(index), one), Ok(None));
    }
    let error = routes.insert(host(32_768), one).unwrap_err();
    assert!(matches!(error, FibError::Full(_)), "{error:?}");
    assert!(error.to_string().contains("aggregate"), "{error}");
    assert_eq!((routes.len(), fib.lookup(0x0a80_0001), fib.lookup(0x0a7f_ff01)), (32_768, NextHopId::NONE, one));
    // Where a block is already, there is room.
    assert_eq!(routes.insert(host(0), two), Ok(Some(one)));
    assert_eq!(routes.insert("10.0.0.128/25".parse().unwrap(), two), Ok(None));
    assert_eq!(routes.insert("11.0.0.0/8".parse().unwrap(), two), Ok(None));
    // A block that has just been left is not used before it is reclaimed.
    assert_eq!(routes.remove(host(5)), Some(one));
    assert_eq!(routes.insert(host(32_768), one), Err(FibError::ReclaimFirst));
    let retired = routes.take_retired();
    assert_eq!(routes.insert(host(32_768), one), Err(FibError::ReclaimFirst));
    routes.reclaim(retired);
    assert_eq!(routes.insert(host(32_768), one), Ok(None));
    assert_eq!((fib.lookup(0x0a80_0001), fib.lookup(0x0a00_0501)), (one, NextHopId::NONE));
}

#[test]
fn a_full_ipv6_table_refuses_and_stays_as_it_is() {
    let mut routes = Ipv6Routes::new().unwrap();
    let fib = routes.fib();
    *routes.writer_mut().pool() = pool::Pool::new(40, 2048);
    let one = NextHopId(1);
    let host = |index: u128| Ipv6Net::from(Ipv6Addr::from(0x2001_0db8 << 96 | index << 64 | 1));
    let mut inserted = 0;
    let error = loop {
        match routes.insert(host(inserted), one) {
            Ok(old) => assert_eq!(old, None),
            Err(FibError::ReclaimFirst) => {
                let retired = routes.take_retired();
                assert!(!retired.is_empty());
                routes.reclaim(retired);
                continue;
            }
            Err(error) => break error,
        }
        inserted += 1;
    };
    assert!(matches!(error, FibError::Full(_)), "{error:?}");
    assert!(error.to_string().contains("withdraw"), "{error}");
    assert!((10..40).contains(&inserted), "{inserted}");
    assert_eq!(routes.len() as u128, inserted);
    for index in 0..=inserted {
        let expected = if index < inserted { one } else { NextHopId::NONE };
        assert_eq!(fib.lookup(host(index).addr().into()), expected, "{index}");
    }
    assert_eq!(routes.insert(host(0), NextHopId(2)), Ok(Some(one)), "replacing needs no room");
    for index in 0..inserted {
        assert!(routes.remove(host(index)).is_some());
    }
    let retired = routes.take_retired();
    routes.reclaim(retired);
    assert_eq!(routes.memory(), Ipv6Routes::new().unwrap().memory());
}

#[test]
fn routes_are_found_by_prefix_and_by_address() {
    let mut routes = Ipv6Routes::new().unwrap();
    let (net, host): (Ipv6Net, Ipv6Net) = ("2001:db8::/32".parse().unwrap(), "2001:db8::7/128".parse().unwrap());
    routes.insert(host, NextHopId(2)).unwrap();
    routes.insert("2001:db8::1/32".parse().unwrap(), NextHopId(1)).unwrap();
    assert_eq!(routes.iter().collect::<Vec<_>>(), [(net, NextHopId(1)), (host, NextHopId(2))]);
    assert_eq!((routes.get(net), routes.get("2001:db8::/33".parse().unwrap())), (Some(NextHopId(1)), None));
    assert_eq!(routes.matching("2001:db8::7".parse().unwrap()), Some((host, NextHopId(2))));
    assert_eq!(routes.matching("2001:db8::8".parse().unwrap()), Some((net, NextHopId(1))));
    assert_eq!(routes.matching("2001:db9::8".parse().unwrap()), None);
    assert_eq!(routes.remove("2001:db8::/33".parse().unwrap()), None);
    assert_eq!(routes.len(), 2);
}

/// Every key of a full group comes through as many nodes as can be that are not adjacent, and then to a leaf.
#[test]
fn a_group_that_asks_for_every_check_there_is_room_for() {
    let mut routes = Ipv6Routes::new().unwrap();
    let prefixes = ["2001:daa:1bb:100::/56", "2001:daa:1bb:200::/56", "2001:daa:200::/40"];
    for (position, prefix) in (1..).zip(prefixes) {
        routes.insert(prefix.parse().unwrap(), NextHopId::new(position).unwrap()).unwrap();
    }
    let key = |low| Ipv6Key { high: 0x2001_0daa_01bb_0100, low };
    let mut out = [NextHopId(9999); 64];
    routes.fib().lookup_bulk(&std::array::from_fn::<_, 64, _>(|low| key(low as u64)), &mut out);
    assert_eq!(out, [NextHopId(1); 64]);
}

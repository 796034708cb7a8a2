//! What a lookup costs in cycles of the time-stamp counter (nanoseconds where there is none), on a small table whose
//! entries are in the first caches and on a full one with destinations all over it; how long a full table takes to load; its memory.
//!
//! The variants alternate, and each figure is the median of its rounds. Run with `cargo bench --no-default-features --bench fib`.

use std::hint::black_box;
use std::time::Instant;

use thruway::fib::{Ipv4Fib, Ipv4Routes, Ipv6Fib, Ipv6Key, Ipv6Routes, NextHopId};
use thruway::generate::tables::{full_ipv4_table, full_ipv6_table, ipv4_destinations, ipv6_destinations};

/// Looks up 64 keys from a position on.
type Burst<'a> = &'a dyn Fn(&mut [NextHopId], usize);

const ROUNDS: usize = 25;
const KEYS: usize = 1 << 21;
/// Per round. Few keys are repeated.
const LOOKUPS: usize = 1 << 17;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (ipv4, ipv6) = (full_ipv4_table(1), full_ipv6_table(1));
    let small4: Vec<ipnet::Ipv4Net> =
        (0..16).map(|net| format!("10.{net}.0.0/16").parse()).collect::<Result<_, _>>()?;
    let small6: Vec<ipnet::Ipv6Net> =
        (0..16).map(|net| format!("2001:db8:{net:x}::/48").parse()).collect::<Result<_, _>>()?;
    let start_memory = resident()?;

    let (mut small4_routes, mut small6_routes) = (Ipv4Routes::new()?, Ipv6Routes::new()?);
    for (index, (net4, net6)) in small4.iter().zip(&small6).enumerate() {
        small4_routes.insert(*net4, next_hop(index))?;
        small6_routes.insert(*net6, next_hop(index))?;
    }
    let (mut full4_routes, mut full6_routes) = (Ipv4Routes::new()?, Ipv6Routes::new()?);
    let start = Instant::now();
    for (index, prefix) in ipv4.iter().enumerate() {
        full4_routes.insert(*prefix, next_hop(index))?;
    }
    let loaded4 = start.elapsed();
    let start = Instant::now();
    for (index, prefix) in ipv6.iter().enumerate() {
        full6_routes.insert(*prefix, next_hop(index))?;
        if index % 1024 == 0 {
            let retired = full6_routes.take_retired();
            full6_routes.reclaim(retired);
        }
    }
    let loaded6 = start.elapsed();
    println!("load: {} IPv4 prefixes {loaded4:?}, {} IPv6 prefixes {loaded6:?}", ipv4.len(), ipv6.len());
    println!(
        "memory: {} MB resident, {} MB IPv4 and {} MB IPv6 by its own account",
        (resident()? - start_memory) >> 20,
        full4_routes.memory() >> 20,
        full6_routes.memory() >> 20
    );

    let keys4 = |prefixes: &[_], count| -> Vec<u32> {
        ipv4_destinations(prefixes, count, 2).into_iter().map(u32::from).collect()
    };
    let keys6 = |prefixes: &[_], count| -> Vec<Ipv6Key> {
        ipv6_destinations(prefixes, count, 2).into_iter().map(Ipv6Key::from).collect()
    };
    for (name, fib4, keys4, fib6, keys6) in [
        ("small", small4_routes.fib(), keys4(&small4, 64), small6_routes.fib(), keys6(&small6, 64)),
        ("full", full4_routes.fib(), keys4(&ipv4, KEYS), full6_routes.fib(), keys6(&ipv6, KEYS)),
    ] {
        let variants: [(&str, Burst<'_>); 5] = [
            ("IPv4, one by one", &|out, at| ipv4_each(&fib4, &keys4, at, out)),
            ("IPv4, prefetch pass first", &|out, at| ipv4_prefetched(&fib4, &keys4, at, out)),
            ("IPv6, level by level", &|out, at| ipv6_bulk(&fib6, &keys6, at, out)),
            ("IPv6, together", &|out, at| ipv6_together(&fib6, &keys6, at, out)),
            ("IPv6, one by one", &|out, at| ipv6_single(&fib6, &keys6, at, out)),
        ];
        let mut costs = vec![Vec::new(); variants.len()];
        for round in 0..ROUNDS {
            for (turn, ((_, run), costs)) in variants.iter().zip(&mut costs).enumerate() {
                let mut out = [NextHopId::NONE; 64];
                // Other keys each time: the caches have forgotten the last ones.
                let first = (round * variants.len() + turn) * LOOKUPS;
                let start = clock();
                for burst in 0..LOOKUPS / 64 {
                    run(&mut out, (first + burst * 64) % keys4.len());
                    black_box(&out);
                }
                costs.push((clock() - start) as f64 / LOOKUPS as f64);
            }
        }
        for ((variant, _), mut costs) in variants.iter().zip(costs) {
            costs.sort_by(f64::total_cmp);
            println!("{name:5}  {variant:30} {:6.2} (least {:.2})", costs[ROUNDS / 2], costs[0]);
        }
    }
    Ok(())
}

fn next_hop(index: usize) -> NextHopId {
    NextHopId::new(1 + index % 200).unwrap_or(NextHopId::NONE)
}

#[inline(never)]
fn ipv4_each(fib: &Ipv4Fib, keys: &[u32], at: usize, out: &mut [NextHopId]) {
    let view = fib.view();
    for (key, out) in keys[at..at + 64].iter().zip(out) {
        *out = view.lookup(*key);
    }
}

#[inline(never)]
fn ipv4_prefetched(fib: &Ipv4Fib, keys: &[u32], at: usize, out: &mut [NextHopId]) {
    for key in &keys[at..at + 64] {
        fib.prefetch(*key);
    }
    ipv4_each(fib, keys, at, out);
}

#[inline(never)]
fn ipv6_bulk(fib: &Ipv6Fib, keys: &[Ipv6Key], at: usize, out: &mut [NextHopId]) {
    fib.lookup_bulk(&keys[at..at + 64], out);
}

#[inline(never)]
fn ipv6_together(fib: &Ipv6Fib, keys: &[Ipv6Key], at: usize, out: &mut [NextHopId]) {
    let keys = &keys[at..at + 64];
    let together = fib.together(keys);
    for (key, out) in keys.iter().zip(out) {
        *out = together.lookup(*key);
    }
}

#[inline(never)]
fn ipv6_single(fib: &Ipv6Fib, keys: &[Ipv6Key], at: usize, out: &mut [NextHopId]) {
    for (key, out) in keys[at..at + 64].iter().zip(out) {
        *out = fib.lookup(*key);
    }
}

/// Bytes of memory that the process has.
fn resident() -> Result<usize, Box<dyn std::error::Error>> {
    let pages = std::fs::read_to_string("/proc/self/statm")?;
    Ok(pages.split(' ').nth(1).unwrap_or("0").parse::<usize>()? * 4096)
}

#[cfg(target_arch = "x86_64")]
fn clock() -> u64 {
    // SAFETY: reads a counter that every x86-64 processor has.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn clock() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64)
}

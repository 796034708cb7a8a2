//! The environment abstraction layer: DPDK's memory, devices and threads in this process.
//!
//! Invariant: it is started once, and given up only when nothing uses it.

use std::ffi::{CStr, CString, OsStr, c_char, c_int};
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::{EalError, Errno};
use crate::life::{self, Phase};
use crate::{messages, thread};

/// The environment, started. Dropping it leaves DPDK running until the process ends, which is what a forwarder
/// wants; [`Eal::shutdown`] gives everything back.
///
/// Stays on the thread that started it, which is DPDK's main thread.
#[derive(Debug)]
pub struct Eal {
    _main_thread: PhantomData<*mut ()>,
}

impl Eal {
    /// Starts DPDK with the arguments of its command line, the program's name left out.
    ///
    /// DPDK pins the calling thread to its main core; the mask of the thread is restored afterwards, so that
    /// threads made later do not inherit the pinning. DPDK's log goes to the `log` crate, target `dpdk`.
    ///
    /// # Errors
    /// When DPDK was started before in this process, or does not start; the error says what DPDK complained of.
    pub fn init<I, S>(arguments: I) -> Result<Self, EalError>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<str>,
    {
        let mut owned = vec![c"thruway".to_owned()];
        for argument in arguments {
            let argument = argument.as_ref();
            owned.push(CString::new(argument).map_err(|_| EalError::BadArgument { argument: argument.to_owned() })?);
        }

        let mut life = life::lock();
        if life.phase != Phase::Unused {
            return Err(EalError::AlreadyStarted);
        }
        let allowed = thread::allowed_cores()?;
        messages::capture();

        // DPDK permutes the pointers and keeps some of them: they are never freed.
        let mut pointers: Vec<*mut c_char> = owned.into_iter().map(CString::into_raw).collect();
        let count = c_int::try_from(pointers.len()).unwrap_or(c_int::MAX);
        pointers.push(std::ptr::null_mut());
        let pointers = pointers.leak();
        let started = messages::attempt(|| {
            // SAFETY: `pointers` is an array of `count` terminated strings and a null, writable and valid for ever.
            let result = unsafe { dpdk_sys::shim_eal_init(count, pointers.as_mut_ptr()) };
            if result < 0 { Err(Errno::last()) } else { Ok(()) }
        });
        let restored = thread::allow_cores(&allowed);
        if let Err(errno) = started {
            life.phase = Phase::Over;
            let complaints = messages::complaints();
            if complaints.contains("Cannot create lock on") {
                return Err(EalError::PrefixTaken { complaints });
            }
            let remedy = remedy(&complaints);
            return Err(EalError::Init { errno, complaints, remedy });
        }
        life.phase = Phase::Running;
        restored?;
        Ok(Self { _main_thread: PhantomData })
    }

    /// Where DPDK keeps this process's sockets and locks, named after the `--file-prefix`. It stays behind.
    #[must_use]
    pub fn runtime_directory(&self) -> PathBuf {
        // SAFETY: a terminated string in memory that lives as long as the library, written when DPDK started.
        let text = unsafe { CStr::from_ptr(dpdk_sys::rte_eal_get_runtime_dir()) };
        PathBuf::from(OsStr::from_bytes(text.to_bytes()))
    }

    /// Gives back all that DPDK holds: memory, devices, threads. It cannot be started again. Files of hugepages stay for
    /// the next process of the same prefix, unless the argument `--huge-unlink` was given.
    ///
    /// # Errors
    /// When something still uses it: a port, a ring, a handle of a pool, a registered thread, a packet. Nothing
    /// is changed then.
    pub fn shutdown(self) -> Result<(), (Self, EalError)> {
        let mut life = life::lock();
        let handles = life.pools.iter().filter(|pool| Arc::strong_count(pool) > 1).count();
        let packets: u64 = life.pools.iter().map(|pool| u64::from(pool.in_use())).sum();
        let left: Vec<String> = [
            (life.ports.len() as u64, "ports"),
            (life.rings as u64, "rings"),
            (life.threads as u64, "registered threads"),
            (handles as u64, "pools with handles"),
            (packets, "packets"),
        ]
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
        if !left.is_empty() {
            drop(life);
            return Err((self, EalError::InUse { left: left.join(", ") }));
        }
        life.phase = Phase::Over;
        life.pools.clear();
        // SAFETY: on the main thread, and nothing that DPDK manages is in use: no packet, pool, port, ring or
        // thread, and none can be made since the phase is over.
        let result = unsafe { dpdk_sys::rte_eal_cleanup() };
        if let Err(errno) = Errno::check(result) {
            log::warn!("DPDK did not clean up: {errno}");
        }
        Ok(())
    }
}

/// The release of DPDK that runs, for example `DPDK 22.11.11`.
#[must_use]
pub fn version() -> String {
    // SAFETY: a terminated string that DPDK makes from constants.
    unsafe { CStr::from_ptr(dpdk_sys::rte_version()) }.to_string_lossy().into_owned()
}

/// What can be done about the complaints that are known.
fn remedy(complaints: &str) -> &'static str {
    let known = [
        (
            "Cannot get hugepage information",
            ". Reserve hugepages (sysctl vm.nr_hugepages=512) and mount them (mount -t hugetlbfs nodev \
             /dev/hugepages), or run without (--no-huge)",
        ),
        ("No free 2048 kB hugepages", ". Reserve hugepages (sysctl vm.nr_hugepages=512), or run without (--no-huge)"),
        ("Couldn't get fd on hugepage file", ". Run as root, or run without hugepages (--no-huge)"),
        ("Cannot init memory", ". Lower the EAL's -m, or free memory"),
    ];
    known.iter().find(|(sign, _)| complaints.contains(sign)).map_or("", |(_, remedy)| remedy)
}

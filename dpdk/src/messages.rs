//! DPDK's log, led to the `log` crate (target `dpdk`), with the last complaints kept for error messages.

use std::collections::VecDeque;
use std::ffi::c_char;
use std::sync::{Mutex, MutexGuard, PoisonError};

use log::Level;

/// Complaints kept.
const KEPT: usize = 8;

/// What DPDK adds when something could not be had, and everybody knows by then.
const CONSEQUENCES: [&str; 3] =
    ["Driver cannot attach the device", "Failed to attach device on primary process", "EAL: FATAL: "];

/// What DPDK warns of although nobody asked for it and nothing is wrong.
const NOISE: &str = "No legacy callbacks, legacy socket not created";

static STATE: Mutex<State> = Mutex::new(State { complaints: VecDeque::new(), held: None });

struct State {
    /// The last complaints.
    complaints: VecDeque<String>,
    /// What is not logged yet, while something is attempted.
    held: Option<Vec<(Level, String)>>,
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes over DPDK's log for the life of the process; it goes to standard error where that fails.
pub(crate) fn capture() {
    // SAFETY: the callback is a function that never unwinds into C and is valid for ever.
    if unsafe { dpdk_sys::shim_log_to(Some(receive)) } != 0 {
        log::warn!("cannot redirect the log of DPDK: it goes to standard error");
    }
}

/// Does a step whose error tells the [`complaints`], those before it forgotten. When it fails they are therefore logged
/// for the curious only, else as loudly as DPDK means them.
pub(crate) fn attempt<T, E>(step: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let mut now = state();
    now.complaints.clear();
    now.held = Some(Vec::new());
    drop(now);
    let result = step();
    let held = state().held.take().unwrap_or_default();
    for (level, line) in held {
        let level = if result.is_ok() { level } else { Level::Debug };
        log::log!(target: "dpdk", level, "{line}");
    }
    result
}

/// What DPDK complained of since the last [`attempt`] began, as `": first; second"`, or nothing.
pub(crate) fn complaints() -> String {
    let kept = &state().complaints;
    if kept.is_empty() {
        return String::new();
    }
    format!(": {}", kept.iter().map(String::as_str).collect::<Vec<_>>().join("; "))
}

/// The callback for DPDK's log stream: `text` holds one message, or several, or a part of one.
extern "C" fn receive(level: u32, text: *const c_char, length: usize) {
    if text.is_null() || length == 0 {
        return;
    }
    // SAFETY: the stream hands over `length` bytes that stay as they are during the call.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) };
    // What may be DPDK's last words is never held back.
    let urgent = level < dpdk_sys::RTE_LOG_ERR;
    let level = level_of(level);
    for line in String::from_utf8_lossy(bytes).lines().map(str::trim).filter(|line| !line.is_empty()) {
        let level = if line.contains(NOISE) { Level::Debug } else { level };
        if !note(level, urgent, line) {
            log::log!(target: "dpdk", level, "{line}");
        }
    }
}

/// Remembers a complaint; tells whether it is held back.
fn note(level: Level, urgent: bool, line: &str) -> bool {
    if level > Level::Warn {
        return false;
    }
    let mut now = state();
    if !CONSEQUENCES.iter().any(|consequence| line.contains(consequence)) {
        if now.complaints.len() == KEPT {
            now.complaints.pop_front();
        }
        now.complaints.push_back(line.to_owned());
    }
    match &mut now.held {
        Some(held) if !urgent => {
            held.push((level, line.to_owned()));
            true
        }
        _ => false,
    }
}

fn level_of(level: u32) -> Level {
    match level {
        0..=dpdk_sys::RTE_LOG_ERR => Level::Error,
        dpdk_sys::RTE_LOG_WARNING => Level::Warn,
        dpdk_sys::RTE_LOG_NOTICE | dpdk_sys::RTE_LOG_INFO => Level::Info,
        _ => Level::Debug,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use log::{LevelFilter, Log, Metadata, Record};

    static LOGGED: Mutex<Vec<(Level, String)>> = Mutex::new(Vec::new());

    struct Memory;

    impl Log for Memory {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn log(&self, record: &Record<'_>) {
            LOGGED.lock().unwrap().push((record.level(), record.args().to_string()));
        }

        fn flush(&self) {}
    }

    fn say(level: u32, text: &str) {
        receive(level, text.as_ptr().cast(), text.len());
    }

    #[test]
    fn what_an_error_tells_is_not_logged_aloud() {
        log::set_logger(&Memory).unwrap();
        log::set_max_level(LevelFilter::Trace);
        let logged = || std::mem::take(&mut *LOGGED.lock().unwrap());
        let line = |level, text: &str| (level, text.to_owned());

        let failed: Result<(), ()> = attempt(|| {
            say(dpdk_sys::RTE_LOG_ERR, "EAL: FATAL: no\nEAL: no\n");
            say(dpdk_sys::RTE_LOG_WARNING, "TELEMETRY: No legacy callbacks, legacy socket not created\n");
            say(dpdk_sys::RTE_LOG_ERR - 1, "EAL: the end\n");
            Err(())
        });
        assert_eq!((failed, complaints()), (Err(()), ": EAL: no; EAL: the end".to_owned()));
        let noise = line(Level::Debug, "TELEMETRY: No legacy callbacks, legacy socket not created");
        let urgent = line(Level::Error, "EAL: the end");
        let held = ["EAL: FATAL: no", "EAL: no"].map(|text| line(Level::Debug, text));
        assert_eq!(logged(), [noise, urgent].into_iter().chain(held).collect::<Vec<_>>());

        let done: Result<(), ()> = attempt(|| {
            say(dpdk_sys::RTE_LOG_WARNING, "EAL: beware\n");
            Ok(())
        });
        assert_eq!((done, complaints()), (Ok(()), ": EAL: beware".to_owned()));
        say(dpdk_sys::RTE_LOG_ERR, "EAL: later\n");
        assert_eq!(logged(), [line(Level::Warn, "EAL: beware"), line(Level::Error, "EAL: later")]);
    }
}

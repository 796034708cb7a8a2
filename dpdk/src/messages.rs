//! DPDK's log, led to the `log` crate (target `dpdk`), with the last complaints kept for error messages.

use std::collections::VecDeque;
use std::ffi::c_char;
use std::sync::{Mutex, PoisonError};

use log::Level;

/// Complaints kept.
const KEPT: usize = 8;

/// What DPDK adds when a device could not be attached, and everybody knows by then.
const CONSEQUENCES: [&str; 2] = ["Driver cannot attach the device", "Failed to attach device on primary process"];

static COMPLAINTS: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

/// Takes over DPDK's log for the life of the process; it goes to standard error where that fails.
pub(crate) fn capture() {
    // SAFETY: the callback is a function that never unwinds into C and is valid for ever.
    if unsafe { dpdk_sys::shim_log_to(Some(receive)) } != 0 {
        log::warn!("cannot redirect the log of DPDK: it goes to standard error");
    }
}

/// Forgets the complaints so far, so that [`complaints`] tells those of the next step only.
pub(crate) fn forget() {
    COMPLAINTS.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// What DPDK complained of since [`forget`], as `": first; second"`, or nothing.
pub(crate) fn complaints() -> String {
    let kept = COMPLAINTS.lock().unwrap_or_else(PoisonError::into_inner);
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
    let level = level_of(level);
    for line in String::from_utf8_lossy(bytes).lines().map(str::trim).filter(|line| !line.is_empty()) {
        log::log!(target: "dpdk", level, "{line}");
        if level <= Level::Warn && !CONSEQUENCES.iter().any(|consequence| line.contains(consequence)) {
            remember(line);
        }
    }
}

fn remember(line: &str) {
    let mut kept = COMPLAINTS.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.len() == KEPT {
        kept.pop_front();
    }
    kept.push_back(line.to_owned());
}

fn level_of(level: u32) -> Level {
    match level {
        0..=dpdk_sys::RTE_LOG_ERR => Level::Error,
        dpdk_sys::RTE_LOG_WARNING => Level::Warn,
        dpdk_sys::RTE_LOG_NOTICE | dpdk_sys::RTE_LOG_INFO => Level::Info,
        _ => Level::Debug,
    }
}

//! Real threads on a real ring. `THRUWAY_STRESS_SECONDS` makes it last longer than a moment.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::thread;
use std::time::{Duration, Instant};

use super::*;
use crate::generate::random::Random;

//! `thruway show`: once, or again and again until interrupted.

use crate::cli::args::{Color, ShowArgs};
use crate::cli::client::{ask, not_understood};
use crate::cli::failure::Failure;
use crate::cli::view::{self, View};
use crate::control::protocol::{Request, RouteRequest};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::{self, IsTerminal, Read, Write};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Moves to the top left and clears all below.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Prints a report, once or at intervals.
pub(super) fn show(socket: &Path, color: Color, args: &ShowArgs) -> Result<(), Failure> {
    let request = Request::Show(args.what);
    let Some(interval) = args.watch else {
        let report = ask(socket, &request)?;
        if args.json {
            return print(&format!("{}\n", report.get()));
        }
        let view = View::of(args.what, report.get()).map_err(|error| not_understood(socket, &error))?;
        return print(&view.render(None, bold(color)));
    };

    let mut interrupt = Interrupt::new()?;
    let mut earlier: Option<(View, Instant)> = None;
    loop {
        let report = ask(socket, &request)?;
        let now = Instant::now();
        if args.json {
            print(&format!("{}\n", report.get()))?;
        } else {
            let view = View::of(args.what, report.get()).map_err(|error| not_understood(socket, &error))?;
            let since = earlier.as_ref().map(|(view, at)| (view, now - *at));
            let text = view.render(since, bold(color));
            let before = if io::stdout().is_terminal() { CLEAR } else { "" };
            let after = if before.is_empty() { "\n" } else { "" };
            print(&format!("{before}{text}{after}"))?;
            earlier = Some((view, now));
        }
        if interrupt.within(interval.saturating_sub(now.elapsed()))? {
            return Ok(());
        }
    }
}

/// Prints which way a packet to an address takes.
pub(super) fn route_get(socket: &Path, address: IpAddr, json: bool) -> Result<(), Failure> {
    let report = ask(socket, &Request::Route(RouteRequest::Get(address)))?;
    if json {
        return print(&format!("{}\n", report.get()));
    }
    let report = serde_json::from_str(report.get()).map_err(|error| not_understood(socket, &error))?;
    print(&view::route_get(&report))
}

fn print(text: &str) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    output.write_all(text.as_bytes())?;
    output.flush()?;
    Ok(())
}

fn bold(color: Color) -> bool {
    match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
    }
}

/// Ctrl-C and SIGTERM, as something to wait for.
struct Interrupt {
    signals: UnixStream,
}

impl Interrupt {
    fn new() -> Result<Self, Failure> {
        let failed =
            |error: io::Error| Failure::Running(format!("cannot watch for Ctrl-C: {error}; try without --watch"));
        let (signals, handler) = UnixStream::pair().map_err(failed)?;
        for signal in [SIGINT, SIGTERM] {
            let handler = handler.try_clone().map_err(failed)?;
            signal_hook::low_level::pipe::register(signal, handler).map_err(failed)?;
        }
        Ok(Self { signals })
    }

    /// Waits; true when a signal came.
    fn within(&mut self, time: Duration) -> Result<bool, Failure> {
        let end = Instant::now() + time;
        loop {
            // A timeout of zero would mean none.
            let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            self.signals.set_read_timeout(Some(left))?;
            match self.signals.read(&mut [0]) {
                Ok(_) => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Ok(false);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

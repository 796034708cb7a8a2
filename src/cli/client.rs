//! The client's end of the control socket: one request, one answer.

use crate::cli::failure::Failure;
use crate::control::protocol::{Answer, Request};
use serde_json::value::RawValue;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long the daemon may be silent.
const PATIENCE: Duration = Duration::from_secs(30);

/// Sends a request to the daemon behind a socket; gives what it answers, still as text.
///
/// # Errors
/// [`Failure::Unreachable`] when there is no daemon or it does not answer, [`Failure::Running`] with
/// its words when it refuses.
pub(super) fn ask(socket: &Path, request: &Request) -> Result<Box<RawValue>, Failure> {
    let line = serde_json::to_string(request).map_err(|error| Failure::Running(error.to_string()))?;
    let stream = UnixStream::connect(socket).map_err(|error| unreachable(socket, &error))?;
    let answer = exchange(&stream, &line).map_err(|error| silent(socket, &error))?;
    match serde_json::from_slice(&answer) {
        Ok(Answer::Ok(report)) => Ok(report.to_owned()),
        Ok(Answer::Error(sentence)) => Err(Failure::Running(sentence)),
        Err(error) => Err(not_understood(socket, &error)),
    }
}

/// The failure for an answer that is not what the protocol says.
pub(super) fn not_understood(socket: &Path, error: &serde_json::Error) -> Failure {
    let path = socket.display();
    Failure::Running(format!(
        "the answer of the daemon on {path} is not understood: {error}; use the thruway of the daemon's version"
    ))
}

fn exchange(mut stream: &UnixStream, line: &str) -> io::Result<Vec<u8>> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    // A daemon with too many clients says so and closes: its words are there even if ours cannot be sent.
    let sent = stream.write_all(format!("{line}\n").as_bytes());
    let mut answer = Vec::new();
    let received = BufReader::new(stream).read_until(b'\n', &mut answer);
    if answer.ends_with(b"\n") {
        return Ok(answer);
    }
    sent.and(received)?;
    Err(io::ErrorKind::UnexpectedEof.into())
}

fn unreachable(socket: &Path, error: &io::Error) -> Failure {
    let path = socket.display();
    Failure::Unreachable(match error.kind() {
        io::ErrorKind::NotFound => format!(
            "no daemon on {path}: there is no such socket; start one (thruway run -c FILE), or name another with --socket"
        ),
        io::ErrorKind::ConnectionRefused => format!(
            "no daemon on {path}: nobody listens; start one (thruway run -c FILE), or name another with --socket"
        ),
        io::ErrorKind::PermissionDenied => format!(
            "may not use {path}: permission denied; run this as the daemon's user, or set control.group and control.mode"
        ),
        _ => format!("cannot connect to {path}: {error}; name the daemon's control socket with --socket"),
    })
}

fn silent(socket: &Path, error: &io::Error) -> Failure {
    let path = socket.display();
    Failure::Unreachable(match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("the daemon on {path} has been silent for {} s: see its log", PATIENCE.as_secs())
        }
        io::ErrorKind::UnexpectedEof => format!("the daemon on {path} left without an answer: see its log"),
        _ => format!("the daemon on {path} left without an answer ({error}): see its log"),
    })
}

//! One client of the control socket: lines in, answers out, in order.
//!
//! A connection holds at most one request line, one report (or one page of routes) and nothing
//! else, however much the client sends or leaves unread: the next request is looked at only when
//! the answers before it have gone out.

use crate::control::backend::{Existing, Forwarder, Refusal};
use crate::control::protocol::{
    BqlRequest, MAX_REQUEST, NeighborRequest, PoliceRequest, PortRequest, PortSetting, QdiscRequest, Request,
    RouteRequest, What,
};
use ipnet::IpNet;
use serde::Serialize;
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

/// Bytes read at once.
const READ_CHUNK: usize = 16 * 1024;

/// Answers are gathered up to this many bytes before they are written.
const HIGH_WATER: usize = 64 * 1024;

/// Routes produced at once.
const PAGE: usize = 512;

/// Requests and pages after which other connections have their turn.
const TURN: usize = 16;

/// How a connection stands after its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nothing to do until the socket becomes readable or writable.
    Waiting,
    /// There is more to do at once.
    Runnable,
    /// It has ended and is to be dropped.
    Ended,
}

/// One client.
#[derive(Debug)]
pub(super) struct Connection<S> {
    stream: S,
    input: Vec<u8>,
    /// Bytes of `input` that have been dealt with.
    consumed: usize,
    /// Bytes of `input` known to hold no newline behind `consumed`.
    searched: usize,
    output: Vec<u8>,
    written: usize,
    listing: Option<Listing>,
    input_ended: bool,
    /// To be closed when `output` has gone out.
    closing: bool,
    deadline: Instant,
    patience: Duration,
}

/// A list of routes that is being sent.
#[derive(Clone, Copy, Debug)]
struct Listing {
    after: Option<IpNet>,
}

impl<S: Read + Write> Connection<S> {
    /// A client that has `patience` to complete a request or to take some of an answer.
    pub(super) fn new(stream: S, now: Instant, patience: Duration) -> Self {
        Self {
            stream,
            input: Vec::new(),
            consumed: 0,
            searched: 0,
            output: Vec::new(),
            written: 0,
            listing: None,
            input_ended: false,
            closing: false,
            deadline: now + patience,
            patience,
        }
    }

    /// The socket, to register it.
    pub(super) fn stream_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// When the connection is to be given up.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Serves the client as far as the socket allows, up to a fair share.
    pub(super) fn turn(&mut self, now: Instant, forwarder: &mut dyn Forwarder) -> Standing {
        match self.work(now, forwarder) {
            Ok(standing) => standing,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Standing::Waiting,
            Err(error) => {
                log::debug!("a control client went away: {error}");
                Standing::Ended
            }
        }
    }

    fn work(&mut self, now: Instant, forwarder: &mut dyn Forwarder) -> io::Result<Standing> {
        for _ in 0..TURN {
            self.fill_output(now, forwarder);
            self.flush(now)?;
            if self.closing {
                return Ok(Standing::Ended);
            }
            // What is left over are lines in `input` or pages of a list.
            if self.listing.is_some() || self.has_line() {
                continue;
            }
            if self.input_ended {
                self.end_of_input();
            } else if self.input.len() - self.consumed > MAX_REQUEST {
                self.refuse_length();
            } else {
                self.fill_input()?;
            }
        }
        Ok(Standing::Runnable)
    }

    /// Answers what has been read, until there is enough to write.
    fn fill_output(&mut self, now: Instant, forwarder: &mut dyn Forwarder) {
        while !self.closing && self.output.len() < HIGH_WATER {
            if let Some(listing) = self.listing {
                self.listing = next_page(&mut self.output, listing, forwarder);
            } else if let Some(line) = self.take_line() {
                self.deadline = now + self.patience;
                let line = self.input.get(line).unwrap_or_default();
                if line.len() > MAX_REQUEST {
                    self.refuse_length();
                } else if !line.trim_ascii().is_empty() {
                    self.listing = answer(&mut self.output, line, forwarder);
                }
            } else {
                return;
            }
        }
    }

    fn flush(&mut self, now: Instant) -> io::Result<()> {
        while let Some(rest) = self.output.get(self.written..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.written += count;
                    self.deadline = now + self.patience;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.written = 0;
        self.output.clear();
        // One big report must not pin its memory for the life of the connection.
        self.output.shrink_to(4 * HIGH_WATER);
        Ok(())
    }

    fn fill_input(&mut self) -> io::Result<()> {
        self.input.drain(..self.consumed);
        self.searched -= self.consumed;
        self.consumed = 0;
        let mut chunk = [0; READ_CHUNK];
        match self.stream.read(&mut chunk) {
            Ok(0) => self.input_ended = true,
            Ok(count) => self.input.extend_from_slice(chunk.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn refuse_length(&mut self) {
        refuse(&mut self.output, &format!("the request is longer than {MAX_REQUEST} bytes: send shorter ones"));
        self.closing = true;
    }

    /// A request without its newline may be half of one: it is not carried out.
    fn end_of_input(&mut self) {
        let rest = self.input.get(self.consumed..).unwrap_or_default();
        if !rest.trim_ascii().is_empty() {
            refuse(&mut self.output, "the request is incomplete and was not carried out: end it with a newline");
        }
        self.closing = true;
    }

    /// Finds the next newline; each byte is looked at once.
    fn has_line(&mut self) -> bool {
        let unsearched = self.input.get(self.searched..).unwrap_or_default();
        match unsearched.iter().position(|byte| *byte == b'\n') {
            Some(offset) => {
                self.searched += offset;
                true
            }
            None => {
                self.searched = self.input.len();
                false
            }
        }
    }

    /// Where in `input` the next complete line is, without its newline; it counts as consumed.
    fn take_line(&mut self) -> Option<std::ops::Range<usize>> {
        let start = self.consumed;
        self.has_line().then(|| {
            let end = self.searched;
            self.searched += 1;
            self.consumed = self.searched;
            start..end
        })
    }
}

/// Writes the answer to one line. A list of routes is only begun.
fn answer(output: &mut Vec<u8>, line: &[u8], forwarder: &mut dyn Forwarder) -> Option<Listing> {
    let request: Request = match serde_json::from_slice(line) {
        Ok(request) => request,
        Err(error) => {
            refuse(output, &format!("not a request: {error}; send one such as {{\"show\":\"ports\"}}"));
            return None;
        }
    };
    if let Err(bad) = request.check() {
        refuse(output, &bad.to_string());
        return None;
    }
    log::debug!("control request: {request:?}");
    match request {
        Request::Show(What::Routes) => {
            output.extend_from_slice(b"{\"ok\":[");
            return Some(Listing { after: None });
        }
        Request::Show(what) => show(output, what, forwarder),
        Request::Route(request) => route(output, request, forwarder),
        Request::Neighbor(request) => reply(output, neighbor(request, forwarder)),
        Request::Qdisc(QdiscRequest::Change(change)) => reply(output, forwarder.change_qdisc(&change)),
        Request::Bql(BqlRequest::Change(change)) => reply(output, forwarder.change_bql(&change)),
        Request::Police(request) => reply(output, police(&request, forwarder)),
        Request::Reload {} => reply(output, forwarder.reload()),
        Request::Port(PortRequest::Set(PortSetting { port, admin })) => reply(output, forwarder.set_port(&port, admin)),
    }
    None
}

fn show(output: &mut Vec<u8>, what: What, forwarder: &mut dyn Forwarder) {
    match what {
        What::Ports => reply(output, forwarder.ports()),
        What::Queues => reply(output, forwarder.queues()),
        What::Police => reply(output, Ok(forwarder.policers())),
        What::Drops => reply(output, Ok(forwarder.drops())),
        What::Cores => reply(output, Ok(forwarder.cores())),
        What::Routes => reply(output, Ok(forwarder.routes(None, usize::MAX))),
        What::Neighbors => reply(output, Ok(forwarder.neighbors())),
        What::Version => reply(output, Ok(forwarder.version())),
        What::Config => reply(output, Ok(forwarder.config())),
    }
}

fn route(output: &mut Vec<u8>, request: RouteRequest, forwarder: &mut dyn Forwarder) {
    match request {
        RouteRequest::Add(route) => reply(output, forwarder.set_route(&route, Existing::Refuse)),
        RouteRequest::Replace(route) => reply(output, forwarder.set_route(&route, Existing::Replace)),
        RouteRequest::Del(route) => reply(output, forwarder.remove_route(&route)),
        RouteRequest::Get(address) => reply(output, forwarder.route_to(address)),
    }
}

fn neighbor(request: NeighborRequest, forwarder: &mut dyn Forwarder) -> Result<(), Refusal> {
    match request {
        NeighborRequest::Add(neighbor) => forwarder.set_neighbor(&neighbor, Existing::Refuse),
        NeighborRequest::Replace(neighbor) => forwarder.set_neighbor(&neighbor, Existing::Replace),
        NeighborRequest::Del(neighbor) => forwarder.remove_neighbor(&neighbor),
    }
}

fn police(request: &PoliceRequest, forwarder: &mut dyn Forwarder) -> Result<(), Refusal> {
    match request {
        PoliceRequest::Add(policer) => forwarder.add_policer(policer),
        PoliceRequest::Change(policer) => forwarder.change_policer(policer),
        PoliceRequest::Del(policer) => forwarder.remove_policer(policer),
    }
}

/// Writes the next page of routes, or the end of the list.
fn next_page(output: &mut Vec<u8>, listing: Listing, forwarder: &mut dyn Forwarder) -> Option<Listing> {
    let page = forwarder.routes(listing.after, PAGE);
    let Some(last) = page.last() else {
        output.extend_from_slice(b"]}\n");
        return None;
    };
    for (position, route) in page.iter().enumerate() {
        if listing.after.is_some() || position > 0 {
            output.push(b',');
        }
        let length = output.len();
        if serde_json::to_writer(&mut *output, route).is_err() {
            output.truncate(length);
            output.extend_from_slice(b"null");
        }
    }
    Some(Listing { after: Some(last.prefix) })
}

fn reply<T: Serialize>(output: &mut Vec<u8>, outcome: Result<T, Refusal>) {
    let length = output.len();
    match outcome {
        Ok(report) => {
            output.extend_from_slice(b"{\"ok\":");
            match serde_json::to_writer(&mut *output, &report) {
                Ok(()) => output.extend_from_slice(b"}\n"),
                Err(error) => {
                    output.truncate(length);
                    refuse(output, &format!("the answer cannot be written as JSON: {error}"));
                }
            }
        }
        Err(refusal) => refuse(output, &refusal.to_string()),
    }
}

/// Writes that a request is refused, and why.
pub(super) fn refuse(output: &mut Vec<u8>, sentence: &str) {
    output.extend_from_slice(format!("{}\n", serde_json::json!({ "error": sentence })).as_bytes());
}

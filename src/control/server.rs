//! The loop of the control thread: waits for clients and signals, serves whoever is ready.
//!
//! Whatever clients do, the loop waits for none of them, holds a bounded amount of memory and file
//! descriptors for them, and gives each a fair share of its time.

use crate::control::backend::Forwarder;
use crate::control::connection::{Connection, Standing, refuse};
use crate::control::listen::Listener;
use mio::net::{UnixListener, UnixStream};
use mio::{Events, Interest, Poll, Token};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

pub use crate::control::listen::ControlError;

const LISTENER: Token = Token(0);
const SIGNAL: Token = Token(1);
const FIRST_CONNECTION: usize = 2;

/// How long to leave the listening socket alone when the system has no descriptor to spare.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// How much clients may take up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time; more are told so and closed.
    pub connections: usize,
    /// How long a client may take to complete a request, or to take some of its answer.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 64, patience: Duration::from_secs(30) }
    }
}

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The time was over, or a connection's, or nothing in particular.
    Idle,
    /// A client was served.
    Served,
    /// Something was written to the stream given to [`Server::watch`]; clients may have been served
    /// too.
    Signal,
}

/// The control socket and its clients. Dropping it closes them all and removes the socket.
#[derive(Debug)]
pub struct Server {
    poll: Poll,
    events: Events,
    listener: UnixListener,
    place: Listener,
    accept_again: Option<Instant>,
    signal: Option<UnixStream>,
    slots: Vec<Option<Slot>>,
    limits: Limits,
}

#[derive(Debug)]
struct Slot {
    connection: Connection<UnixStream>,
    runnable: bool,
}

impl Server {
    /// Opens the socket at a path with the given permission bits and group. Missing directories
    /// are made (0755). A socket that nobody answers on is replaced.
    ///
    /// # Errors
    /// Another thruway answers there, something that is not a socket has the name, the group does
    /// not exist, or a system call fails.
    pub fn bind(path: &Path, mode: u32, group: Option<&str>) -> Result<Self, ControlError> {
        Self::bind_with(path, mode, group, Limits::default())
    }

    /// The same with other limits.
    ///
    /// # Errors
    /// As [`Server::bind`].
    pub fn bind_with(path: &Path, mode: u32, group: Option<&str>, limits: Limits) -> Result<Self, ControlError> {
        let (place, listener) = Listener::bind(path, mode, group)?;
        let watch = |source| ControlError::System { what: "watch", path: path.to_owned(), source };
        let poll = Poll::new().map_err(watch)?;
        let mut listener = UnixListener::from_std(listener);
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE).map_err(watch)?;
        Ok(Self {
            poll,
            events: Events::with_capacity(128),
            listener,
            place,
            accept_again: None,
            signal: None,
            slots: (0..limits.connections).map(|_| None).collect(),
            limits,
        })
    }

    /// Where the socket is.
    pub fn path(&self) -> &Path {
        self.place.path()
    }

    /// How many clients are connected.
    pub fn connections(&self) -> usize {
        self.slots.iter().flatten().count()
    }

    /// Ends waits with [`Wake::Signal`] whenever something is written to the other end of a stream:
    /// the read end of a signal handler's pipe. What is written is read and thrown away. A second
    /// call takes the place of the first.
    ///
    /// # Errors
    /// When the stream cannot be made non-blocking or registered.
    pub fn watch(&mut self, stream: std::os::unix::net::UnixStream) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        let mut stream = UnixStream::from_std(stream);
        self.poll.registry().register(&mut stream, SIGNAL, Interest::READABLE)?;
        self.signal = Some(stream);
        Ok(())
    }

    /// Waits until there is something to do, at most `timeout` (for ever without one), and does it.
    /// May return early with [`Wake::Idle`].
    ///
    /// # Errors
    /// When the system cannot wait at all. Errors of clients end that client only.
    pub fn poll(&mut self, timeout: Option<Duration>, forwarder: &mut dyn Forwarder) -> io::Result<Wake> {
        let wait = self.wait(timeout, Instant::now());
        let mut events = std::mem::replace(&mut self.events, Events::with_capacity(0));
        let outcome = self.poll.poll(&mut events, wait);
        let mut wake = Wake::Idle;
        let mut accept = false;
        for event in &events {
            match event.token() {
                LISTENER => accept = true,
                SIGNAL => {
                    self.drain_signal();
                    wake = Wake::Signal;
                }
                Token(token) => {
                    if let Some(Some(slot)) = self.slots.get_mut(token - FIRST_CONNECTION) {
                        slot.runnable = true;
                    }
                }
            }
        }
        events.clear();
        self.events = events;
        match outcome {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Wake::Idle),
            other => other?,
        }

        let now = Instant::now();
        if accept || self.accept_again.is_some_and(|at| at <= now) {
            self.accept(now);
        }
        if self.serve(now, forwarder) && wake == Wake::Idle {
            wake = Wake::Served;
        }
        Ok(wake)
    }

    /// How long nothing can happen but by an event.
    fn wait(&self, timeout: Option<Duration>, now: Instant) -> Option<Duration> {
        if self.slots.iter().flatten().any(|slot| slot.runnable) {
            return Some(Duration::ZERO);
        }
        let deadlines = self.slots.iter().flatten().map(|slot| slot.connection.deadline()).chain(self.accept_again);
        let next = deadlines.min().map(|deadline| deadline.saturating_duration_since(now));
        [timeout, next].into_iter().flatten().min()
    }

    fn accept(&mut self, now: Instant) {
        self.accept_again = None;
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => self.admit(stream, now),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    log::warn!("cannot accept a control client: {error}");
                    self.accept_again = Some(now + ACCEPT_PAUSE);
                    return;
                }
            }
        }
    }

    fn admit(&mut self, mut stream: UnixStream, now: Instant) {
        let Some((index, slot)) = self.slots.iter_mut().enumerate().find(|(_, slot)| slot.is_none()) else {
            let mut message = Vec::new();
            let sentence = format!("{} clients are connected already: try again later", self.limits.connections);
            refuse(&mut message, &sentence);
            // A new socket has room for it; a client that is gone needs none.
            let _ = stream.write(&message);
            return;
        };
        let mut connection = Connection::new(stream, now, self.limits.patience);
        let interest = Interest::READABLE | Interest::WRITABLE;
        let token = Token(FIRST_CONNECTION + index);
        match self.poll.registry().register(connection.stream_mut(), token, interest) {
            Ok(()) => *slot = Some(Slot { connection, runnable: true }),
            Err(error) => log::warn!("cannot watch a control client: {error}"),
        }
    }

    /// Gives every ready connection its turn; true if there was one.
    fn serve(&mut self, now: Instant, forwarder: &mut dyn Forwarder) -> bool {
        let mut served = false;
        for place in &mut self.slots {
            let Some(slot) = place else { continue };
            let mut standing = if slot.runnable {
                served = true;
                slot.connection.turn(now, forwarder)
            } else {
                Standing::Waiting
            };
            if standing == Standing::Waiting && slot.connection.deadline() <= now {
                log::debug!("a control client was too slow");
                standing = Standing::Ended;
            }
            slot.runnable = standing == Standing::Runnable;
            if standing == Standing::Ended {
                // Closing the descriptor ends its registration.
                *place = None;
            }
        }
        served
    }

    fn drain_signal(&mut self) {
        let Some(stream) = &mut self.signal else { return };
        let mut sink = [0; 64];
        loop {
            match stream.read(&mut sink) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }
}

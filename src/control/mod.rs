//! The control plane's outer face: a Unix socket on which a running forwarder answers questions and
//! takes changes.
//!
//! [`protocol`] says what may be asked, [`report`] what is answered, [`backend`] what the forwarder
//! has to provide, and [`server`] carries it over the socket. The command line knows the first two
//! only.

pub mod backend;
mod config_report;
mod connection;
mod listen;
mod police;
pub mod protocol;
pub mod report;
pub mod server;

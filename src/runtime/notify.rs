//! Telling systemd what the service is doing (sd_notify(3)).

use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Sends `state`, such as `READY=1`, to the service manager if there is one.
pub(super) fn notify(state: &str) {
    let Some(address) = env::var_os("NOTIFY_SOCKET") else { return };
    if let Err(error) = send(address.as_encoded_bytes(), state) {
        log::warn!("the service manager cannot be told {state}: {error}");
    }
}

fn send(address: &[u8], state: &str) -> io::Result<()> {
    let address = match address.split_first() {
        Some((b'@', name)) => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(String::from_utf8_lossy(address).as_ref())?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_socket_get_the_message() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let name = format!("thruway-notify-{}", std::process::id());
        let abstract_address = SocketAddr::from_abstract_name(name.as_bytes()).unwrap();
        for (socket, address) in [
            (UnixDatagram::bind(&path).unwrap(), path.to_str().unwrap().to_owned()),
            (UnixDatagram::bind_addr(&abstract_address).unwrap(), format!("@{name}")),
        ] {
            send(address.as_bytes(), "READY=1").unwrap();
            let mut buffer = [0; 16];
            let length = socket.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], b"READY=1");
        }
    }
}

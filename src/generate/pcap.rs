//! Frames into a capture file, as `net_pcap` ports replay it and other tools show it.

use pcap_file::pcap::{PcapPacket, PcapWriter};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A capture file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the capture file {}: {reason} (it needs a directory that exists, may be written to and has room)", path.display())]
pub struct PcapError {
    /// The file.
    pub path: PathBuf,
    /// What went wrong.
    pub reason: String,
}

/// Writes frames into a new capture file of link type Ethernet, a microsecond apart. A file that exists is
/// replaced. Only the first 65535 bytes of a frame are written.
///
/// # Errors
///
/// The file cannot be made or written. It may then hold some of the frames.
pub fn write_pcap<F: AsRef<[u8]>>(path: &Path, frames: impl IntoIterator<Item = F>) -> Result<(), PcapError> {
    write(path, frames).map_err(|error| PcapError { path: path.to_owned(), reason: reason(error) })
}

fn write<F: AsRef<[u8]>>(path: &Path, frames: impl IntoIterator<Item = F>) -> Result<(), pcap_file::PcapError> {
    let file = BufWriter::new(File::create(path).map_err(pcap_file::PcapError::IoError)?);
    let mut writer = PcapWriter::new(file)?;
    for (position, frame) in frames.into_iter().enumerate() {
        let frame = frame.as_ref();
        let written = frame.get(..MAX_WRITTEN).unwrap_or(frame);
        writer.write_packet(&PcapPacket::new(Duration::from_micros(position as u64), frame.len() as u32, written))?;
    }
    writer.into_writer().flush().map_err(pcap_file::PcapError::IoError)
}

/// The length that the file's header promises no frame to exceed.
const MAX_WRITTEN: usize = 65_535;

/// The library's own text for an I/O error says "reading" whatever was done.
fn reason(error: pcap_file::PcapError) -> String {
    match error {
        pcap_file::PcapError::IoError(error) => error.to_string(),
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcap_file::DataLink;
    use pcap_file::pcap::PcapReader;

    #[test]
    fn what_is_written_can_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("frames.pcap");
        let frames = [vec![1u8; 60], vec![], (0..=255).collect()];
        write_pcap(&path, &frames).unwrap();
        let mut reader = PcapReader::new(File::open(&path).unwrap()).unwrap();
        assert_eq!(reader.header().datalink, DataLink::ETHERNET);
        let mut read = Vec::new();
        while let Some(packet) = reader.next_packet() {
            let packet = packet.unwrap();
            assert_eq!(packet.orig_len as usize, packet.data.len());
            read.push(packet.data.into_owned());
        }
        assert_eq!(read, frames);
    }

    #[test]
    fn an_error_names_the_file_and_the_reason() {
        let error = write_pcap(Path::new("/nonexistent/frames.pcap"), [[0u8; 60]]).unwrap_err().to_string();
        assert!(error.contains("/nonexistent/frames.pcap"), "{error}");
        assert!(error.contains("No such file"), "{error}");
    }
}

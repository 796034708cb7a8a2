//! An environment that needs neither root nor hugepages nor devices.

use std::sync::Once;

use dpdk::Eal;

/// Starts the environment that all tests of a process use. It keeps no files: the prefix only names its empty folder.
pub fn start(prefix: &str) {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let prefix = format!("--file-prefix=dpdk-test-{prefix}");
        let arguments = ["--no-huge", "-m", "128", "--no-pci", "--no-shconf", "--no-telemetry", "--iova-mode=va"];
        Eal::init(arguments.into_iter().chain([prefix.as_str()])).expect("the environment starts");
    });
}

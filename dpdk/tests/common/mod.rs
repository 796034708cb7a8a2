//! What the tests share: an environment that needs neither root nor hugepages nor devices.

use dpdk::Eal;

/// The arguments of such an environment; processes at the same time need prefixes of their own.
pub fn arguments(prefix: &str) -> Vec<String> {
    let prefix = format!("--file-prefix={prefix}-{}", std::process::id());
    ["--no-huge", "-m", "128", "--no-pci", "--no-shconf", "--no-telemetry", "--iova-mode=va", prefix.as_str()]
        .map(str::to_owned)
        .to_vec()
}

/// Starts the environment of a test process.
pub fn start(prefix: &str) -> Eal {
    Eal::init(arguments(prefix)).expect("the environment starts")
}

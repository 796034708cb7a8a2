//! Finds DPDK through pkg-config, translates the allowed part of its headers and compiles the
//! static inline functions. What is missing is said in one sentence that names the packages.

use std::env;
use std::panic;
use std::path::PathBuf;
use std::process::Command;

/// The oldest release this crate is written for.
const OLDEST: &str = "22.11";

const PACKAGES: &str =
    "install dpdk-dev, libclang-dev and pkg-config (Debian: apt-get install dpdk-dev libclang-dev pkg-config)";

/// Libraries whose functions are bound. `rte_log` is a library of its own only in later releases.
const LIBRARIES: [&str; 6] = ["rte_ethdev", "rte_mbuf", "rte_mempool", "rte_ring", "rte_log", "rte_eal"];

const FUNCTIONS: &str = "(shim|ring_bench)_.*\
    |rte_eal_(cleanup|get_runtime_dir)|rte_strerror|rte_version|rte_thread_(un)?register|rte_get_tsc_hz\
    |rte_dev_(probe|remove|name)\
    |rte_pktmbuf_(pool_create|free_bulk)|rte_mempool_avail_count\
    |rte_ring_(create|free|init|get_memsize)|rte_eth_from_rings\
    |rte_eth_find_next|rte_eth_dev_(info_get|get_name_by_port|socket_id|configure|start|stop|close)\
    |rte_eth_dev_(get_mtu|set_mtu|adjust_nb_rx_tx_desc|default_mac_addr_set)\
    |rte_eth_(rx|tx)_queue_setup|rte_eth_tx_done_cleanup|rte_eth_macaddr_get|rte_eth_promiscuous_(enable|disable)\
    |rte_eth_stats_get|rte_eth_xstats_get(_names)?";

const TYPES: &str =
    "rte_eth_(dev_info|conf|rxconf|txconf|stats|xstat|xstat_name|fp_ops)|rte_ether_addr|(shim|ring_bench)_.*";

const VARIABLES: &str = "(SHIM|RING_BENCH)_.*|rte_eth_fp_ops\
    |RTE_(MAX_ETHPORTS|MAX_LCORE|PKTMBUF_HEADROOM|ETHER_HDR_LEN|ETHER_CRC_LEN|ETH_NAME_MAX_LEN|MEMPOOL_CACHE_MAX_SIZE)\
    |RING_F_(SP_ENQ|SC_DEQ)|RTE_LOG_(ERR|WARNING|NOTICE|INFO)|RTE_ETH_SPEED_NUM_UNKNOWN|RTE_ETH_MQ_RX_RSS";

/// Types that Rust only points to: `src/opaque.rs` declares them. Their translation would be long, would differ
/// between releases and may be one that rustc refuses (packed and aligned at once).
const OPAQUE: &str = "rte_(mbuf|mempool|ring|device)(_.*|__.*)?|rte_flow_.*";

fn main() {
    for file in ["wrapper.h", "shim.h", "shim.c", "ring_bench.h", "ring_bench.c"] {
        println!("cargo::rerun-if-changed={file}");
    }
    // An error reported to cargo fails the build without the noise of a panic.
    if let Err(message) = build() {
        println!("cargo::error={message}");
    }
}

fn build() -> Result<(), String> {
    let dpdk = pkg_config::Config::new()
        .cargo_metadata(false)
        .atleast_version(OLDEST)
        .probe("libdpdk")
        .map_err(|error| explain(&error))?;
    let flags = compiler_flags()?;
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo did not set OUT_DIR")?);

    translate_headers(&flags)?.write_to_file(out.join("bindings.rs")).map_err(|error| error.to_string())?;

    let mut shim = cc::Build::new();
    shim.files(["shim.c", "ring_bench.c"]).opt_level(3).warnings(true).cargo_metadata(true);
    for flag in &flags {
        shim.flag(flag);
    }
    // What the compiler says goes before, as warnings.
    shim.try_compile("dpdk_shim")
        .map_err(|_| format!("cannot compile shim.c and ring_bench.c against the headers of DPDK {}", dpdk.version))?;

    for path in &dpdk.link_paths {
        println!("cargo::rustc-link-search=native={}", path.display());
    }
    for library in LIBRARIES.iter().filter(|library| dpdk.libs.iter().any(|found| found == *library)) {
        println!("cargo::rustc-link-lib=dylib={library}");
    }
    // A driver, and pkg-config lists no drivers for a shared DPDK.
    println!("cargo::rustc-link-lib=dylib=rte_net_ring");
    Ok(())
}

fn explain(error: &pkg_config::Error) -> String {
    match error {
        pkg_config::Error::ProbeFailure { output, .. } if String::from_utf8_lossy(&output.stdout).is_empty() => {
            let installed = Command::new(pkg_config_program()).args(["--modversion", "libdpdk"]).output();
            match installed {
                Ok(version) if version.status.success() => format!(
                    "DPDK {} is too old, {OLDEST} or later is needed: {PACKAGES}",
                    String::from_utf8_lossy(&version.stdout).trim()
                ),
                _ => format!("pkg-config finds no DPDK (libdpdk {OLDEST} or later): {PACKAGES}"),
            }
        }
        _ => format!("pkg-config finds no DPDK (libdpdk {OLDEST} or later): {PACKAGES}"),
    }
}

fn pkg_config_program() -> String {
    env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".to_owned())
}

/// The flags DPDK demands, `-include rte_config.h` and `-march` among them, which the crate
/// `pkg-config` does not hand on.
fn compiler_flags() -> Result<Vec<String>, String> {
    let output = Command::new(pkg_config_program())
        .args(["--cflags", "libdpdk"])
        .output()
        .map_err(|error| format!("cannot run pkg-config ({error}): {PACKAGES}"))?;
    if !output.status.success() {
        return Err(format!("pkg-config cannot tell the compiler flags of libdpdk: {PACKAGES}"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect())
}

fn translate_headers(flags: &[String]) -> Result<bindgen::Bindings, String> {
    let builder = bindgen::Builder::default()
        .header("wrapper.h")
        .clang_args(flags)
        .allowlist_function(FUNCTIONS)
        .allowlist_type(TYPES)
        .allowlist_var(VARIABLES)
        .blocklist_type(OPAQUE)
        .raw_line("use crate::opaque::{rte_device, rte_mbuf, rte_mempool, rte_ring};")
        .layout_tests(true)
        .generate_comments(false)
        .derive_default(false)
        .derive_debug(false)
        .prepend_enum_name(false);
    // bindgen panics when it cannot load libclang.
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let result = panic::catch_unwind(panic::AssertUnwindSafe(|| builder.generate()));
    panic::set_hook(hook);
    match result {
        Ok(bindings) => bindings.map_err(|error| format!("bindgen cannot translate DPDK's headers: {error}")),
        Err(_) => Err(format!("bindgen finds no usable libclang: {PACKAGES}")),
    }
}

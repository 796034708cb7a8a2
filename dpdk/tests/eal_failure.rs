//! An environment that does not start.

use dpdk::{Eal, EalError};

#[test]
fn says_what_is_wrong_and_what_to_do() {
    assert!(matches!(Eal::init(["--no\0pci"]), Err(EalError::BadArgument { .. })));

    let error =
        Eal::init(["--huge-dir=/nonexistent", "--no-pci", "--no-telemetry", "--file-prefix=dpdk-test-eal-failure"])
            .expect_err("there is no such folder")
            .to_string();
    assert!(error.contains("Cannot get hugepage information"), "{error}");
    assert!(error.contains("vm.nr_hugepages"), "{error}");
    assert!(matches!(Eal::init(["--no-huge"]), Err(EalError::AlreadyStarted)));
}

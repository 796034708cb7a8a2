"""Thruway starts on the NICs."""

from . import check, require

# A transmit ring, three bands before it and what the device gave back; what a worker has in its cache and in its hands;
# control's cache.
PLACES_BY_QUEUE, BY_WORKER, BY_CONTROL = 1024 + 3 * 1024 + 64, 768 + 128, 768


@check("starts, and the links come up")
def starts(rig):
    ports = rig.router.ports()
    drivers = [port["driver"] for port in ports.values()]
    require(drivers == [rig.kind.driver] * 2, f"the drivers are {drivers}")
    completions = [port["tx_completion"] for port in ports.values()]
    require(completions == [rig.kind.completion] * 2, f"it is known by {completions} that packets have left")
    require(rig.router.links_are_up(), f"a link stays down: {rig.router.ports()}")
    unexpected = [line for line in rig.router.log().splitlines() if " INFO " not in line]
    require(not unexpected, f"the log has {unexpected}")
    rig.idle_buffers = rig.router.in_use()
    pool = ports["p0"]["pool"]
    # It must not run dry with everything else full as well.
    full = 2 * rig.kind.queues * PLACES_BY_QUEUE + rig.kind.queues * BY_WORKER + BY_CONTROL
    require(pool["buffers"] >= rig.idle_buffers + full, f"{pool} cannot fill receive rings and {full} other places")
    return f"{rig.idle_buffers} of {pool['buffers']} buffers wait in receive rings"

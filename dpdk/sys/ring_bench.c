/*
 * Whole loops over rte_ring, which is static inline functions, to measure it as a program in C has it: nothing is
 * called per item or per bulk, and what is known of the ring and of the bulk when the loop is compiled is a constant.
 *
 * The loops that run on several threads end soon after `stop` has been set, but not before the first call. Each has its twin in Rust, for the other
 * queues, which does and counts the same.
 */
#include <rte_config.h>

#include <rte_pause.h>

#include "ring_bench.h"

/* A consumer looks how full the ring is every so many calls, as that takes a cache line from its producer. */
#define LOOK_EVERY 1024

/* What one that has the lock takes before it gives the lock up, and how often it looks for more once it finds nothing. */
#define QUOTA 64
#define TRAIN 32
#define LINGER 4

static __rte_always_inline bool stopped(const bool *stop)
{
	return __atomic_load_n(stop, __ATOMIC_RELAXED);
}

static __rte_always_inline unsigned int enqueue(struct rte_ring *ring, bool single, void **burst, uint32_t bulk)
{
	return single ? rte_ring_sp_enqueue_bulk(ring, burst, bulk, NULL)
		      : rte_ring_mp_enqueue_bulk(ring, burst, bulk, NULL);
}

static __rte_always_inline unsigned int dequeue(struct rte_ring *ring, bool single, void **burst, uint32_t bulk)
{
	return single ? rte_ring_sc_dequeue_burst(ring, burst, bulk, NULL)
		      : rte_ring_mc_dequeue_burst(ring, burst, bulk, NULL);
}

static __rte_always_inline uint64_t pass(struct rte_ring *ring, bool single, void **burst, uint32_t bulk, uint64_t times)
{
	uint64_t items = 0;

	while (times-- > 0) {
		enqueue(ring, single, burst, bulk);
		items += dequeue(ring, single, burst, bulk);
	}
	return items;
}

/* Puts in a bulk, if there is room. The counts are the caller's own variable: they are kept in registers. */
static __rte_always_inline void give(struct rte_ring *ring, bool single, void **burst, uint32_t bulk,
	struct ring_bench_counts *counts)
{
	unsigned int count = enqueue(ring, single, burst, bulk);

	counts->calls++;
	counts->given += count;
	if (count == 0) {
		counts->idle++;
		rte_pause();
	}
}

static __rte_always_inline void produce(struct rte_ring *ring, bool single, void **burst, uint32_t bulk,
	const bool *stop, struct ring_bench_counts *counts)
{
	struct ring_bench_counts sum = { 0 };

	do {
		give(ring, single, burst, bulk, &sum);
	} while (!stopped(stop));
	*counts = sum;
}

static __rte_always_inline void consume(struct rte_ring *ring, bool single, void **burst, uint32_t bulk,
	const bool *stop, struct ring_bench_counts *counts)
{
	uint64_t taken = 0, calls = 0, idle = 0, looks = 0, seen = 0;

	do {
		unsigned int count = dequeue(ring, single, burst, bulk);

		taken += count;
		if (count == 0) {
			idle++;
			rte_pause();
		}
		if (++calls % LOOK_EVERY == 0) {
			looks++;
			seen += rte_ring_count(ring);
		}
	} while (!stopped(stop));
	*counts = (struct ring_bench_counts){
		.taken = taken, .calls = calls, .idle = idle, .looks = looks, .seen = seen
	};
}

/* Takes what there is, if nobody else does. */
static __rte_always_inline uint64_t take_turn(struct rte_ring *ring, int *lock, void **train)
{
	unsigned int taken = 0, linger = LINGER;

	if (__atomic_load_n(lock, __ATOMIC_RELAXED) != 0 || __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE) != 0)
		return 0;
	while (taken < QUOTA) {
		unsigned int count = rte_ring_sc_dequeue_burst(ring, train, TRAIN, NULL);

		taken += count;
		if (count > 0) {
			linger = LINGER;
		} else if (linger-- > 0) {
			rte_pause();
		} else {
			break;
		}
	}
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
	return taken;
}

static __rte_always_inline void share(struct rte_ring *ring, int *lock, void **train, void **burst, uint32_t bulk,
	const bool *stop, struct ring_bench_counts *counts)
{
	struct ring_bench_counts sum = { 0 };

	do {
		give(ring, false, burst, bulk, &sum);
		sum.taken += take_turn(ring, lock, train);
	} while (!stopped(stop));
	*counts = sum;
}

/* Does `what` with the bulk as a constant BULK, if it is one of the usual ones. */
#define WITH_BULK(what) \
	do { \
		switch (bulk) { \
		case 1: { enum { BULK = 1 }; what; break; } \
		case 8: { enum { BULK = 8 }; what; break; } \
		case 32: { enum { BULK = 32 }; what; break; } \
		default: { const uint32_t BULK = bulk; what; } \
		} \
	} while (0)

uint64_t ring_bench_pass(struct rte_ring *ring, bool single, void **burst, uint32_t bulk, uint64_t times)
{
	uint64_t items = 0;

	if (single)
		WITH_BULK(items = pass(ring, true, burst, BULK, times));
	else
		WITH_BULK(items = pass(ring, false, burst, BULK, times));
	return items;
}

void ring_bench_produce(struct rte_ring *ring, bool single, void **burst, uint32_t bulk, const bool *stop,
	struct ring_bench_counts *counts)
{
	if (single)
		WITH_BULK(produce(ring, true, burst, BULK, stop, counts));
	else
		WITH_BULK(produce(ring, false, burst, BULK, stop, counts));
}

void ring_bench_consume(struct rte_ring *ring, bool single, void **burst, uint32_t bulk, const bool *stop,
	struct ring_bench_counts *counts)
{
	if (single)
		WITH_BULK(consume(ring, true, burst, BULK, stop, counts));
	else
		WITH_BULK(consume(ring, false, burst, BULK, stop, counts));
}

void ring_bench_share(struct rte_ring *ring, int *lock, void **train, void **burst, uint32_t bulk,
	const bool *stop, struct ring_bench_counts *counts)
{
	WITH_BULK(share(ring, lock, train, burst, BULK, stop, counts));
}

/* The functions of ring_bench.c. */
#ifndef RING_BENCH_H
#define RING_BENCH_H

#include <rte_config.h>

#include <stdbool.h>
#include <stdint.h>

#include <rte_ring.h>

/* What a loop has done. */
struct ring_bench_counts {
	uint64_t given;     /* items put into the ring */
	uint64_t taken;     /* items taken out of it */
	uint64_t calls;     /* enqueues of a producer, dequeues of a consumer */
	uint64_t idle;      /* those that moved nothing */
	uint64_t looks;     /* how often it was looked how full the ring was */
	uint64_t seen;      /* items in it then, added up */
};

/* Most items of a bulk. */
static const uint32_t RING_BENCH_MAX_BULK = 64;

uint64_t ring_bench_pass(struct rte_ring *ring, bool single, void **burst, uint32_t bulk, uint64_t times);
void ring_bench_produce(struct rte_ring *ring, bool single, void **burst, uint32_t bulk, const bool *stop,
	struct ring_bench_counts *counts);
void ring_bench_consume(struct rte_ring *ring, bool single, void **burst, uint32_t bulk, const bool *stop,
	struct ring_bench_counts *counts);
void ring_bench_share(struct rte_ring *ring, int *lock, void **train, void **burst, uint32_t bulk,
	const bool *stop, struct ring_bench_counts *counts);

#endif

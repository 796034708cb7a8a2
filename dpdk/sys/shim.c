/*
 * The parts of DPDK that exist only as static inline functions or macros, one function each.
 * Whatever touches packets takes a whole burst.
 */
#define _GNU_SOURCE
#include <rte_config.h>

#include <stdio.h>
#include <sys/types.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>

#include "shim.h"

/* Field widths that layout.rs takes for granted; the offsets it takes from shim.h. */
_Static_assert(sizeof(struct rte_mbuf) == 128, "rte_mbuf is two cache lines");
_Static_assert(sizeof(((struct rte_mbuf *)0)->buf_addr) == sizeof(void *), "buf_addr");
_Static_assert(sizeof(((struct rte_mbuf *)0)->data_off) == 2, "data_off");
_Static_assert(sizeof(((struct rte_mbuf *)0)->nb_segs) == 2, "nb_segs");
_Static_assert(sizeof(((struct rte_mbuf *)0)->port) == 2, "port");
_Static_assert(sizeof(((struct rte_mbuf *)0)->ol_flags) == 8, "ol_flags");
_Static_assert(sizeof(((struct rte_mbuf *)0)->pkt_len) == 4, "pkt_len");
_Static_assert(sizeof(((struct rte_mbuf *)0)->data_len) == 2, "data_len");
_Static_assert(sizeof(((struct rte_mbuf *)0)->buf_len) == 2, "buf_len");
_Static_assert(sizeof(((struct rte_mbuf *)0)->hash.rss) == 4, "hash.rss");
_Static_assert(sizeof(((struct rte_mbuf *)0)->hash.fdir.hi) == 4, "hash.fdir.hi");
_Static_assert(offsetof(struct rte_mbuf, hash.fdir.hi) != offsetof(struct rte_mbuf, hash.rss),
	"a list's bytes lie beside the hash");
_Static_assert(sizeof(((struct rte_mbuf *)0)->tx_offload) == 8, "tx_offload");
_Static_assert(RTE_MBUF_TSO_SEGSZ_BITS == 16 && RTE_MBUF_L4_LEN_BITS == 8, "lengths in tx_offload");
_Static_assert(sizeof(((struct rte_mbuf *)0)->next) == sizeof(void *), "next");
_Static_assert(offsetof(struct rte_mbuf, data_len) == offsetof(struct rte_mbuf, pkt_len) + 4,
	"pkt_len and data_len are read by one load");
_Static_assert(sizeof(struct rte_eth_fp_ops) == 128, "rte_eth_fp_ops is two cache lines");
_Static_assert(offsetof(struct rte_eth_fp_ops, rx_pkt_burst) / 64 == 0 && offsetof(struct rte_eth_fp_ops, rxq) / 64 == 0,
	"reception has the first cache line");
_Static_assert(offsetof(struct rte_eth_fp_ops, tx_pkt_burst) / 64 == 1 && offsetof(struct rte_eth_fp_ops, txq) / 64 == 1,
	"transmission has the second cache line");
_Static_assert(sizeof(struct rte_ether_addr) == 6, "rte_ether_addr");

static shim_log_fn log_sink;

static ssize_t log_write(void *cookie, const char *text, size_t length)
{
	(void)cookie;
	log_sink((uint32_t)rte_log_cur_msg_loglevel(), text, length);
	return (ssize_t)length;
}

/* Sends the log of DPDK to `sink`, for the life of the process. */
int shim_log_to(shim_log_fn sink)
{
	cookie_io_functions_t functions = { .write = log_write };
	FILE *stream;

	log_sink = sink;
	stream = fopencookie(NULL, "w", functions);
	if (stream == NULL)
		return -1;
	return rte_openlog_stream(stream);
}

static ssize_t complaint_write(void *cookie, const char *text, size_t length)
{
	(void)cookie;
	log_sink(RTE_LOG_ERR, text, length);
	return (ssize_t)length;
}

/* Starts DPDK; what it writes to the C library's stderr on the way goes to the log's sink as well. */
int shim_eal_init(int count, char **arguments)
{
	cookie_io_functions_t functions = { .write = complaint_write };
	FILE *before = stderr, *stream = NULL;
	int result;

	if (log_sink != NULL)
		stream = fopencookie(NULL, "w", functions);
	if (stream != NULL) {
		setvbuf(stream, NULL, _IOLBF, BUFSIZ);
		stderr = stream;
	}
	result = rte_eal_init(count, arguments);
	stderr = before;
	if (stream != NULL)
		fclose(stream);
	return result;
}

int shim_errno(void)
{
	return rte_errno;
}

unsigned int shim_lcore_id(void)
{
	return rte_lcore_id();
}

uint64_t shim_tsc(void)
{
	return rte_rdtsc();
}

uint16_t shim_rx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **packets, uint16_t count)
{
	return rte_eth_rx_burst(port, queue, packets, count);
}

uint16_t shim_tx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **packets, uint16_t count)
{
	return rte_eth_tx_burst(port, queue, packets, count);
}

uint16_t shim_tx_prepare(uint16_t port, uint16_t queue, struct rte_mbuf **packets, uint16_t count)
{
	return rte_eth_tx_prepare(port, queue, packets, count);
}

int shim_tx_descriptor_status(uint16_t port, uint16_t queue, uint16_t offset)
{
	return rte_eth_tx_descriptor_status(port, queue, offset);
}

int shim_link_get_nowait(uint16_t port, struct shim_link *link)
{
	struct rte_eth_link state;
	int result = rte_eth_link_get_nowait(port, &state);

	if (result != 0)
		return result;
	link->speed_mbps = state.link_speed;
	link->up = state.link_status;
	link->full_duplex = state.link_duplex;
	return 0;
}

int shim_mbuf_alloc_bulk(struct rte_mempool *pool, struct rte_mbuf **packets, unsigned int count)
{
	return rte_pktmbuf_alloc_bulk(pool, packets, count);
}

void shim_mbuf_free(struct rte_mbuf *packet)
{
	rte_pktmbuf_free(packet);
}

void shim_mbuf_free_segment(struct rte_mbuf *segment)
{
	rte_pktmbuf_free_seg(segment);
}

void shim_mbuf_hold(struct rte_mbuf *segment)
{
	rte_mbuf_refcnt_update(segment, 1);
}

unsigned int shim_mbuf_references(const struct rte_mbuf *segment)
{
	return rte_mbuf_refcnt_read(segment);
}

int shim_mbuf_chain(struct rte_mbuf *head, struct rte_mbuf *tail)
{
	return rte_pktmbuf_chain(head, tail);
}

unsigned int shim_ring_enqueue_burst(struct rte_ring *ring, struct rte_mbuf **packets, unsigned int count)
{
	return rte_ring_enqueue_burst(ring, (void **)packets, count, NULL);
}

unsigned int shim_ring_dequeue_burst(struct rte_ring *ring, struct rte_mbuf **packets, unsigned int count)
{
	return rte_ring_dequeue_burst(ring, (void **)packets, count, NULL);
}

unsigned int shim_ring_count(const struct rte_ring *ring)
{
	return rte_ring_count(ring);
}

unsigned int shim_ring_capacity(const struct rte_ring *ring)
{
	return rte_ring_get_capacity(ring);
}

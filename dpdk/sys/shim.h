/* The functions of shim.c, and the constants and offsets that only a C compiler can tell. */
#ifndef SHIM_H
#define SHIM_H

#include <rte_config.h>

#include <stddef.h>
#include <stdint.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>

typedef void (*shim_log_fn)(uint32_t level, const char *text, size_t length);

/* The state of a link, without the bit fields of struct rte_eth_link. */
struct shim_link {
	uint32_t speed_mbps;
	uint8_t up;
	uint8_t full_duplex;
};

int shim_errno(void);
unsigned int shim_lcore_id(void);
uint64_t shim_tsc(void);
int shim_log_to(shim_log_fn sink);
int shim_eal_init(int count, char **arguments);

uint16_t shim_rx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **packets, uint16_t count);
uint16_t shim_tx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **packets, uint16_t count);
uint16_t shim_tx_prepare(uint16_t port, uint16_t queue, struct rte_mbuf **packets, uint16_t count);
int shim_tx_descriptor_status(uint16_t port, uint16_t queue, uint16_t offset);
int shim_link_get_nowait(uint16_t port, struct shim_link *link);

int shim_mbuf_alloc_bulk(struct rte_mempool *pool, struct rte_mbuf **packets, unsigned int count);
void shim_mbuf_free(struct rte_mbuf *packet);
void shim_mbuf_free_segment(struct rte_mbuf *segment);
void shim_mbuf_hold(struct rte_mbuf *segment);
unsigned int shim_mbuf_references(const struct rte_mbuf *segment);
int shim_mbuf_chain(struct rte_mbuf *head, struct rte_mbuf *tail);

unsigned int shim_ring_enqueue_burst(struct rte_ring *ring, struct rte_mbuf **packets, unsigned int count);
unsigned int shim_ring_dequeue_burst(struct rte_ring *ring, struct rte_mbuf **packets, unsigned int count);
unsigned int shim_ring_count(const struct rte_ring *ring);
unsigned int shim_ring_capacity(const struct rte_ring *ring);

/* Macros that bindgen cannot evaluate. */
static const int SHIM_TX_DESC_DONE = RTE_ETH_TX_DESC_DONE;
static const uint64_t SHIM_RX_OFFLOAD_IPV4_CKSUM = RTE_ETH_RX_OFFLOAD_IPV4_CKSUM;
static const uint64_t SHIM_RX_OFFLOAD_SCATTER = RTE_ETH_RX_OFFLOAD_SCATTER;
static const uint64_t SHIM_RX_OFFLOAD_RSS_HASH = RTE_ETH_RX_OFFLOAD_RSS_HASH;
static const uint64_t SHIM_RX_OFFLOAD_UDP_CKSUM = RTE_ETH_RX_OFFLOAD_UDP_CKSUM;
static const uint64_t SHIM_RX_OFFLOAD_TCP_CKSUM = RTE_ETH_RX_OFFLOAD_TCP_CKSUM;
static const uint64_t SHIM_RX_OFFLOAD_TCP_LRO = RTE_ETH_RX_OFFLOAD_TCP_LRO;
static const uint64_t SHIM_TX_OFFLOAD_IPV4_CKSUM = RTE_ETH_TX_OFFLOAD_IPV4_CKSUM;
static const uint64_t SHIM_TX_OFFLOAD_UDP_CKSUM = RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
static const uint64_t SHIM_TX_OFFLOAD_TCP_CKSUM = RTE_ETH_TX_OFFLOAD_TCP_CKSUM;
static const uint64_t SHIM_TX_OFFLOAD_TCP_TSO = RTE_ETH_TX_OFFLOAD_TCP_TSO;
static const uint64_t SHIM_TX_OFFLOAD_MULTI_SEGS = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
static const uint64_t SHIM_TX_OFFLOAD_MBUF_FAST_FREE = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
static const uint64_t SHIM_RSS_IP = RTE_ETH_RSS_IP;
static const uint64_t SHIM_RSS_TCP = RTE_ETH_RSS_TCP;
static const uint64_t SHIM_RSS_UDP = RTE_ETH_RSS_UDP;
static const uint64_t SHIM_MBUF_RX_IP_CKSUM_MASK = RTE_MBUF_F_RX_IP_CKSUM_MASK;
static const uint64_t SHIM_MBUF_RX_IP_CKSUM_BAD = RTE_MBUF_F_RX_IP_CKSUM_BAD;
static const uint64_t SHIM_MBUF_RX_IP_CKSUM_GOOD = RTE_MBUF_F_RX_IP_CKSUM_GOOD;
static const uint64_t SHIM_MBUF_RX_L4_CKSUM_MASK = RTE_MBUF_F_RX_L4_CKSUM_MASK;
static const uint64_t SHIM_MBUF_RX_L4_CKSUM_BAD = RTE_MBUF_F_RX_L4_CKSUM_BAD;
static const uint64_t SHIM_MBUF_RX_L4_CKSUM_GOOD = RTE_MBUF_F_RX_L4_CKSUM_GOOD;
static const uint64_t SHIM_MBUF_RX_LRO = RTE_MBUF_F_RX_LRO;
static const uint64_t SHIM_MBUF_RX_RSS_HASH = RTE_MBUF_F_RX_RSS_HASH;
static const uint64_t SHIM_MBUF_TX_OFFLOAD_MASK = RTE_MBUF_F_TX_OFFLOAD_MASK;
static const uint64_t SHIM_MBUF_TX_IP_CKSUM = RTE_MBUF_F_TX_IP_CKSUM;
static const uint64_t SHIM_MBUF_TX_TCP_CKSUM = RTE_MBUF_F_TX_TCP_CKSUM;
static const uint64_t SHIM_MBUF_TX_UDP_CKSUM = RTE_MBUF_F_TX_UDP_CKSUM;
static const uint64_t SHIM_MBUF_TX_TCP_SEG = RTE_MBUF_F_TX_TCP_SEG;
static const uint64_t SHIM_MBUF_TX_IPV4 = RTE_MBUF_F_TX_IPV4;
static const uint64_t SHIM_MBUF_TX_IPV6 = RTE_MBUF_F_TX_IPV6;

/* Where the lengths lie in the word tx_offload, in bits. */
static const uint64_t SHIM_MBUF_L2_LEN_OFS = RTE_MBUF_L2_LEN_OFS;
static const uint64_t SHIM_MBUF_L3_LEN_OFS = RTE_MBUF_L3_LEN_OFS;
static const uint64_t SHIM_MBUF_L4_LEN_OFS = RTE_MBUF_L4_LEN_OFS;
static const uint64_t SHIM_MBUF_TSO_SEGSZ_OFS = RTE_MBUF_TSO_SEGSZ_OFS;
static const uint64_t SHIM_MBUF_L2_LEN_BITS = RTE_MBUF_L2_LEN_BITS;
static const uint64_t SHIM_MBUF_L3_LEN_BITS = RTE_MBUF_L3_LEN_BITS;

/* Where the fields of struct rte_mbuf are that Rust reads and writes itself. */
static const uint64_t SHIM_MBUF_SIZE = sizeof(struct rte_mbuf);
static const uint64_t SHIM_MBUF_BUF_ADDR = offsetof(struct rte_mbuf, buf_addr);
static const uint64_t SHIM_MBUF_DATA_OFF = offsetof(struct rte_mbuf, data_off);
static const uint64_t SHIM_MBUF_NB_SEGS = offsetof(struct rte_mbuf, nb_segs);
static const uint64_t SHIM_MBUF_PORT = offsetof(struct rte_mbuf, port);
static const uint64_t SHIM_MBUF_OL_FLAGS = offsetof(struct rte_mbuf, ol_flags);
static const uint64_t SHIM_MBUF_PKT_LEN = offsetof(struct rte_mbuf, pkt_len);
static const uint64_t SHIM_MBUF_DATA_LEN = offsetof(struct rte_mbuf, data_len);
static const uint64_t SHIM_MBUF_BUF_LEN = offsetof(struct rte_mbuf, buf_len);
static const uint64_t SHIM_MBUF_HASH_RSS = offsetof(struct rte_mbuf, hash.rss);
static const uint64_t SHIM_MBUF_HASH_HIGH = offsetof(struct rte_mbuf, hash.fdir.hi);
static const uint64_t SHIM_MBUF_TX_OFFLOAD = offsetof(struct rte_mbuf, tx_offload);
static const uint64_t SHIM_MBUF_NEXT = offsetof(struct rte_mbuf, next);

/* What the C compiler thinks of struct rte_eth_fp_ops, to hold bindgen's translation against. */
static const uint64_t SHIM_FP_OPS_SIZE = sizeof(struct rte_eth_fp_ops);
static const uint64_t SHIM_FP_OPS_RX_BURST = offsetof(struct rte_eth_fp_ops, rx_pkt_burst);
static const uint64_t SHIM_FP_OPS_RXQ_DATA = offsetof(struct rte_eth_fp_ops, rxq.data);
static const uint64_t SHIM_FP_OPS_RXQ_CLBK = offsetof(struct rte_eth_fp_ops, rxq.clbk);
static const uint64_t SHIM_FP_OPS_TX_BURST = offsetof(struct rte_eth_fp_ops, tx_pkt_burst);
static const uint64_t SHIM_FP_OPS_TXQ_DATA = offsetof(struct rte_eth_fp_ops, txq.data);
static const uint64_t SHIM_FP_OPS_TXQ_CLBK = offsetof(struct rte_eth_fp_ops, txq.clbk);

#endif

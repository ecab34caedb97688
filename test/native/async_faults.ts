/**
 * Sixteen faults of phases, counts and asynchronous accesses, written before the CPU device had Hopper's instructions. The kernel of
 * fixtures/async_faults.cu is a small main loop as those of native/device: tiles copied by the copy engine, in part for both blocks of a cluster,
 * wgmma, and an exchange of sums by st.async. It plants one of the faults by number; async_faults.simt.test.ts runs them all.
 */
export interface AsyncFault {
  readonly id: string
  /** The fault, in one sentence. */
  readonly wrong: string
}

export const asyncFaults: readonly AsyncFault[] = [
  { id: 'wrong_parity', wrong: 'A consumer waits for the phase before the one that it needs.' },
  { id: 'missing_expect', wrong: 'The producer arrives at a full barrier without announcing bytes.' },
  { id: 'wrong_byte_count', wrong: 'The producer announces half of the bytes of a stage.' },
  { id: 'too_few_arrivals', wrong: 'A consumer releases a stage to its own block only.' },
  { id: 'double_release', wrong: 'A consumer releases a stage twice.' },
  { id: 'missing_proxy_fence', wrong: 'Threads store a tile and meet, but do not publish it to the asynchronous proxy before wgmma reads it.' },
  { id: 'early_overwrite', wrong: 'The producer refills a stage without waiting for its release.' },
  { id: 'wrong_barrier', wrong: 'A consumer waits at the empty barrier of a stage instead of the full one.' },
  { id: 'missing_products_wait', wrong: 'Sums are used while their wgmmas are in flight.' },
  { id: 'wrong_swizzle', wrong: 'A descriptor says that rows have the 32-byte swizzle, and the copy engine wrote them with that of 128 bytes.' },
  { id: 'wrong_descriptor', wrong: 'A descriptor starts one row further down.' },
  { id: 'multicast_mask', wrong: 'A copy goes to one block of the cluster fewer.' },
  { id: 'missing_cluster_barrier', wrong: 'A block ends without waiting for the other, which still writes to it.' },
  { id: 'registers_over_budget', wrong: 'Warpgroups ask for more registers than the block has.' },
  { id: 'sent_bytes', wrong: 'A block expects 16 bytes more by st.async than it is sent.' },
  { id: 'unaligned_box', wrong: 'A box is copied to a place that no swizzle begins at.' },
]

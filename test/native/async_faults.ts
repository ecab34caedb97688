/**
 * Sixteen faults of phases, counts and asynchronous accesses, written before the CPU device had Hopper's instructions. The kernel of
 * fixtures/async_faults.cu is a small main loop as those of native/device: tiles copied by the copy engine, in part for both blocks of a cluster,
 * wgmma, and an exchange of sums by st.async. It plants one of the faults by number; async_faults.simt.test.ts runs them all.
 */
export interface AsyncFault {
  readonly id: string
  /** The fault, in one sentence. */
  readonly wrong: string
  /** The message, up to the line that it names first. */
  readonly message: RegExp
  /** A part of that line. */
  readonly line: string
}

export const asyncFaults: readonly AsyncFault[] = [
  {
    id: 'wrong_parity',
    wrong: 'A consumer waits for the phase before the one that it needs.',
    message: /data race: shared bytes from 0 on are written at /,
    line: 'copy_box(memory.a(stage)',
  },
  {
    id: 'missing_expect',
    wrong: 'The producer arrives at a full barrier without announcing bytes.',
    message: /data race: shared bytes from 0 on are read at /,
    line: 'multiply_rows',
  },
  {
    id: 'wrong_byte_count',
    wrong: 'The producer announces half of the bytes of a stage.',
    message: /bytes of the copy started at /,
    line: 'copy_box_to_all<blocks>',
  },
  {
    id: 'too_few_arrivals',
    wrong: 'A consumer releases a stage to its own block only.',
    message: /no thread can go on; 1 thread waits in block 0 at /,
    line: 'memory.empty(stage).wait(',
  },
  {
    id: 'double_release',
    wrong: 'A consumer releases a stage twice.',
    message: /data race: shared bytes from 24576 on are written at /,
    line: 'copy_box_to_all<blocks>',
  },
  {
    id: 'missing_proxy_fence',
    wrong: 'Threads store a tile and meet, but do not publish it to the asynchronous proxy before wgmma reads it.',
    message: /shared bytes from 32768 on are read asynchronously at /,
    line: 'multiply_rows',
  },
  {
    id: 'early_overwrite',
    wrong: 'The producer refills a stage without waiting for its release.',
    message: /an arrival too many at /,
    line: 'arrive_expecting',
  },
  {
    id: 'wrong_barrier',
    wrong: 'A consumer waits at the empty barrier of a stage instead of the full one.',
    message: /128 threads wait in block 0 at /,
    line: 'memory.empty(stage).wait(parity)',
  },
  {
    id: 'missing_products_wait',
    wrong: 'Sums are used while their wgmmas are in flight.',
    message: /sums are used at /,
    line: 'pin(sums)',
  },
  {
    id: 'wrong_swizzle',
    wrong: 'A descriptor says that rows have the 32-byte swizzle, and the copy engine wrote them with that of 128 bytes.',
    message: /a wgmma at /,
    line: 'multiply_rows',
  },
  {
    id: 'wrong_descriptor',
    wrong: 'A descriptor starts one row further down.',
    message: /the matrix of a wgmma at /,
    line: 'multiply_rows',
  },
  {
    id: 'multicast_mask',
    wrong: 'A copy goes to one block of the cluster fewer.',
    message: /128 threads wait in block 1 at /,
    line: 'memory.full(stage).wait(',
  },
  {
    id: 'missing_cluster_barrier',
    wrong: 'A block ends without waiting for the other, which still writes to it.',
    message: /block 0 of the cluster is accessed at /,
    line: 'arrive_at(',
  },
  {
    id: 'registers_over_budget',
    wrong: 'Warpgroups ask for more registers than the block has.',
    message: /warpgroups set 504 registers for their threads at /,
    line: '_registers<',
  },
  {
    id: 'sent_bytes',
    wrong: 'A block expects 16 bytes more by st.async than it is sent.',
    message: /128 threads wait in block 1 at /,
    line: 'wait_across_blocks(0)',
  },
  {
    id: 'unaligned_box',
    wrong: 'A box is copied to a place that no swizzle begins at.',
    message: /a box is copied at /,
    line: 'copy_box(memory.a(stage)',
  },
]

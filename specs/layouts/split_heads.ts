/** Attention heads made contiguous: logical (batch, seq, head, headDim), stored head by head so that a matmul finds one stride per head. */
import { layout } from 'heddle'

export const splitHeads = layout('split_heads', ['b', 's', 'h', 'd'], {
  offset: (i, n) => ((i.b * n.h + i.h) * n.s + i.s) * n.d + i.d,
})

/**
 * What the shipped graphs are usually run with: BERT-base over 32 sequences of 128 tokens; Marian's base model, 8 sentences of 128
 * tokens with 4 beams, in the middle of a cache of 128 places.
 */

/** Dims: b batch, s seq, h heads, d headDim. */
export const bertRows = { b: 32, s: 128, h: 12, d: 64 } as const

/** An encoder layer's; i inner. */
export const bertLayer = { ...bertRows, i: 3072 } as const

/** Of embeddings: v vocab, p positions; u token types. */
export const bertTables = { ...bertRows, v: 30_522, p: 512 } as const

/** Dims of a decoder: b batch, w beams, h heads, d headDim. */
export const marianRows = { b: 8, w: 4, h: 8, d: 64 } as const

/** A decoder layer's: s places of the cache, t of the memory, i inner. */
export const marianLayer = { ...marianRows, s: 128, t: 128, i: 2048 } as const

export const marianVocab = 58_101

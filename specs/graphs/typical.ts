/**
 * Usual sizes of the shipped graphs: BERT-base over 32 sequences of 128 tokens; Marian's base model, 8 sentences of 128 tokens with 4 beams, in the
 * middle of a cache of 128 positions; LLaMA-3 8B.
 */

/** Dims: b batch, s seq, h heads, d headDim. */
export const bertRows = { b: 32, s: 128, h: 12, d: 64 } as const

/** An encoder layer's; i inner. */
export const bertLayer = { ...bertRows, i: 3072 } as const

/** Of embeddings: v vocab, p positions; u token types. */
export const bertTables = { ...bertRows, v: 30_522, p: 512 } as const

/** Dims of a decoder: b batch, w beams, h heads, d headDim. */
export const marianRows = { b: 8, w: 4, h: 8, d: 64 } as const

/** A decoder layer's: s positions of the cache, t of the memory, i inner. */
export const marianLayer = { ...marianRows, s: 128, t: 128, i: 2048 } as const

export const marianVocab = 58_101

/**
 * LLaMA-3 8B: r rows of a step, u positions of their caches, n hidden, h heads, g heads of keys and values, d headDim, i inner, p positions and e
 * pairs of the rotation's tables.
 */
export const llamaStep = { r: 8, u: 1024, n: 4096, h: 32, g: 8, d: 128, i: 14_336, p: 8192, e: 64 } as const

/** A prompt of 512 tokens: t tokens, b sequences, s tokens of the longest. */
export const llamaPrompt = { ...llamaStep, r: 1, t: 512, b: 1, s: 512 } as const

export const llamaVocab = 128_256

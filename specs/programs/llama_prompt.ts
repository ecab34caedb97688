/**
 * The LLaMA family reading tokens: runs of any number of sequences, each at the positions after those that its cache row holds already. A run is a
 * whole prompt, a part of one, or an addition to a conversation. Logits of some tokens, or the negative log-likelihood of the following tokens, are
 * returned on request. Dims: t tokens, b sequences, s tokens of the longest run, k tokens whose logits are wanted, r cache rows, u their places, n
 * hidden, h heads, g heads of keys and values, d headDim, i inner, v vocab, p positions and e pairs of the rotation's tables.
 */
import { program, tensor } from 'heddle'
import { llamaLikelihood, llamaSomeLogits, llamaWords } from '../graphs/llama_ends.js'
import { cacheStates, type LlamaProgram, llamaConfig, llamaSizes, llamaStack } from './llama.js'

export interface LlamaPromptProgram extends LlamaProgram {
  /** Result for the tokens at rows `wanted`: nothing, their logits, or the negative log-likelihood of the `targets` after them. */
  readonly gives: 'nothing' | 'logits' | 'losses'
}

const config: LlamaPromptProgram = { ...llamaConfig, gives: 'logits' }

const runs = { sequences: tensor('i32', 't'), positions: tensor('i32', 't') } as const
const perSequence = {
  starts: tensor('i32', 'b'),
  lengths: tensor('i32', 'b'),
  first: tensor('i32', 'b'),
  slots: tensor('i32', 'b'),
} as const

export const llamaPrompt = program('llama_prompt', {
  dims: { ...llamaSizes, r: 1, t: 512, b: 1, s: 512, k: 1 },
  config,
  inputs: {
    ids: tensor('i32', 't'),
    places: tensor('i32', 't'),
    ...runs,
    ...perSequence,
    writers: tensor('i32', 'r'),
    wanted: tensor('i32', 'k'),
    targets: tensor('i32', 'k'),
  },
  build: (p, { ids, wanted, targets, ...where }, settings) => {
    const caches = cacheStates(p, settings)
    const words = p.apply(llamaWords, { ids }, p.weights('embeddings'), {}, { label: 'embed' }).hidden
    const made = llamaStack(p, 'prompt', words, caches, where, settings)
    for (const [name, state] of Object.entries(caches)) {
      const next = made.caches[name]
      if (next !== undefined) p.next(state, next)
    }
    const weights = p.weights('head')
    const attrs = { eps: settings.eps }
    const label = { label: 'head' }
    const x = made.hidden
    if (settings.gives === 'losses') return p.apply(llamaLikelihood, { x, wanted, targets }, weights, attrs, label)
    if (settings.gives === 'logits') return p.apply(llamaSomeLogits, { x, wanted }, weights, attrs, label)
    return {}
  },
})

/** Searches by rules written out over lists of hypotheses, whose logits are those of whole texts that a model reads at once. */
import type { Llama } from '../../src/models/llama/llama_types.js'
import type { Model } from './beam_search.js'

/** Result of a rule for logits of `model` after a prompt. Logits are computed for all texts of a step together. */
export async function found<T>(model: Llama, prompt: readonly number[], rule: (logits: Model) => T): Promise<T> {
  const known = new Map<string, readonly number[]>()
  for (;;) {
    const missing = new Map<string, readonly number[]>()
    const result = rule((ids) => {
      const key = ids.join(' ')
      const logits = known.get(key)
      if (logits === undefined) missing.set(key, ids)
      return logits ?? Array.from({ length: model.config.vocab }, () => 0)
    })
    const shortest = Math.min(...[...missing.values()].map(({ length }) => length))
    const asked = [...missing].filter(([, { length }]) => length === shortest)
    if (asked.length === 0) return result
    const cases = asked.map(([, ids]) => ({ inputIds: [...prompt, ...ids] }))
    const scores = await model.score(cases, { places: [prompt.length + shortest - 1] })
    for (const [i, [key]] of asked.entries()) known.set(key, Array.from(scores[i]?.logits[0] ?? []))
  }
}

/** The same model in plain JavaScript, in double precision and without a cache: the reference for every plan. */
import { config, weights } from './make_model.js'

const { hidden_size: hidden, num_attention_heads: heads, num_key_value_heads: shared, rms_norm_eps: eps } = config
const size = hidden / heads

const weight = (name: string): Float32Array => {
  const found = weights[name]
  if (found === undefined) throw new Error(`no weight ${name}`)
  return found
}
const times = (x: number[], name: string): number[] => {
  const w = weight(name)
  return Array.from({ length: w.length / x.length }, (_, row) =>
    x.reduce((sum, each, c) => sum + each * (w[row * x.length + c] ?? 0), 0),
  )
}
const norm = (x: number[], name: string): number[] => {
  const gamma = weight(name)
  const scale = 1 / Math.sqrt(x.reduce((sum, each) => sum + each * each, 0) / x.length + eps)
  return x.map((each, c) => each * scale * (gamma[c] ?? 0))
}
const added = (a: number[], b: number[]): number[] => a.map((each, i) => each + (b[i] ?? 0))
/** Rotates the halves of every head by the angles of a position. */
const turned = (x: number[], place: number): number[] =>
  x.map((each, i) => {
    const c = i % size
    const half = size / 2
    const angle = place / 10_000 ** ((c % half) / half)
    return each * Math.cos(angle) + (c < half ? -(x[i + half] ?? 0) : (x[i - half] ?? 0)) * Math.sin(angle)
  })

/** Logits of the word after the given ones. */
export function logitsBehind(ids: readonly number[]): number[] {
  const table = weight('model.embed_tokens.weight')
  let rows = ids.map((id) => Array.from(table.slice(id * hidden, (id + 1) * hidden)))
  for (let i = 0; i < config.num_hidden_layers; i++) {
    const of = (name: string): string => `model.layers.${i}.${name}.weight`
    const normed = rows.map((x) => norm(x, of('input_layernorm')))
    const query = normed.map((x, place) => turned(times(x, of('self_attn.q_proj')), place))
    const key = normed.map((x, place) => turned(times(x, of('self_attn.k_proj')), place))
    const value = normed.map((x) => times(x, of('self_attn.v_proj')))
    rows = rows.map((x, place) => {
      const context = Array.from({ length: hidden }, () => 0)
      for (let h = 0; h < heads; h++) {
        const g = Math.floor(h / (heads / shared))
        const logits = key.slice(0, place + 1).map((k) => {
          let sum = 0
          for (let c = 0; c < size; c++) sum += (query[place]?.[h * size + c] ?? 0) * (k[g * size + c] ?? 0)
          return sum / Math.sqrt(size)
        })
        const top = Math.max(...logits)
        const e = logits.map((each) => Math.exp(each - top))
        const total = e.reduce((a, b) => a + b)
        for (let c = 0; c < size; c++)
          context[h * size + c] = e.reduce((sum, each, t) => sum + (each / total) * (value[t]?.[g * size + c] ?? 0), 0)
      }
      const attended = added(x, times(context, of('self_attn.o_proj')))
      const inner = norm(attended, of('post_attention_layernorm'))
      const up = times(inner, of('mlp.up_proj'))
      const gated = times(inner, of('mlp.gate_proj')).map((gate, c) => (gate / (1 + Math.exp(-gate))) * (up[c] ?? 0))
      return added(attended, times(gated, of('mlp.down_proj')))
    })
  }
  return times(norm(rows.at(-1) ?? [], 'model.norm.weight'), 'lm_head.weight')
}

/** The likeliest words after a prompt, chosen one by one. */
export function greedy(prompt: readonly number[], count: number): number[] {
  const ids = [...prompt]
  for (let i = 0; i < count; i++) {
    const logits = logitsBehind(ids)
    ids.push(logits.indexOf(Math.max(...logits)))
  }
  return ids.slice(prompt.length)
}

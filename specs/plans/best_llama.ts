/**
 * This project's own LLaMA: queries, keys and values in one matmul, biases and residuals in epilogues, gate and up in one matmul whose epilogue
 * gates. In a step, the norms of heads, the rotation of query and key, the cache updates, and attention over the shared heads are one kernel. In a
 * prompt, attention runs in tiles over the caches, after the kernels that rotate queries and keys and write these into the caches with the values.
 * `best-llama-int8w` and `best-llama-w8a8` have the same kernels around int8.
 */
import { type GraphDecl, plan } from 'heddle'
import { greedyHeads } from '../graphs/greedy_heads.js'
import { llamaHead, llamaLikelihood, llamaSomeLogits, llamaWords } from '../graphs/llama_ends.js'
import { everyFlags, type LlamaFlags, llamaLayer } from '../graphs/llama_layer.js'

type Form = 'step' | 'beams' | 'prompt'
type Groups = Readonly<Record<string, readonly (readonly string[])[]>>

/** Names of a plan's matmuls, and the nodes between their sums and their epilogues. */
interface Products {
  readonly multiply: string
  readonly after: (product: string) => readonly string[]
  /** True if the matmul takes floats. A preceding norm may then be computed as they are multiplied. */
  readonly takesFloats: boolean
}

/** Nodes between the two matmuls of attention. */
const weighing = ['scores', 'scaled', 'masked', 'probabilities']

/** Columns of the matmul that makes queries, keys and values: those with their biases, if the family has them. */
const parts = ({ bias }: LlamaFlags) => ['query', 'key', 'value'].map((name) => (bias === 'none' ? name : `${name}Bias`))

/** Matmuls that are computed at once. */
const stacks = ({ bias }: LlamaFlags): Readonly<Record<string, readonly string[]>> => ({
  qkv: ['query', 'key', 'value'],
  ...(bias === 'none' ? {} : { qkvBias: ['queryBias', 'keyBias', 'valueBias'] }),
})

/**
 * Matmuls with their epilogues, and in a step with the preceding norm, which costs a launch by itself. The matmul of queries, keys and values is the
 * library's in prompts if it has no epilogue: a step's few rows are multiplied while the preceding launch still runs.
 */
function products(form: Form, { multiply, after, takesFloats }: Products, { bias }: LlamaFlags): Groups {
  const made = (product: string, ...more: readonly string[]) => [product, ...after(product), ...more]
  const isNormed = takesFloats && form !== 'prompt'
  const normed = (norm: string) => (isNormed ? [norm] : [])
  const first = `${isNormed ? 'rms_norm_' : ''}${multiply}`
  const qkv = [...normed('attentionNorm'), ...made('qkv', ...(bias === 'none' ? [] : ['qkvBias']))]
  const down = made('down', 'outputResidual')
  return {
    [`${first}_swiglu`]: [[...normed('innerNorm'), ...made('gate'), ...made('up'), 'gated']],
    ...(qkv.length === 1 && form === 'prompt' ? {} : { [bias === 'none' ? first : `${first}_bias`]: [qkv] }),
    ...(bias === 'all'
      ? {
          [`${multiply}_residual`]: [down],
          [`${multiply}_bias_residual`]: [made('projection', 'projectionBias', 'attentionResidual')],
        }
      : { [`${multiply}_residual`]: [made('projection', 'attentionResidual'), down] }),
  }
}

/**
 * With int8 caches a kernel of its own rotates the key and quantises key and value as they join the cache: scales of a head are known when all of it
 * is. Queries are rotated by attention, which reads integers.
 */
function stepInt8(form: 'step' | 'beams', flags: LlamaFlags): Groups {
  const [query = '', key = '', value = ''] = parts(flags)
  const caches = ['keyCache', 'valueCache']
  const joins = form === 'beams' ? 'append_step_int8' : 'append_places_int8'
  const stored: Groups = flags.norm
    ? {
        take_rms_norm_queries: [[query, 'queryNorm']],
        take_rms_norm_rotate_keys: [[key, 'keyNorm', 'keyTurned']],
        [`take_${joins}`]: [[value, ...caches]],
      }
    : { [`rotate_${joins}`]: [[key, value, 'keyTurned', ...caches]] }
  const queries = flags.norm ? ['queryTurned'] : [query, 'queryTurned']
  const name = `${form === 'beams' ? 'beam' : 'past'}_attention_int8${flags.norm ? '_of_norms' : ''}${flags.window ? '_window' : ''}`
  return { ...stored, [name]: [[...queries, 'keyPast', 'valuePast', ...weighing, 'context']] }
}

/** In a step everything between matmuls is one kernel. It also includes a norm of heads, and the end of a window. */
function stepAttention(form: 'step' | 'beams', flags: LlamaFlags): Groups {
  if (flags.caches === 'int8') return stepInt8(form, flags)
  const rotated = ['queryTurned', 'keyTurned', 'keyCache', 'valueCache', 'keyPast', 'valuePast']
  const normed = flags.norm ? ['queryNorm', 'keyNorm'] : []
  const name = `${form === 'beams' ? 'beam' : 'past'}_attention${flags.norm ? '_of_norms' : ''}${flags.window ? '_window' : ''}`
  return { [name]: [[...parts(flags), ...normed, ...rotated, ...weighing, 'context']] }
}

/** In a prompt queries are rotated by one kernel, keys by the one that writes them into the cache, or before that if they are normed. */
function promptAttention(flags: LlamaFlags): Groups {
  const [query = '', key = '', value = ''] = parts(flags)
  const caches = ['keyCache', 'valueCache']
  const rotated: Groups = flags.norm
    ? {
        take_rms_norm_rotate_queries: [[query, 'queryNorm', 'queryTurned']],
        take_rms_norm_rotate_keys: [[key, 'keyNorm', 'keyTurned']],
        [flags.caches === 'int8' ? 'take_append_tokens_int8' : 'append_keys_values']: [[value, ...caches]],
      }
    : {
        rotate_queries: [[query, 'queryTurned']],
        [flags.caches === 'int8' ? 'rotate_append_tokens_int8' : 'rotate_append']: [[key, value, 'keyTurned', ...caches]],
      }
  const attention = ['keyPast', 'valuePast', 'queryRuns', 'queryHeads', ...weighing, 'attended', 'merged', 'context']
  return {
    ...rotated,
    [`prompt_attention${flags.caches === 'int8' ? '_int8' : ''}${flags.window ? '_window' : ''}`]: [attention],
  }
}

/** Stacks and groups of a layer, for any type of its matmuls. */
export const bestLayer = (form: Form, flags: LlamaFlags, of: Products) => ({
  stacked: stacks(flags),
  groups: { ...products(form, of, flags), ...(form === 'prompt' ? promptAttention(flags) : stepAttention(form, flags)) },
})

const over = (form: Form, flags: LlamaFlags) => {
  const layer: GraphDecl = llamaLayer(form, flags)
  return plan('best-llama', layer, bestLayer(form, flags, { multiply: 'matmul', after: () => [], takesFloats: true }))
}

export const bestLlama = [
  ...everyFlags
    .filter(({ caches }) => caches !== 'f32')
    .flatMap((flags) => [over('step', flags), over('beams', flags), over('prompt', flags)]),
  plan('best-llama', llamaWords, { groups: {} }),
  plan('best-llama', llamaHead, { groups: { matmul_cast_f32: ['product', 'logits'] } }),
  plan('best-llama', greedyHeads.words.llama, { groups: { matmul_greedy: ['product', 'logits', 'chosen'] } }),
  plan('best-llama', greedyHeads.losses.llama, { groups: { matmul_greedy_loss: ['product', 'logits', 'chosen'] } }),
  plan('best-llama', llamaSomeLogits, { groups: { matmul_cast_f32: ['product', 'logits'] } }),
  plan('best-llama', llamaLikelihood, { groups: { matmul_cast_f32: ['product', 'logits'] } }),
]

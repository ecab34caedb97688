/**
 * This project's own LLaMA: keys and values in one product, biases and residuals in epilogues, gate and up in one product that ends in what
 * passes. Of a step, the rotation of query and key, what joins the caches, and attention over the heads that are shared are one kernel; of
 * a prompt, attention runs in tiles over the caches, behind the kernel that rotates keys and puts them there with the values.
 */
import { type GraphDecl, plan } from 'heddle'
import { llamaHead, llamaLikelihood, llamaSomeLogits, llamaWords } from '../graphs/llama_ends.js'
import { everyFlags, type LlamaFlags, llamaLayer } from '../graphs/llama_layer.js'

/** Between the two products of attention. */
const weighing = ['scores', 'scaled', 'masked', 'probabilities']

const stepAttention = [
  'queryTurned',
  'keyTurned',
  'keyCache',
  'valueCache',
  'keyPast',
  'valuePast',
  ...weighing,
  'context',
] as const
const promptAttention = ['keyPast', 'valuePast', 'queryHeads', ...weighing, 'attended', 'merged'] as const

type Stacks = Readonly<Record<string, readonly string[]>>

/** What layers of both forms have in common. */
function common({ bias }: LlamaFlags) {
  const stacked: Stacks = { kv: ['key', 'value'], ...(bias === 'none' ? {} : { kvBias: ['keyBias', 'valueBias'] }) }
  const down = ['down', 'outputResidual']
  return {
    stacked,
    groups: {
      matmul_swiglu: ['gate', 'up', 'gated'],
      ...(bias === 'none'
        ? {}
        : {
            matmul_bias: [
              ['query', 'queryBias'],
              ['kv', 'kvBias'],
            ],
          }),
      ...(bias === 'all'
        ? { matmul_residual: down, matmul_bias_residual: ['projection', 'projectionBias', 'attentionResidual'] }
        : { matmul_residual: [['projection', 'attentionResidual'], down] }),
    },
  }
}

const over = (form: 'step' | 'beams' | 'prompt', flags: LlamaFlags) => {
  const { stacked, groups } = common(flags)
  // What is normed is no part of a stack, and a window has an end of its own.
  const ofHeads = flags.norm ? '_of_norms' : ''
  const ofPlaces = flags.window ? '_window' : ''
  const own: Readonly<Record<string, readonly string[]>> =
    form === 'step' || form === 'beams'
      ? { [`${form === 'beams' ? 'beam' : 'past'}_attention${ofHeads}${ofPlaces}`]: stepAttention }
      : {
          [`prompt_attention${ofPlaces}`]: promptAttention,
          [`rotate_append${ofHeads}`]: ['keyTurned', 'keyCache', 'valueCache'],
        }
  const layer: GraphDecl = llamaLayer(form, flags)
  return plan('best-llama', layer, { stacked, groups: { ...groups, ...own } })
}

export const bestLlama = [
  ...everyFlags.flatMap((flags) => [over('step', flags), over('beams', flags), over('prompt', flags)]),
  plan('best-llama', llamaWords, { groups: {} }),
  plan('best-llama', llamaHead, { groups: { matmul_cast_f32: ['product', 'logits'] } }),
  plan('best-llama', llamaSomeLogits, { groups: { matmul_cast_f32: ['product', 'logits'] } }),
  plan('best-llama', llamaLikelihood, { groups: { matmul_cast_f32: ['product', 'logits'] } }),
]

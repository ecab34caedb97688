/**
 * Layers of the LLaMA family with int8 weights. `fasterllama-v1` is FasterLLaMA v1.0, kernel by kernel: activations are quantised row by row by the
 * kernels that make them, and matmuls are int8. A layer of a step is 9 kernels and 9 matmuls, as there. `best-llama-w8a8` multiplies the same
 * integers with the kernels of `best-llama`, whose matmuls convert sums back to floats first. `best-llama-int8w` has these as well and keeps
 * activations in floats: with few rows, weights dominate the time, and they take half as many bytes.
 */
import { type GraphDecl, plan } from 'heddle'
import { greedyHeads } from '../graphs/greedy_heads.js'
import { llamaHead, llamaLikelihood, llamaSomeLogits } from '../graphs/llama_ends.js'
import { everyFlags, type LlamaFlags, llamaLayer } from '../graphs/llama_layer.js'
import { bestLayer } from './best_llama.js'

type Form = 'step' | 'beams' | 'prompt'
type Groups = Readonly<Record<string, readonly (readonly string[])[]>>

/** Inputs of matmuls, quantised where they are produced. */
const activations = ['attentionNorm', 'context', 'innerNorm', 'gated'] as const
const products = ['query', 'key', 'value', 'projection', 'gate', 'up', 'down'] as const

/** Name of a group from its parts, so that layers with the same kernels share these. */
const named = (...parts: readonly (string | false)[]): string => parts.filter((part) => part !== false).join('_')

/** Conversion of a node to float32 before attention, if the caches are float32. */
const widened = ({ caches }: LlamaFlags, node: 'query' | 'key' | 'value'): readonly string[] =>
  caches === 'f32' ? [`${node}F32`] : []

const headBias = ({ bias }: LlamaFlags, node: string): readonly string[] => (bias === 'none' ? [] : [`${node}Bias`])
const lastBias = ({ bias }: LlamaFlags): readonly string[] => (bias === 'all' ? ['projectionBias'] : [])
const hasBias = ({ bias }: LlamaFlags): string | false => bias !== 'none' && 'bias'
const hasLastBias = ({ bias }: LlamaFlags): string | false => bias === 'all' && 'bias'

/** Groups of a kernel, without those of one node. */
function stated(kernel: string, groups: readonly (readonly string[])[]): Groups {
  const fused = groups.filter(({ length }) => length > 1)
  return fused.length === 0 ? {} : { [kernel]: fused }
}

/** Scores to probabilities. */
const softmax = (form: Form, flags: LlamaFlags): Groups => ({
  [named('llama', form, flags.window && 'window', 'softmax', ofF32(flags))]: [['scaled', 'masked', 'probabilities']],
})

/** Suffix of kernels next to float32 caches. */
const ofF32 = ({ caches }: LlamaFlags): string | false => caches === 'f32' && 'f32'

/** Heads as inputs of attention: normed if the family does, rotated, and float32 if the caches are. */
const rotation = (flags: LlamaFlags, node: 'query' | 'key'): readonly string[] => [
  ...(flags.norm ? [`${node}Norm`] : []),
  `${node}Turned`,
  ...widened(flags, node),
]

/**
 * Queries and keys converted back to floats and rotated, by one kernel; if heads are normed in between, by one after that. Those of a prompt are in
 * rows of their own: queries by sequences, for which padding is restored, and keys in the order in which they join the caches.
 */
function rotated(form: Form, flags: LlamaFlags): Groups {
  const floats = (node: 'query' | 'key'): readonly string[] => [`${node}.float`, ...headBias(flags, node)]
  const transposed = ['queryRuns', 'queryHeads']
  const values = ['value.float', ...headBias(flags, 'value'), ...widened(flags, 'value')]
  const biased = flags.norm && flags.bias !== 'none' ? [floats('query'), floats('key')] : []
  const isWide = flags.caches === 'f32'
  const taken = {
    ...stated('dequantize_rows_bias', [...biased, ...(isWide ? [] : [values])]),
    ...stated(named('dequantize_rows', hasBias(flags), 'f32'), isWide ? [values] : []),
  }
  if (flags.norm) {
    return {
      ...taken,
      ...(form === 'prompt' ? { [named('unpack_split_heads', ofF32(flags))]: [transposed] } : {}),
      [named('rms_norm_rotate_queries_keys', ofF32(flags))]: [[...rotation(flags, 'query'), ...rotation(flags, 'key')]],
    }
  }
  const kernel = named('dequantize_rows', hasBias(flags), 'rotate', ofF32(flags))
  const both: Groups =
    form === 'prompt'
      ? {
          [named(kernel, 'queries', 'transpose')]: [[...floats('query'), ...rotation(flags, 'query'), ...transposed]],
          [named(kernel, 'keys')]: [[...floats('key'), ...rotation(flags, 'key')]],
        }
      : {
          [named(kernel, 'queries', 'keys')]: [
            [...floats('query'), ...rotation(flags, 'query'), ...floats('key'), ...rotation(flags, 'key')],
          ],
        }
  return { ...both, ...taken }
}

/** The op that writes tokens of a form into a cache. */
const appending = { step: 'append_places', beams: 'append_step', prompt: 'append_tokens' } as const

/** Matmuls of a step that read each head of the caches in place for the heads of queries that share it. */
const sharing = (flags: LlamaFlags): Groups => ({
  [named('shared_scores', ofF32(flags))]: [['keyPast', 'scores']],
  [named('shared_context', ofF32(flags))]: [['valuePast', flags.caches === 'f32' ? 'contextF32' : 'context']],
})

/**
 * One kernel writes tokens into both caches. A step attends values in the caches directly; rows named by a table or a list, of beams or of a prompt's
 * sequences, are gathered from both by one more kernel.
 */
const caches = (form: Form, flags: LlamaFlags): Groups => ({
  [named(appending[form], 'keys_values', ofF32(flags))]: [['keyCache', 'valueCache']],
  ...(form === 'step'
    ? sharing(flags)
    : { [named(form === 'beams' ? 'beam_heads' : 'past_heads', 'keys_values', ofF32(flags))]: [['keyPast', 'valuePast']] }),
})

/** Converts attention's results, of prompts tokens without padding, to int8. */
function contextQuantize(form: Form, flags: LlamaFlags): Groups {
  const packed = form === 'prompt' && named('pack_quantize_rows', ofF32(flags))
  if (flags.caches !== 'f32') return packed === false ? {} : { [packed]: [['context', 'context.int8']] }
  const cast = ['context', 'context.int8']
  return packed === false ? { cast_float_quantize_rows: [cast] } : { [packed]: [['contextF32', ...cast]] }
}

const fasterllama = (form: Form, flags: LlamaFlags) =>
  plan('fasterllama-v1', llamaLayer(form, flags), {
    quantised: { dynamic: activations },
    tuned: ['int8_matmul'],
    ...(form === 'step' ? { library: Object.keys(sharing(flags)) } : {}),
    groups: {
      rms_norm_quantize_rows: [['attentionNorm', 'attentionNorm.int8']],
      int8_matmul: products.map((product) => [product]),
      ...rotated(form, flags),
      ...caches(form, flags),
      ...softmax(form, flags),
      ...contextQuantize(form, flags),
      [named('dequantize_rows', hasLastBias(flags), 'residual_rms_norm_quantize_rows')]: [
        ['projection.float', ...lastBias(flags), 'attentionResidual', 'innerNorm', 'innerNorm.int8'],
      ],
      dequantize_rows_swiglu_quantize_rows: [['gate.float', 'up.float', 'gated', 'gated.int8']],
      dequantize_rows_residual: [['down.float', 'outputResidual']],
    },
  })

/** An int8 matmul whose sums are converted back to floats. */
const scaled = (multiply: string, takesFloats: boolean) => ({
  multiply,
  after: (product: string) => [`${product}.float`],
  takesFloats,
})

const bestW8a8 = (form: Form, flags: LlamaFlags) => {
  const layer: GraphDecl = llamaLayer(form, flags)
  const { stacked, groups } = bestLayer(form, flags, scaled('int8_rows_matmul', false))
  const normed = ['attentionNorm', 'innerNorm'].map((norm) => [norm, `${norm}.int8`])
  return plan('best-llama-w8a8', layer, {
    stacked,
    quantised: { dynamic: activations },
    groups: { rms_norm_quantize_rows: normed, ...groups },
  })
}

const bestInt8w = (form: Form, flags: LlamaFlags) => {
  const layer: GraphDecl = llamaLayer(form, flags)
  const { stacked, groups } = bestLayer(form, flags, scaled('int8_weight_matmul', true))
  return plan('best-llama-int8w', layer, {
    stacked,
    quantised: { weightOnly: ['qkv', 'projection', 'gate', 'up', 'down'] },
    groups,
  })
}

/** Nothing around the layers is quantised: near ties between tokens are decided there. */
const ends = (name: string) => [
  plan(name, llamaHead, { groups: { matmul_cast_f32: ['product', 'logits'] } }),
  plan(name, greedyHeads.words.llama, { groups: { matmul_greedy: ['product', 'logits', 'chosen'] } }),
  plan(name, greedyHeads.losses.llama, { groups: { matmul_greedy_loss: ['product', 'logits', 'chosen'] } }),
  plan(name, llamaSomeLogits, { groups: { matmul_cast_f32: ['product', 'logits'] } }),
  plan(name, llamaLikelihood, { groups: { matmul_cast_f32: ['product', 'logits'] } }),
]

const layersOf = (over: (form: Form, flags: LlamaFlags) => ReturnType<typeof bestInt8w>, every: readonly LlamaFlags[]) =>
  (['step', 'beams', 'prompt'] as const).flatMap((form) => every.map((flags) => over(form, flags)))

/** FasterLLaMA's caches are float32; `float` caches have the model's type. */
const floatCaches = everyFlags.filter(({ caches }) => caches !== 'int8')
/** Kernels of attention of the plans `best-llama*` read caches in the model's type or in int8. */
const bestCaches = everyFlags.filter(({ caches }) => caches !== 'f32')

export const llamaInt8 = [
  ...[...layersOf(fasterllama, floatCaches), ...ends('fasterllama-v1')],
  ...[...layersOf(bestW8a8, bestCaches), ...ends('best-llama-w8a8')],
  ...[...layersOf(bestInt8w, bestCaches), ...ends('best-llama-int8w')],
]

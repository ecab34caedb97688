/**
 * Layers of the LLaMA family with int8 weights. `fasterllama-v1` is FasterLLaMA v1.0, kernel by kernel: activations are quantised row by
 * row by the kernels that make them, products are int8's, and what stands between two products is one kernel. `best-llama-w8a8` multiplies
 * the same integers, and takes steps, residuals and the gate into the products. `best-llama-int8w` keeps activations in floats: where few
 * rows are multiplied, weights are what takes time, and they are half as many bytes.
 */
import { plan } from 'heddle'
import { llamaHead, llamaLikelihood, llamaSomeLogits } from '../graphs/llama_ends.js'
import { everyFlags, type LlamaFlags, llamaLayer } from '../graphs/llama_layer.js'

type Form = 'step' | 'beams' | 'prompt'
type Groups = Readonly<Record<string, readonly (readonly string[])[]>>

/** What products read, quantised as it is made. */
const activations = ['attentionNorm', 'context', 'innerNorm', 'gated'] as const
const products = ['query', 'key', 'value', 'projection', 'gate', 'up', 'down'] as const

/** Groups are called by what is in them, so that layers with the same kernels share these. */
const named = (...parts: readonly (string | false)[]): string => parts.filter((part) => part !== false).join('_')

const headBias = ({ bias }: LlamaFlags, node: string): readonly string[] => (bias === 'none' ? [] : [`${node}Bias`])
const lastBias = ({ bias }: LlamaFlags): readonly string[] => (bias === 'all' ? ['projectionBias'] : [])
const hasBias = ({ bias }: LlamaFlags): string | false => bias !== 'none' && 'bias'
const hasLastBias = ({ bias }: LlamaFlags): string | false => bias === 'all' && 'bias'

/** Scores to probabilities. */
const softmax = (form: Form, { window }: LlamaFlags): Groups => ({
  [named('llama', form, window && 'window', 'softmax')]: [['scaled', 'masked', 'probabilities']],
})

/** Heads as attention takes them: normed where the family does, and turned. */
const turned = (flags: LlamaFlags, node: 'query' | 'key'): readonly string[] => [
  ...(flags.norm ? [`${node}Norm`] : []),
  `${node}Turned`,
]

/** Queries and keys brought back to floats and turned, by one kernel; where heads are normed in between, by two. */
function rotated(form: Form, flags: LlamaFlags): Groups {
  const transposed = form === 'prompt' ? ['queryRuns', 'queryHeads'] : []
  const floats = (node: 'query' | 'key'): readonly string[] => [`${node}.float`, ...headBias(flags, node)]
  if (flags.norm) {
    return {
      ...(flags.bias === 'none' ? {} : { dequantize_rows_bias: [floats('query'), floats('key'), ['value.float', 'valueBias']] }),
      ...(form === 'prompt' ? { unpack_split_heads: [transposed] } : {}),
      rms_norm_rotate_queries: [turned(flags, 'query')],
      rms_norm_rotate_keys: [turned(flags, 'key')],
    }
  }
  const kernel = named('dequantize_rows', hasBias(flags), 'rotate')
  return {
    [named(kernel, 'queries', form === 'prompt' && 'transpose')]: [
      [...floats('query'), ...turned(flags, 'query'), ...transposed],
    ],
    [named(kernel, 'keys')]: [[...floats('key'), ...turned(flags, 'key')]],
    ...(flags.bias === 'none' ? {} : { dequantize_rows_bias: [['value.float', 'valueBias']] }),
  }
}

/** Tokens without padding, as attention leaves them, to int8. */
const packQuantize = (form: Form): Groups => (form === 'prompt' ? { pack_quantize_rows: [['context', 'context.int8']] } : {})

const fasterllama = (form: Form, flags: LlamaFlags) =>
  plan('fasterllama-v1', llamaLayer(form, flags), {
    quantised: { dynamic: activations },
    tuned: ['int8_matmul'],
    groups: {
      rms_norm_quantize_rows: [['attentionNorm', 'attentionNorm.int8']],
      int8_matmul: products.map((product) => [product]),
      ...rotated(form, flags),
      ...softmax(form, flags),
      ...packQuantize(form),
      [named('dequantize_rows', hasLastBias(flags), 'residual_rms_norm_quantize_rows')]: [
        ['projection.float', ...lastBias(flags), 'attentionResidual', 'innerNorm', 'innerNorm.int8'],
      ],
      dequantize_rows_swiglu_quantize_rows: [['gate.float', 'up.float', 'gated', 'gated.int8']],
      dequantize_rows_residual: [['down.float', 'outputResidual']],
    },
  })

/** Products whose epilogues bring sums back to floats, by the name of what multiplies. */
const scaledProducts = (multiply: string, flags: LlamaFlags): Groups => ({
  [named(multiply, hasBias(flags))]: (['query', 'key', 'value'] as const).map((node) => [
    node,
    `${node}.float`,
    ...headBias(flags, node),
  ]),
  [named(multiply, hasLastBias(flags), 'residual')]: [
    ['projection', 'projection.float', ...lastBias(flags), 'attentionResidual'],
    ...(flags.bias === 'all' ? [] : [['down', 'down.float', 'outputResidual']]),
  ],
  ...(flags.bias === 'all' ? { [named(multiply, 'residual')]: [['down', 'down.float', 'outputResidual']] } : {}),
  [named(multiply, 'swiglu')]: [['gate', 'gate.float', 'up', 'up.float', 'gated']],
})

/** Heads that are normed are turned by the kernel that norms them. */
const normedHeads = (flags: LlamaFlags): Groups =>
  flags.norm ? { rms_norm_rotate_queries: [turned(flags, 'query')], rms_norm_rotate_keys: [turned(flags, 'key')] } : {}

const bestW8a8 = (form: Form, flags: LlamaFlags) =>
  plan('best-llama-w8a8', llamaLayer(form, flags), {
    quantised: { dynamic: activations },
    groups: {
      rms_norm_quantize_rows: [
        ['attentionNorm', 'attentionNorm.int8'],
        ['innerNorm', 'innerNorm.int8'],
      ],
      ...scaledProducts('int8_rows_matmul', flags),
      ...normedHeads(flags),
      ...softmax(form, flags),
      ...packQuantize(form),
    },
  })

const bestInt8w = (form: Form, flags: LlamaFlags) =>
  plan('best-llama-int8w', llamaLayer(form, flags), {
    quantised: { weightOnly: products },
    groups: { ...scaledProducts('int8_weight_matmul', flags), ...normedHeads(flags), ...softmax(form, flags) },
  })

/** Around the layers nothing is quantised: near ties between words are decided there. */
const ends = (name: string) => [
  plan(name, llamaHead, { groups: { matmul_cast_f32: ['product', 'logits'] } }),
  plan(name, llamaSomeLogits, { groups: { matmul_cast_f32: ['product', 'logits'] } }),
  plan(name, llamaLikelihood, { groups: { matmul_cast_f32: ['product', 'logits'] } }),
]

const layersOf = (over: (form: Form, flags: LlamaFlags) => ReturnType<typeof bestInt8w>) =>
  (['step', 'beams', 'prompt'] as const).flatMap((form) => everyFlags.map((flags) => over(form, flags)))

export const llamaInt8 = [
  ...[...layersOf(fasterllama), ...ends('fasterllama-v1')],
  ...[...layersOf(bestW8a8), ...ends('best-llama-w8a8')],
  ...[...layersOf(bestInt8w), ...ends('best-llama-int8w')],
]

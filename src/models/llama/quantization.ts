/**
 * What a configuration says of weights that are not floats. One kind is read, as `compressed-tensors` writes it: int8 weights with a step
 * for each output channel, and activations that are quantised token by token while the model runs.
 */
import { z } from 'zod'
import { checkField } from '../../checkpoint/config_file.js'
import { shown } from '../../checkpoint/safetensors_header.js'
import { usageError } from '../../errors.js'

/** `w8a8`: int8 weights `[outputs, inputs]` with float steps `[outputs, 1]` of all products of the layers. */
export type LlamaQuantization = 'w8a8'

const none = z.null().optional()
const int8 = {
  num_bits: z.literal(8),
  type: z.literal('int'),
  symmetric: z.literal(true),
  group_size: none,
  block_structure: none,
  actorder: none,
}

const schema = z.looseObject({
  quant_method: z.literal('compressed-tensors'),
  format: z.literal('int-quantized'),
  quantization_status: z.enum(['compressed', 'frozen']).optional(),
  config_groups: z.record(
    z.string(),
    z.looseObject({
      targets: z.tuple([z.literal('Linear')]),
      weights: z.looseObject({ ...int8, strategy: z.literal('channel'), dynamic: z.literal(false) }),
      input_activations: z.looseObject({ ...int8, strategy: z.literal('token'), dynamic: z.literal(true) }),
      output_activations: none,
      format: z.literal('int-quantized').nullish(),
    }),
  ),
  ignore: z.array(z.string()).nullish(),
  kv_cache_scheme: none,
  transform_config: z.union([z.null(), z.strictObject({})]).optional(),
  sparsity_config: z.union([z.null(), z.looseObject({ format: z.literal('dense') }), z.strictObject({})]).optional(),
})

/** Spellings of the one product that is not of a layer. */
const heads = new Set(['lm_head', 're:.*lm_head', 're:.*lm_head.*'])

/**
 * The kind of weights that a configuration states; undefined for floats.
 * @throws usage `config.quantization` for another method, or for products that are left out of it; `config.field` for a field that is another
 * scheme's
 */
export function parseQuantization(value: unknown, name: string): LlamaQuantization | undefined {
  if (value == null) return undefined
  const refused = (what: string, hint?: string) =>
    usageError('config.quantization', `${name}: quantization_config${what}`, { hint })
  const { quant_method: method } = Object(value) as { readonly quant_method?: unknown }
  if (method !== 'compressed-tensors') {
    const hint = 'supported: none, or compressed-tensors with int8 weights by channel and activations by token'
    throw refused(` has quant_method ${shown(JSON.stringify(method) ?? 'nothing')}`, hint)
  }
  const { config_groups: groups, ignore } = checkField(schema, value, 'quantization_config', name)
  const count = Object.keys(groups).length
  if (count !== 1) throw refused(`.config_groups has ${count} groups, expected one for all products`)
  const other = ignore?.find((entry) => !heads.has(entry))
  if (other !== undefined) {
    const hint = 'either all products of the layers are quantised, or none'
    throw refused(`.ignore has ${shown(JSON.stringify(other))}, expected "lm_head" alone`, hint)
  }
  if (ignore?.some((entry) => heads.has(entry))) return 'w8a8'
  throw refused('.ignore leaves lm_head in, expected it to stay in floats')
}

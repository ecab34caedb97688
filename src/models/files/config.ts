/** HF `config.json` of a BERT model: read, checked, and reduced to what the assembly needs. */
import { z } from 'zod'
import { usageError } from '../../errors.js'
import { checkFields, epsilon, keysOf, readConfigFile, size } from './config_file.js'

/** Activations of the inner network, by their names in HF configurations, and the op each one is. */
export const activations = {
  gelu: 'gelu',
  gelu_python: 'gelu',
  gelu_new: 'gelu_tanh',
  gelu_pytorch_tanh: 'gelu_tanh',
  relu: 'relu',
} as const

export type ActivationName = keyof typeof activations

const schema = z.looseObject({
  model_type: z.literal('bert'),
  architectures: z.array(z.string()).min(1).default(['BertModel']),
  vocab_size: size,
  hidden_size: size,
  num_hidden_layers: size,
  num_attention_heads: size,
  intermediate_size: size,
  max_position_embeddings: size,
  type_vocab_size: size.default(2),
  layer_norm_eps: epsilon.default(1e-12),
  hidden_act: z.enum(keysOf(activations)),
  position_embedding_type: z.literal('absolute').default('absolute'),
  is_decoder: z.literal(false).default(false),
  pad_token_id: z.int().nonnegative().nullish(),
  num_labels: size.optional(),
  id2label: z.record(z.string().regex(/^[0-9]+$/), z.string()).optional(),
})

/** What the checkpoint is used as. */
export type BertKind = 'encoder' | 'token-classifier'

const kinds: Readonly<Record<string, BertKind>> = {
  BertModel: 'encoder',
  BertForMaskedLM: 'encoder',
  BertForPreTraining: 'encoder',
  BertForTokenClassification: 'token-classifier',
}

export interface BertConfig {
  readonly kind: BertKind
  readonly vocab: number
  readonly hidden: number
  readonly layers: number
  readonly heads: number
  readonly headDim: number
  readonly inner: number
  readonly positions: number
  readonly tokenTypes: number
  readonly eps: number
  /** Name of the activation op. */
  readonly activation: (typeof activations)[ActivationName]
  readonly padToken: number
  /** Classes of a token classifier; 0 for an encoder. */
  readonly classes: number
  /** Names of the classes where the configuration has them; class 3 without a name is LABEL_3. */
  readonly labels: readonly string[]
}

/** Reads `config.json`. @throws usage `config.read`, `config.json`, and what `parseBertConfig` throws */
export async function readBertConfig(path: string): Promise<BertConfig> {
  return parseBertConfig(await readConfigFile(path), path)
}

/** Checks a parsed configuration; `name` is used in messages. @throws usage `config.field`, `config.heads`, `config.architecture`, `config.labels` */
export function parseBertConfig(value: unknown, name: string): BertConfig {
  const config = checkFields(schema, value, name)
  const [architecture = ''] = config.architectures
  const kind = Object.hasOwn(kinds, architecture) ? kinds[architecture] : undefined
  if (kind === undefined) {
    throw usageError('config.architecture', `${name}: architecture ${architecture} is not supported`, {
      hint: `supported: ${Object.keys(kinds).join(', ')}`,
    })
  }
  if (config.hidden_size % config.num_attention_heads !== 0) {
    throw usageError(
      'config.heads',
      `${name}: hidden_size ${config.hidden_size} is not a multiple of num_attention_heads ${config.num_attention_heads}`,
    )
  }
  return {
    kind,
    vocab: config.vocab_size,
    hidden: config.hidden_size,
    layers: config.num_hidden_layers,
    heads: config.num_attention_heads,
    headDim: config.hidden_size / config.num_attention_heads,
    inner: config.intermediate_size,
    positions: config.max_position_embeddings,
    tokenTypes: config.type_vocab_size,
    eps: config.layer_norm_eps,
    activation: activations[config.hidden_act],
    padToken: config.pad_token_id ?? 0,
    ...(kind === 'encoder' ? { classes: 0, labels: [] } : classesOf(config.id2label, config.num_labels, name)),
  }
}

/** HF writes no names when there are the default two. Names are not made up here: a count may be wrong, and the checkpoint is not yet known. */
function classesOf(
  id2label: Readonly<Record<string, string>> | undefined,
  count: number | undefined,
  name: string,
): Pick<BertConfig, 'classes' | 'labels'> {
  if (id2label === undefined) return { classes: count ?? 2, labels: [] }
  const labels = Array.from({ length: Object.keys(id2label).length }, (_, i) => {
    const label = id2label[i]
    if (label === undefined) throw usageError('config.labels', `${name}: id2label has no entry ${i}; its keys must count from 0`)
    return label
  })
  return { classes: labels.length, labels }
}

/**
 * HF `config.json` and `generation_config.json` of encoder-decoder models, Pegasus and Marian: read, checked, and reduced to what
 * assembly and generation need. What a file leaves out has the default of its model type. OpenNMT has no such file: whoever converts one of
 * its models writes the same fields, with a type of its own.
 */
import { z } from 'zod'
import { checkFields, keysOf, size } from '../../checkpoint/config_file.js'
import { usageError } from '../../errors.js'
import { type Activation, activations } from '../parts/activations.js'
import { bannedFields, bannedTokens, checkToken, expectArchitecture, readModelConfig, token } from '../parts/config_checks.js'
import { expectModelType } from '../parts/model_types.js'

/** Layer norms of HF and of OpenNMT have these, and configurations do not state them. */
const [usualEps, opennmtEps] = [1e-5, 1e-6]

/** What sets the model types apart, the token ids of one that states none, and what fields are that a file leaves out. */
const kinds = {
  pegasus: {
    ...{ architecture: 'PegasusForConditionalGeneration', preNorm: true, start: 0, end: 1, pad: 0, eps: usualEps, classEnd: 1 },
    defaults: {},
  },
  marian: {
    ...{ architecture: 'MarianMTModel', preNorm: false, start: 58_100, end: 0, pad: 58_100, eps: usualEps, classEnd: 0 },
    defaults: {},
  },
  opennmt: {
    ...{ architecture: 'Transformer', preNorm: true, start: 2, end: 3, pad: 1, eps: opennmtEps, classEnd: undefined },
    defaults: {
      ...{ activation_function: 'relu', scale_embedding: true, sinusoids: 'pairs' },
      ...{ tie_word_embeddings: false, share_encoder_decoder_embeddings: false },
    },
  },
} as const

type Kind = keyof typeof kinds

/**
 * How a row of sines and cosines is laid out, of c channels: `halves` (Hugging Face) has sines of the position over 10000^(2k/c), then cosines;
 * `pairs` (OpenNMT-py) has the same sine and cosine side by side; `timescales` (tensor2tensor, OpenNMT-tf, FasterTransformer) has halves of the
 * position over 10000^(k/(c/2 - 1)).
 */
const layouts = ['halves', 'pairs', 'timescales'] as const
export type Sinusoids = (typeof layouts)[number]

const tokens = z.union([token, z.array(token)])

const schema = z.looseObject({
  model_type: z.enum(keysOf(kinds)),
  architectures: z.array(z.string()).min(1).optional(),
  vocab_size: size,
  d_model: size,
  /** Width of the encoder, whose states are what decoder layers attend to; that of the decoder where it is left out. */
  cross_attention_hidden_size: size.nullish(),
  encoder_layers: size,
  decoder_layers: size,
  encoder_attention_heads: size,
  decoder_attention_heads: size,
  encoder_ffn_dim: size,
  decoder_ffn_dim: size,
  max_position_embeddings: size,
  /** Of position tables that the checkpoint leaves out: how they are computed, and what the first position counts as. */
  sinusoids: z.enum(layouts).default('halves'),
  first_position: z.int().min(0).max(1).default(0),
  activation_function: z.enum(keysOf(activations)).default('gelu'),
  scale_embedding: z.boolean().default(false),
  tie_word_embeddings: z.boolean().default(true),
  share_encoder_decoder_embeddings: z.boolean().default(true),
  decoder_vocab_size: size.nullish(),
  decoder_start_token_id: token.nullish(),
  eos_token_id: tokens.nullish(),
  pad_token_id: token.nullish(),
  ...bannedFields,
})

/** What generation settings may say instead of the configuration. */
const generationSchema = schema.pick({
  decoder_start_token_id: true,
  eos_token_id: true,
  pad_token_id: true,
  bad_words_ids: true,
  suppress_tokens: true,
})

/** One of the two stacks of layers. */
export interface StackConfig {
  /** Width of its states. */
  readonly hidden: number
  /** What embeddings are multiplied by: sqrt(hidden) or 1. */
  readonly embedScale: number
  readonly layers: number
  readonly heads: number
  readonly headDim: number
  readonly inner: number
}

export interface Seq2seqConfig {
  readonly kind: Kind
  readonly vocab: number
  readonly encoder: StackConfig
  readonly decoder: StackConfig
  /** Rows of both position tables. */
  readonly positions: number
  /** Of position tables that the checkpoint leaves out: how they are computed, and what the first position counts as. */
  readonly sinusoids: Sinusoids
  readonly firstPosition: number
  /** Name of the activation op. */
  readonly activation: Activation
  /** True if norms stand in front of attention and inner networks. */
  readonly preNorm: boolean
  /** True if a norm follows the last layer of each stack. */
  readonly finalNorm: boolean
  readonly eps: number
  /** True if encoder and decoder have one table of embeddings; else each has its own, of one vocabulary. */
  readonly sharedEmbeddings: boolean
  /** True if the logits' weights are the decoder's embeddings. */
  readonly tied: boolean
  readonly startToken: number
  /** Tokens that end a result; empty where the model has none. */
  readonly endTokens: readonly number[]
  readonly padToken: number
  /** The last token of texts that are cut off where no settings say so: HF's class of the configuration has it. */
  readonly classEnd: number | undefined
  /** Tokens that a result never has. */
  readonly badTokens: readonly number[]
}

/** The configuration of a model folder. @throws usage `config.read`, `config.json`, and what `parseSeq2seqConfig` throws */
export const readSeq2seqConfig = (dir: string): Promise<Seq2seqConfig> => readModelConfig(dir, parseSeq2seqConfig)

/**
 * Checks a parsed configuration; `name` is used in messages.
 * @param generation parsed generation settings, which override token ids
 * @throws usage `config.field`, `config.architecture`, `config.heads`, `config.vocab`, `config.token`, `config.bad_words`
 */
export function parseSeq2seqConfig(value: unknown, name: string, generation: unknown = {}): Seq2seqConfig {
  expectModelType(value, 'seq2seq', name)
  const config = checkFields(schema, withDefaults(value), name)
  const settings = checkFields(generationSchema, generation, `the generation settings of ${name}`)
  const kind = kinds[config.model_type]
  expectArchitecture(config, kind.architecture, name)
  const { vocab_size: vocab, decoder_vocab_size: decoderVocab } = config
  if (decoderVocab != null && decoderVocab !== vocab) {
    throw usageError('config.vocab', `${name}: decoder_vocab_size ${decoderVocab} differs from vocab_size ${vocab}`, {
      hint: 'encoder and decoder must have one vocabulary',
    })
  }
  const { cross_attention_hidden_size: stated, share_encoder_decoder_embeddings: sharedEmbeddings } = config
  const memory = stated ?? config.d_model
  if (memory !== config.d_model && sharedEmbeddings) {
    throw usageError(
      'config.field',
      `${name}: cross_attention_hidden_size ${memory} differs from d_model ${config.d_model}, and the embeddings are shared`,
      { hint: 'encoders of another width have embeddings of their own: share_encoder_decoder_embeddings is false' },
    )
  }
  const ends = settings.eos_token_id ?? (config.eos_token_id === undefined ? kind.end : config.eos_token_id)
  const checked = (what: string, id: number): number => checkToken(name, what, id, vocab)
  const endTokens = (typeof ends === 'number' ? [ends] : (ends ?? [])).map((id) => checked('eos_token_id', id))
  const banned = {
    bad_words_ids: settings.bad_words_ids ?? config.bad_words_ids,
    suppress_tokens: settings.suppress_tokens ?? config.suppress_tokens,
  }
  return {
    kind: config.model_type,
    vocab,
    encoder: stackOf(config, 'encoder', memory, name),
    decoder: stackOf(config, 'decoder', config.d_model, name),
    positions: config.max_position_embeddings,
    sinusoids: config.sinusoids,
    firstPosition: config.first_position,
    activation: activations[config.activation_function],
    preNorm: kind.preNorm,
    finalNorm: kind.preNorm,
    eps: kind.eps,
    sharedEmbeddings,
    tied: config.tie_word_embeddings,
    startToken: checked('decoder_start_token_id', settings.decoder_start_token_id ?? config.decoder_start_token_id ?? kind.start),
    endTokens,
    padToken: checked('pad_token_id', settings.pad_token_id ?? config.pad_token_id ?? kind.pad),
    classEnd: kind.classEnd,
    badTokens: bannedTokens(name, banned, { ends: endTokens, vocab }),
  }
}

/** A configuration with the fields that it leaves out, where its type has others than most. */
function withDefaults(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('model_type' in value)) return value
  const { model_type: type } = value
  return typeof type === 'string' && Object.hasOwn(kinds, type) ? { ...kinds[type as Kind].defaults, ...value } : value
}

function stackOf(config: z.output<typeof schema>, side: 'encoder' | 'decoder', hidden: number, name: string): StackConfig {
  const { [`${side}_layers` as const]: layers, [`${side}_attention_heads` as const]: heads } = config
  if (config.sinusoids === 'timescales' && (hidden < 4 || hidden % 2 !== 0)) {
    throw usageError('config.field', `${name}: sinusoids is timescales, expected an even width of 4 or more, got ${hidden}`)
  }
  if (config.sinusoids === 'pairs' && hidden % 2 !== 0) {
    throw usageError('config.field', `${name}: sinusoids is pairs, expected an even width, got ${hidden}`)
  }
  if (hidden % heads !== 0) {
    throw usageError('config.heads', `${name}: a width of ${hidden} is not a multiple of ${side}_attention_heads ${heads}`)
  }
  const embedScale = config.scale_embedding ? Math.sqrt(hidden) : 1
  return { hidden, embedScale, layers, heads, headDim: hidden / heads, inner: config[`${side}_ffn_dim`] }
}

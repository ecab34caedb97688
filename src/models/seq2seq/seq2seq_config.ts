/**
 * HF `config.json` and `generation_config.json` of encoder-decoder models, Pegasus and Marian: read, checked, and reduced to the fields
 * that assembly and generation need. Missing fields have the default of the model type. OpenNMT has no such file: a converter of its
 * models writes the same fields, with its own model type.
 */
import { z } from 'zod'
import { checkFields, keysOf, size } from '../../checkpoint/config_file.js'
import { usageError } from '../../errors.js'
import { type Activation, activations } from '../parts/activations.js'
import { bannedFields, bannedTokens, checkToken, expectArchitecture, readModelConfig, token } from '../parts/config_checks.js'
import { expectModelType } from '../parts/model_types.js'

/** Layer-norm epsilons of HF and OpenNMT, which configurations do not state. */
const [usualEps, opennmtEps] = [1e-5, 1e-6]

/** Differences between the model types: architecture, default token ids, and defaults of missing fields. */
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
 * Layouts of a row of sines and cosines, of c channels. `halves` (Hugging Face) has sines of the position over 10000^(2k/c), then cosines.
 * `pairs` (OpenNMT-py) interleaves the same sines and cosines. `timescales` (tensor2tensor, OpenNMT-tf, FasterTransformer) has halves of
 * the position over 10000^(k/(c/2 - 1)).
 */
const layouts = ['halves', 'pairs', 'timescales'] as const
export type Sinusoids = (typeof layouts)[number]

const tokens = z.union([token, z.array(token)])

const schema = z.looseObject({
  model_type: z.enum(keysOf(kinds)),
  architectures: z.array(z.string()).min(1).optional(),
  vocab_size: size,
  d_model: size,
  /** Width of the encoder, whose states decoder layers attend to; the decoder's width if missing. */
  cross_attention_hidden_size: size.nullish(),
  encoder_layers: size,
  decoder_layers: size,
  encoder_attention_heads: size,
  decoder_attention_heads: size,
  encoder_ffn_dim: size,
  decoder_ffn_dim: size,
  max_position_embeddings: size,
  /** Layout and first position of position tables that are computed because the checkpoint has none. */
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

/** Fields of the configuration that generation settings may override. */
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
  /** Factor of the embeddings: sqrt(hidden) or 1. */
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
  /** Layout and first position of position tables that are computed because the checkpoint has none. */
  readonly sinusoids: Sinusoids
  readonly firstPosition: number
  /** Name of the activation op. */
  readonly activation: Activation
  /** True if norms come before attention and feed-forward networks. */
  readonly preNorm: boolean
  /** True if a norm follows the last layer of each stack. */
  readonly finalNorm: boolean
  readonly eps: number
  /** True if encoder and decoder share one embedding table; otherwise each has its own, over one vocabulary. */
  readonly sharedEmbeddings: boolean
  /** True if the logits' weights are the decoder's embeddings. */
  readonly tied: boolean
  readonly startToken: number
  /** Tokens that end a result; empty if the model has none. */
  readonly endTokens: readonly number[]
  readonly padToken: number
  /** Forced last token of truncated texts if no settings give one: the default of HF's configuration class. */
  readonly classEnd: number | undefined
  /** Tokens banned from results. */
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
      { hint: 'an encoder of another width needs its own embeddings: set share_encoder_decoder_embeddings to false' },
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

/** Fills in missing fields for types whose defaults differ from the schema's. */
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

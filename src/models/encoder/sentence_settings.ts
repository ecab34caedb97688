/**
 * Settings of sentence-transformers folders, by which their authors intended texts to be embedded. An unsupported setting is refused by
 * name, because embeddings without it would differ.
 */
import { join } from 'node:path'
import { z } from 'zod'
import { checkFields, readOptionalConfigFile, size } from '../../checkpoint/config_file.js'
import { shown } from '../../checkpoint/safetensors_header.js'
import { usageError } from '../../errors.js'
import type { PoolingOptions } from './encoder_forms.js'

export interface SentenceSettings extends PoolingOptions {
  /** Maximum number of tokens that texts are truncated to, special ones included. */
  readonly most?: number | undefined
  /** True if texts are lower-cased before tokenization. */
  readonly lowerCase: boolean
  /** Text prepended to every input. */
  readonly prompt: string
}

const moduleSchema = z.looseObject({ path: z.string(), type: z.string() })
const poolingSchema = z.looseObject({ word_embedding_dimension: size.nullish(), include_prompt: z.boolean().nullish() })
const transformerSchema = z.looseObject({ max_seq_length: size.nullish(), do_lower_case: z.boolean().nullish() })
const promptSchema = z.looseObject({
  prompts: z.record(z.string(), z.string().nullable()).nullish(),
  default_prompt_name: z.string().nullish(),
})

/** Pooling methods by their names in files, and in older files by the flags that are true. */
const poolings: Readonly<Record<string, NonNullable<PoolingOptions['pooling']>>> = {
  ...{ mean: 'mean', cls: 'cls', lasttoken: 'last' },
  ...{ pooling_mode_mean_tokens: 'mean', pooling_mode_cls_token: 'cls', pooling_mode_lasttoken: 'last' },
}

const usualPooling = '1_Pooling'
/** Pattern of subfolder names: a file in the model's folder cannot cause reads outside of it. */
const inside = /^\w[\w.-]*$/

const refuse = (path: string, what: string): Error =>
  usageError('embed.settings', `${path}: ${what}`, {
    hint: "settings: false, or --no-settings, ignores the folder's files: then give pooling and normalize yourself",
  })

/**
 * Reads the settings of a folder's `modules.json`, the pooling's `config.json`, `sentence_bert_config.json` and
 * `config_sentence_transformers.json`. A folder without them has no settings.
 * @param hidden width of the model
 * @throws usage `embed.settings` for unsupported modules, poolings and prompts; `config.*` for files that cannot be read
 */
export async function readSentenceSettings(folder: string, hidden: number): Promise<SentenceSettings> {
  const { pooling: at = usualPooling, normalize } = await readModules(join(folder, 'modules.json'))
  const pooling = await readPooling(join(folder, at, 'config.json'), hidden)
  const transformer = join(folder, 'sentence_bert_config.json')
  const stated = checkFields(transformerSchema, (await readOptionalConfigFile(transformer)) ?? {}, transformer)
  const prompts = join(folder, 'config_sentence_transformers.json')
  const { prompts: texts, default_prompt_name: name } = checkFields(
    promptSchema,
    (await readOptionalConfigFile(prompts)) ?? {},
    prompts,
  )
  const prompt = name == null ? '' : texts?.[name]
  if (prompt == null) throw refuse(prompts, `there is no prompt ${shown(String(name))}, which default_prompt_name names`)
  if (prompt !== '' && pooling.withoutPrompt)
    throw refuse(prompts, `tokens of the prompt ${shown(prompt)} cannot be excluded from pooling`)
  return {
    ...{ pooling: pooling.pooling, normalize, prompt },
    ...{ most: stated.max_seq_length ?? undefined, lowerCase: stated.do_lower_case === true },
  }
}

/** Folder of the pooling's configuration, and true if rows are normalised to length one. */
async function readModules(path: string): Promise<{ readonly pooling?: string; readonly normalize?: boolean }> {
  const value = await readOptionalConfigFile(path)
  if (value === undefined) return {}
  const modules = checkFields(z.array(moduleSchema), value, path).map(({ type, path }) => ({
    type: type.split('.').at(-1) ?? '',
    path,
  }))
  const types = modules.map(({ type }) => type)
  const other = types.find((type) => !['Transformer', 'Pooling', 'Normalize'].includes(type))
  if (other !== undefined)
    throw refuse(path, `the module ${shown(other)} is not supported, expected Transformer, Pooling and Normalize`)
  if (!['Transformer', 'Transformer Pooling', 'Transformer Pooling Normalize'].includes(types.join(' '))) {
    throw refuse(path, `modules are ${types.join(', ')}, expected Transformer, Pooling and perhaps Normalize, in this order`)
  }
  const [transformer, pooling] = modules
  if (transformer?.path !== '')
    throw refuse(path, `the model is in ${shown(transformer?.path ?? '')}, expected it beside modules.json`)
  if (pooling === undefined) return { normalize: false }
  if (!inside.test(pooling.path))
    throw refuse(path, `the pooling is in ${shown(pooling.path)}, expected a folder beside modules.json`)
  return { pooling: pooling.path, normalize: types.includes('Normalize') }
}

async function readPooling(path: string, hidden: number) {
  const value = await readOptionalConfigFile(path)
  if (value === undefined) return { pooling: undefined, withoutPrompt: false }
  const fields = checkFields(poolingSchema, value, path)
  const { word_embedding_dimension: width, include_prompt: includes } = fields
  if (width != null && width !== hidden)
    throw refuse(path, `word_embedding_dimension is ${width}, the model's width is ${hidden}`)
  const flags = Object.keys(fields).filter((name) => name.startsWith('pooling_mode_') && fields[name] === true)
  const named = typeof fields.pooling_mode === 'string' ? [fields.pooling_mode] : flags
  const [name = '', ...more] = named
  const pooling = Object.hasOwn(poolings, name) ? poolings[name] : undefined
  if (pooling === undefined || more.length > 0) {
    throw refuse(path, `pools by ${named.map(shown).join(' and ') || 'nothing'}, expected one of mean, cls and lasttoken`)
  }
  return { pooling, withoutPrompt: includes === false }
}

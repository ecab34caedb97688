/** A model folder's chat template: `chat_template.jinja`, or the field of `tokenizer_config.json` in older folders. */
import { join } from 'node:path'
import { z } from 'zod'
import { checkFields, readOptionalConfigFile } from '../checkpoint/config_file.js'
import { shown } from '../checkpoint/safetensors_header.js'
import { usageError } from '../errors.js'
import { isMissing, readText } from '../files.js'
import { type ChatTemplate, chatTemplate } from './chat_template.js'

/** Templates are a few kilobytes. */
const mostBytes = 2 ** 20

const token = z.union([z.string(), z.looseObject({ content: z.string() })]).nullish()
const named = z.array(z.looseObject({ name: z.string(), template: z.string().max(mostBytes) }))

const schema = z.looseObject({
  chat_template: z.union([z.string().max(mostBytes), named]).nullish(),
  bos_token: token,
  eos_token: token,
  pad_token: token,
  unk_token: token,
  sep_token: token,
  cls_token: token,
  mask_token: token,
})

const tokenFields = ['bos_token', 'eos_token', 'pad_token', 'unk_token', 'sep_token', 'cls_token', 'mask_token'] as const

/**
 * The template of a model folder; undefined if it has none. Of several templates, the one called `name`.
 * @throws usage `chat.template` for a template that cannot be read, or an unknown name; `config.field`, `config.json` for the tokenizer's
 * configuration
 */
export async function loadChatTemplate(dir: string, name = 'default'): Promise<ChatTemplate | undefined> {
  const path = join(dir, 'tokenizer_config.json')
  const config = checkFields(schema, (await readOptionalConfigFile(path)) ?? {}, path)
  const tokens = Object.fromEntries(
    tokenFields.flatMap((field): [string, string][] => {
      const value = config[field]
      if (value == null) return []
      return [[field, typeof value === 'string' ? value : value.content]]
    }),
  )
  const file = name === 'default' ? 'chat_template.jinja' : join('additional_chat_templates', `${name}.jinja`)
  const own = /^[\w-]+$/.test(name) ? await readOptional(join(dir, file)) : undefined
  if (own !== undefined) return chatTemplate(own, join(dir, file), tokens)
  const { chat_template: stated } = config
  const found = typeof stated === 'string' && name === 'default' ? stated : templateNamed(stated, name)
  if (found !== undefined) return chatTemplate(found, `chat_template of ${path}`, tokens)
  const names = typeof stated === 'object' && stated !== null ? stated.map((each) => each.name) : []
  if (name === 'default' && names.length === 0) return undefined
  throw usageError('chat.template', `${dir} has no chat template ${shown(name)}`, {
    hint: `it has ${names.length === 0 ? 'none with a name' : names.map(shown).join(', ')}`,
  })
}

function templateNamed(stated: z.output<typeof schema>['chat_template'], name: string): string | undefined {
  if (typeof stated !== 'object' || stated === null) return undefined
  return stated.find((each) => each.name === name)?.template
}

async function readOptional(path: string): Promise<string | undefined> {
  try {
    return await readText(path, { code: 'chat.template' }, { most: mostBytes })
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

/** HF's JSON configuration files: read, and held against a schema. What the fields mean is each model's own. */
import { dirname } from 'node:path'
import { z } from 'zod'
import { usageError } from '../errors.js'
import { isMissing, readText } from '../files.js'
import { duplicateKey } from './duplicate_key.js'
import { expectNoAdapter, hintWithoutConfig } from './other_folders.js'
import { shown } from './safetensors_header.js'

/** An extent or a count. */
export const size = z
  .int()
  .positive()
  .max(2 ** 31 - 1)

/** Added to a variance before its square root is taken: at least the smallest normal float32, and no larger than what it is added to may be. */
export const epsilon = z
  .number()
  .min(2 ** -126)
  .max(1)

/** The keys of a record, as `z.enum` takes them. */
export const keysOf = <K extends string>(record: Readonly<Record<K, unknown>>): [K, ...K[]] => Object.keys(record) as [K, ...K[]]

/** Configurations have a few kilobytes; of a long list of wrong fields, each would be described. */
const mostBytes = 4 * 2 ** 20

/** The value of a JSON file. @throws usage `config.read`, `config.json`; `weights.adapter` where the folder of a missing one is an adapter's */
export async function readConfigFile(path: string): Promise<unknown> {
  try {
    return await readJsonFile(path)
  } catch (error) {
    if (isMissing(error)) expectNoAdapter(dirname(path))
    throw error
  }
}

const readJsonFile = async (path: string): Promise<unknown> =>
  parseJson(await readText(path, { code: 'config.read', hint: hintWithoutConfig(dirname(path)) }, { most: mostBytes }), path)

/** The same of a file that need not exist; undefined if it does not. @throws usage `config.read`, `config.json` */
export async function readOptionalConfigFile(path: string): Promise<unknown> {
  try {
    return await readJsonFile(path)
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

/** @throws usage `config.json` for what is not JSON, and for a key that an object has twice: of the two, readers take different ones */
function parseJson(text: string, path: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw usageError('config.json', `${path} is not JSON`, { cause })
  }
  const twice = duplicateKey(text)
  if (twice !== undefined) throw usageError('config.json', `${path} names ${shown(twice)} twice`)
  return value
}

/** Wrong fields that a message names. */
const shownProblems = 8

/** The value of a field as a message shows it, where it is short enough to be of use. */
const found = (value: unknown): string =>
  typeof value === 'object' || value === undefined ? '' : `, found ${shown(JSON.stringify(value))}`

/** The fields of a configuration; `name` is used in messages. @throws usage `config.field` naming the fields that are wrong, and their values */
export function checkFields<T extends z.ZodType>(schema: T, value: unknown, name: string): z.output<T> {
  const parsed = schema.safeParse(value, { reportInput: true })
  if (parsed.success) return parsed.data
  const { issues } = parsed.error
  const problems = issues
    .slice(0, shownProblems)
    .map((issue) => `${issue.path.join('.') || 'the file'}: ${issue.message}${found(issue.input)}`)
  const more = issues.length > shownProblems ? `; and ${issues.length - shownProblems} more` : ''
  throw usageError('config.field', `${name}: ${problems.join('; ')}${more}`)
}

/** The value of one field, which is named in messages with what is in it. @throws usage `config.field` */
export const checkField = <T extends z.ZodType>(schema: T, value: unknown, field: string, name: string): z.output<T> =>
  checkFields(z.object({ [field]: schema }), { [field]: value }, name)[field] as z.output<T>

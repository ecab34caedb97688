/** JSON configuration files of Hugging Face: reads a file and checks it against a schema. Each model defines the meaning of the fields. */
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

/** Epsilon added to a variance before its square root: at least the smallest normal float32, and no larger than the variance itself may be. */
export const epsilon = z
  .number()
  .min(2 ** -126)
  .max(1)

/** Keys of a record, in the form that `z.enum` expects. */
export const keysOf = <K extends string>(record: Readonly<Record<K, unknown>>): [K, ...K[]] => Object.keys(record) as [K, ...K[]]

/** Configurations have a few kilobytes; a long list of wrong fields would be described field by field. */
const mostBytes = 4 * 2 ** 20

/** Value of a JSON file. @throws usage `config.read`, `config.json`; `weights.adapter` if the folder of a missing file is an adapter's */
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

/** Reads an optional file like `readConfigFile`; undefined if it does not exist. @throws usage `config.read`, `config.json` */
export async function readOptionalConfigFile(path: string): Promise<unknown> {
  try {
    return await readJsonFile(path)
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

/** @throws usage `config.json` for invalid JSON, and for a key that occurs twice in an object, since readers disagree about which value counts */
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

/** Maximum number of wrong fields in a message. */
const shownProblems = 8

/** Value of a field as shown in a message, if it is short. */
const found = (value: unknown): string =>
  typeof value === 'object' || value === undefined ? '' : `, found ${shown(JSON.stringify(value))}`

/** Checks the fields of a configuration; `name` is used in messages. @throws usage `config.field` with the wrong fields and their values */
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

/** Value of one field, checked. @throws usage `config.field` with the field and its value */
export const checkField = <T extends z.ZodType>(schema: T, value: unknown, field: string, name: string): z.output<T> =>
  checkFields(z.object({ [field]: schema }), { [field]: value }, name)[field] as z.output<T>

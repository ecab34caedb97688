/** HF's JSON configuration files: read, and held against a schema. What the fields mean is each model's own. */
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { usageError } from '../../errors.js'

/** An extent or a count. */
export const size = z
  .int()
  .positive()
  .max(2 ** 31 - 1)

/** The keys of a record, as `z.enum` takes them. */
export const keysOf = <K extends string>(record: Readonly<Record<K, unknown>>): [K, ...K[]] => Object.keys(record) as [K, ...K[]]

/** The value of a JSON file. @throws usage `config.read`, `config.json` */
export async function readConfigFile(path: string): Promise<unknown> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (cause) {
    throw usageError('config.read', `cannot read ${path}: ${cause instanceof Error ? cause.message : String(cause)}`, {
      hint: 'a model folder holds config.json, model.safetensors and tokenizer.json',
      cause,
    })
  }
  return parseJson(text, path)
}

/** The same of a file that need not exist; undefined if it does not. @throws usage `config.read`, `config.json` */
export async function readOptionalConfigFile(path: string): Promise<unknown> {
  try {
    return await readConfigFile(path)
  } catch (error) {
    if (error instanceof Error && error.cause instanceof Error && 'code' in error.cause && error.cause.code === 'ENOENT') {
      return undefined
    }
    throw error
  }
}

function parseJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw usageError('config.json', `${path} is not JSON`, { cause })
  }
}

/** The fields of a configuration; `name` is used in messages. @throws usage `config.field` naming every field that is wrong */
export function checkFields<T extends z.ZodType>(schema: T, value: unknown, name: string): z.output<T> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues.map((issue) => `${issue.path.join('.') || 'the file'}: ${issue.message}`)
  throw usageError('config.field', `${name}: ${problems.join('; ')}`)
}

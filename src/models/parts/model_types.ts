/**
 * Supported model types, by kind of model. Each kind has its own opening function; the error for another type lists all of them.
 * Tables of each kind state how its types differ. A test compares the names here with those tables.
 */
import { shown } from '../../checkpoint/safetensors_header.js'
import { usageError } from '../../errors.js'

export const modelTypes = {
  encoder: ['bert', 'qdqbert', 'distilbert', 'roberta', 'roberta-prelayernorm', 'xlm-roberta', 'camembert'],
  seq2seq: ['pegasus', 'marian', 'opennmt'],
  llama: ['llama', 'mistral', 'qwen2', 'qwen3', 'phi3'],
} as const

export type ModelKind = keyof typeof modelTypes

const kinds: readonly ModelKind[] = ['encoder', 'seq2seq', 'llama']

/** Node functions that open each kind of model. */
const openers: Readonly<Record<ModelKind, string>> = { encoder: 'openPipeline', seq2seq: 'openGenerator', llama: 'openLlama' }

const isOf = (kind: ModelKind, type: unknown): boolean => (modelTypes[kind] as readonly unknown[]).includes(type)

/**
 * Refuses a configuration of another kind of model, or of an unsupported type.
 * @param name of the configuration, for messages
 * @throws usage `config.model_type`
 */
export function expectModelType(value: unknown, kind: ModelKind, name: string): void {
  // The schema of the kind reports values that are not objects.
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return
  const { model_type: type } = value as { readonly model_type?: unknown }
  if (isOf(kind, type)) return
  const found = type === undefined ? 'missing' : shown(JSON.stringify(type))
  const other = kinds.find((each) => isOf(each, type))
  const known = other === undefined ? kinds.flatMap((each) => modelTypes[each]) : modelTypes[kind]
  throw usageError('config.model_type', `${name}: model_type is ${found}, expected one of ${known.join(', ')}`, {
    hint:
      other === undefined ? undefined : `${openers[other]} of 'heddle/commands', and \`heddle run\`, open models of this type`,
  })
}

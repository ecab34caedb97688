/** Results of an encoder's cases, unpacked from the outputs of a batch. */
import { decode } from '../../runtime/buffer.js'
import { noNumbers } from '../parts/no_numbers.js'
import type { BertConfig } from './config.js'
import type { Outputs } from './encoder_programs.js'

/** One row per token of the case, without padding; for a sequence classifier, one row per case. */
export type EncoderResult =
  | {
      readonly kind: 'token-classifier'
      readonly labels: readonly string[]
      readonly labelIds: readonly number[]
      readonly logits: readonly Float32Array[]
    }
  | {
      readonly kind: 'sequence-classifier'
      readonly label: string
      readonly labelId: number
      readonly logits: readonly [Float32Array]
    }
  /** Logits of an answer beginning and ending at each token. */
  | { readonly kind: 'question-answering'; readonly begins: Float32Array; readonly ends: Float32Array }
  | { readonly kind: 'encoder'; readonly states: readonly Float32Array[]; readonly pooled: Float32Array | undefined }

/** The row of one case. @throws finding `run.value` for a value that is not finite */
export function embeddingOf({ hidden }: BertConfig, outputs: Outputs, index: number, name: string): Float32Array {
  const row = decode('f32', outputs.embeddings ?? new Uint8Array()).slice(index * hidden, (index + 1) * hidden)
  const wrong = row.find((value) => !Number.isFinite(value))
  if (wrong !== undefined) throw noNumbers(`${name}: the embedding holds ${wrong}`)
  return row
}

/** The rows of one case's valid tokens. @throws finding `run.value` for a value that is not finite: such a row's label is meaningless */
export function unpackOutputs(
  config: BertConfig,
  outputs: Outputs,
  { index, first, length }: { readonly index: number; readonly first: number; readonly length: number },
  name: string,
): EncoderResult {
  const rows = (output: string, width: number, { from = first, count = length, what = output } = {}): Float32Array[] => {
    const values = decode('f32', outputs[output] ?? new Uint8Array()).subarray(from * width, (from + count) * width)
    const wrong = values.findIndex((value) => !Number.isFinite(value))
    if (wrong >= 0) throw noNumbers(`${name}: the ${what} of token ${Math.floor(wrong / width)} hold ${values[wrong]}`)
    return Array.from({ length: count }, (_, row) => values.slice(row * width, (row + 1) * width))
  }
  const labels = decode('i32', outputs.labels ?? new Uint8Array())
  const nameOf = (id: number): string => config.labels[id] ?? `LABEL_${id}`
  const { kind, classes, hidden } = config
  if (kind === 'sequence-classifier') {
    const labelId = labels[index] ?? 0
    const [logits = new Float32Array()] = rows('logits', classes, { from: index, count: 1 })
    return { kind, labelId, label: nameOf(labelId), logits: [logits] }
  }
  if (kind === 'question-answering') {
    const logits = rows('logits', classes)
    const column = (at: number): Float32Array => Float32Array.from(logits, (row) => row[at] ?? Number.NaN)
    return { kind, begins: column(0), ends: column(1) }
  }
  if (kind === 'token-classifier') {
    const labelIds = [...labels.subarray(first, first + length)]
    return { kind, labelIds, labels: labelIds.map(nameOf), logits: rows('logits', classes) }
  }
  const [pooled] = outputs.pooled === undefined ? [] : rows('pooled', hidden, { from: index, count: 1, what: 'pooled state' })
  return { kind, states: rows('states', hidden), pooled }
}

/** Tensors of a checkpoint as a model's weights: found by name, checked against the shapes from the configuration, converted when they are read. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type HeddleError, usageError } from '../errors.js'
import { isMissing } from '../files.js'
import type { DeferredTensor } from '../runtime/weight.js'
import { type Allowed, type CheckpointTensor, convertTensor, type FloatType } from './convert.js'
import { isGgufName } from './gguf_parts.js'
import { expectNoAdapter } from './other_folders.js'
import { openSafetensors, type SafetensorsFile } from './safetensors.js'
import { shown } from './safetensors_header.js'
import { indexFile, openShards } from './sharded.js'
import { withoutSharedPrefix } from './shared_prefix.js'

const singleFile = 'model.safetensors'

/** The tensors of a model's files. */
export interface Checkpoint {
  readonly tensors: ReadonlyMap<string, CheckpointTensor>
}

/**
 * Opens the weights of a folder for a run. Their names may all share one prefix.
 * @param anchors names of a tensor that every such model has, the longer ones first
 * @throws usage `weights.adapter`, `weights.prefix`, and what `openCheckpoint` throws
 */
export async function openModelCheckpoint(dir: string, anchors: readonly string[], signal?: AbortSignal): Promise<Checkpoint> {
  expectNoAdapter(dir)
  return withoutSharedPrefix(await openCheckpoint(dir, signal), anchors)
}

/**
 * Opens the weights of a model folder: `model.safetensors`, or the files that `model.safetensors.index.json` names. Only headers are
 * read; nothing stays open.
 * @throws usage `safetensors.*`, `checkpoint.index`, `checkpoint.shard`; the signal's reason when it aborts
 */
export async function openCheckpoint(dir: string, signal?: AbortSignal): Promise<SafetensorsFile> {
  try {
    return await openSafetensors(join(dir, singleFile), signal)
  } catch (single) {
    if (!isMissing(single)) throw single
    return openShards(dir, signal).catch(async (sharded: unknown) => {
      throw isMissing(sharded) && isIndex(sharded) ? await withoutWeights(dir, sharded.cause) : sharded
    })
  }
}

/** Error for a folder without weights: the files looked for, and those found instead. */
async function withoutWeights(dir: string, cause: unknown): Promise<HeddleError> {
  const files = await readdir(dir).catch((): string[] => [])
  const found = files.filter((name) => /\.(safetensors|bin|gguf|pth?)$/.test(name)).sort()
  const listed = `there is ${found.slice(0, 4).join(', ')}${found.length > 4 ? ', ...' : ''}`
  const instead = found.every(isGgufName)
    ? `${listed}: pass that file instead of the folder if the model is LLaMA-like`
    : `${listed}: a model in several files needs its index, other formats are not read`
  return usageError('safetensors.read', `${dir} has no weights: neither ${singleFile} nor ${indexFile} is there`, {
    hint: found.length === 0 ? 'download the weights of the model too' : instead,
    cause,
  })
}

const isIndex = (error: unknown): error is Error => error instanceof Error && 'code' in error && error.code === 'checkpoint.index'

/** The first of these names that a checkpoint has a tensor for, and the tensor. */
export function findTensor(file: Checkpoint, names: readonly string[]): readonly [string, CheckpointTensor] | undefined {
  for (const name of names) {
    const tensor = file.tensors.get(name)
    if (tensor !== undefined) return [name, tensor]
  }
  return undefined
}

/**
 * Refuses a count of repeated parts that the checkpoint cannot hold, before anything is allocated per part. Each part has at least one tensor, so a
 * small configuration cannot require more parts than its checkpoint has tensors.
 * @param what name of the configuration's field
 * @throws usage `config.count`
 */
export function expectCount(file: Checkpoint, what: string, count: number): void {
  if (count <= file.tensors.size) return
  throw usageError(
    'config.count',
    `${what} is ${count}, expected at most ${file.tensors.size}, the number of tensors of the checkpoint`,
    {
      hint: 'the weights may belong to another configuration',
    },
  )
}

/** Source of a weight: a tensor, or some of its rows. */
interface Taken {
  readonly allowed?: Allowed | undefined
  /** Range of rows, from and to. */
  readonly rows?: readonly [number, number] | undefined
  readonly hints?: TensorHints | undefined
}

/** Hints for errors of a tensor, from the configuration. */
export interface TensorHints {
  readonly missing?: string
  /** Hint for another number of rows. */
  readonly rows?: string
}

/** Hint for a table with one row per token. */
export const tokenRows: TensorHints = { rows: 'its rows are tokens: vocab_size of the configuration must be their number' }

/**
 * A tensor in storage type `dtype`, read when it is uploaded. Reading throws finding `weights.value` for a value that is not finite.
 * @param found the checkpoint's tensor, if any
 * @param shape of the whole tensor, also where some of its rows are taken
 * @throws usage `weights.missing`, `weights.shape`, `weights.dtype` with the tensor, the configuration's expectation and the tensor found
 */
export function takeTensor(
  found: readonly [string, CheckpointTensor] | undefined,
  name: string,
  shape: readonly number[],
  dtype: FloatType,
  { allowed, rows, hints }: Taken = {},
): DeferredTensor {
  const [stored, tensor] = expectTensor(found, name, shape, hints)
  if (rows === undefined) return convertTensor(stored, tensor, dtype, allowed)
  return convertTensor(nameOfRows(stored, rows), rowsOf(tensor, ...rows), dtype, allowed)
}

const nameOfRows = (name: string, [from, to]: readonly [number, number]): string => `${name}, rows ${from} to ${to - 1},`

/**
 * An int8 tensor as it is stored, or some of its rows.
 * @throws usage `weights.missing`, `weights.shape`, `weights.dtype`
 */
export function takeInt8(
  found: readonly [string, CheckpointTensor] | undefined,
  name: string,
  shape: readonly number[],
  rows: readonly [number, number] = [0, shape[0] ?? 0],
): DeferredTensor {
  const [stored, tensor] = expectTensor(found, name, shape)
  if (tensor.dtype !== 'I8') throw usageError('weights.dtype', `tensor ${shown(stored)} is ${tensor.dtype}, expected I8`)
  const taken = rowsOf(tensor, ...rows)
  return int8Tensor(taken.shape, (signal) => dataOf(taken, signal))
}

/** Integers per int32 in `compressed-tensors`, the first in the lowest bits. */
const packedIntegers = 4
/** Offset added to each integer, so that none is negative. */
const packedOffset = 128

/**
 * An int8 matrix that is stored as four columns per int32, or some of its rows, unpacked to int8.
 * @param shape of the matrix before packing
 * @throws usage `weights.missing`, `weights.shape`, `weights.dtype`; also `weights.shape` if the number of columns is not a multiple of four
 */
export function takePackedInt8(
  found: readonly [string, CheckpointTensor] | undefined,
  name: string,
  [count = 0, columns = 0]: readonly number[],
  rows: readonly [number, number] = [0, count],
): DeferredTensor {
  if (columns % packedIntegers !== 0) {
    throw usageError('weights.shape', `tensor ${name} packs ${columns} columns, expected a multiple of ${packedIntegers}`)
  }
  const [stored, tensor] = expectTensor(found, name, [count, columns / packedIntegers])
  if (tensor.dtype !== 'I32') throw usageError('weights.dtype', `tensor ${shown(stored)} is ${tensor.dtype}, expected I32`)
  const taken = rowsOf(tensor, ...rows)
  return int8Tensor([rows[1] - rows[0], columns], async function* (signal) {
    // Files are little-endian: bytes of an int32 come in the order of the integers.
    for await (const piece of dataOf(taken, signal)) yield piece.map((byte) => byte - packedOffset)
  })
}

const int8Tensor = (shape: readonly number[], pieces: DeferredTensor['pieces']): DeferredTensor => ({
  ...{ dtype: 'i8', shape, bytes: shape.reduce((product, extent) => product * extent, 1) },
  pieces,
})

async function* dataOf(tensor: CheckpointTensor, signal?: AbortSignal): AsyncGenerator<Uint8Array, void> {
  if ('data' in tensor) yield tensor.data
  else yield* tensor.pieces(signal)
}

/** @throws usage `weights.missing`, `weights.shape` */
function expectTensor(
  found: readonly [string, CheckpointTensor] | undefined,
  name: string,
  shape: readonly number[],
  hints: TensorHints = {},
): readonly [string, CheckpointTensor] {
  if (found === undefined) {
    throw usageError('weights.missing', `tensor ${name} [${shape.join(', ')}] is missing`, {
      hint: hints.missing ?? 'the weights may belong to another architecture than config.json states',
    })
  }
  const [stored, tensor] = found
  if (tensor.shape.join() !== shape.join()) {
    throw usageError(
      'weights.shape',
      `tensor ${shown(stored)} has shape [${tensor.shape.join(', ')}], the configuration expects [${shape.join(', ')}]`,
      tensor.shape.slice(1).join() === shape.slice(1).join() ? { hint: hints.rows } : {},
    )
  }
  return found
}

/** Range of rows of a tensor, from and to. */
function rowsOf(tensor: CheckpointTensor, from: number, to: number): CheckpointTensor {
  if (!('data' in tensor)) return tensor.rows(from, to)
  const row = tensor.data.byteLength / (tensor.shape[0] ?? 1)
  return { ...tensor, shape: [to - from, ...tensor.shape.slice(1)], data: tensor.data.subarray(from * row, to * row) }
}

/** Files of weights for users of the package: names, types and shapes from the header, and tensors as those of `heddle/runtime`, read on demand. */
import { stat } from 'node:fs/promises'
import { extname } from 'node:path'
import { usageError } from '../errors.js'
import { type DType, isFloat8 } from '../ir/dtype.js'
import { listed, nameHint } from '../known_names.js'
import { knownHint } from '../nearest.js'
import { type Tensor, tensor, tensorOf, toNumbers } from '../runtime/api/tensor.js'
import { wholeOf } from '../runtime/weight.js'
import { openCheckpoint as openFolder } from './checkpoint.js'
import { type FloatType, floatTypes } from './float_types.js'
import { ggufPath, openGgufModel } from './gguf_parts.js'
import { type FileTensor, openSafetensors } from './safetensors.js'
import { type ElementType, shown } from './safetensors_header.js'

/** Types that a float tensor can be rounded to. */
export type FloatTensorType = FloatType

/** Metadata values of a file: strings in safetensors, values and lists in GGUF. */
export type MetadataValue = string | number | boolean | readonly string[] | readonly number[] | readonly boolean[]

export interface ReadOptions<D extends FloatTensorType = FloatTensorType> {
  /** Type that floats are rounded to; by default the stored type. */
  readonly dtype?: D | undefined
  readonly signal?: AbortSignal | undefined
}

/** A tensor of a file. */
export interface CheckpointTensor {
  readonly name: string
  /** Type of the result of `read`. */
  readonly dtype: DType
  /** The file's own name of the type: `BF16`, or `Q8_0` and `Q4_K`, whose blocks are read as f32. */
  readonly stored: string
  /** Row-major: the fastest-changing extent comes last, in GGUF files too. */
  readonly shape: readonly number[]
  /**
   * Reads the values into host memory. `toNumbers` of `heddle/runtime` converts 16-bit and 8-bit floats to a Float32Array.
   * @throws usage `safetensors.read`, `safetensors.changed`, `gguf.read`, `gguf.changed`, `checkpoint.option`; the signal's reason when it aborts
   */
  read(options?: ReadOptions & { readonly dtype?: undefined }): Promise<Tensor<DType>>
  /**
   * Reads the values of a float type, rounded to `dtype`. Those of f32 are a Float32Array.
   * @throws the same; usage `weights.dtype` for integers and for an unknown type, `weights.value` for a number too large for `dtype`
   */
  read<const D extends FloatTensorType>(options: ReadOptions<D> & { readonly dtype: D }): Promise<Tensor<D>>
  /** Rows `from` to `to - 1` as a tensor. Reading it reads only these rows. @throws usage `checkpoint.rows` */
  rows(from: number, to: number): CheckpointTensor
}

/** Tensors of a model's files. No file stays open. */
export interface Checkpoint {
  readonly format: 'safetensors' | 'gguf'
  /** Metadata of the file; empty for a folder of several files. */
  readonly metadata: ReadonlyMap<string, MetadataValue>
  readonly tensors: ReadonlyMap<string, CheckpointTensor>
  /** The tensor with a name. @throws usage `checkpoint.tensor` with the nearest names */
  tensor(name: string): CheckpointTensor
}

const storageTypes: Readonly<Record<ElementType, DType>> = {
  ...{ F32: 'f32', F16: 'f16', BF16: 'bf16', F8_E4M3: 'f8e4m3', F8_E5M2: 'f8e5m2' },
  ...{ I8: 'i8', U8: 'u8', I16: 'i16', I32: 'i32', U32: 'u32', I64: 'i64' },
}

/**
 * Opens the weights of a model: a folder with `model.safetensors`, or with the files that `model.safetensors.index.json` names; one `.safetensors`
 * file; a `.gguf` file, with the other parts of its model, or a folder of one. Only headers are read and checked.
 * @throws usage `checkpoint.format` for another file, `checkpoint.index`, `checkpoint.shard`, `safetensors.*`, `gguf.*`; the signal's reason when it
 * aborts
 */
export async function openCheckpoint(
  path: string,
  { signal }: { readonly signal?: AbortSignal | undefined } = {},
): Promise<Checkpoint> {
  const gguf = await ggufPath(path)
  if (gguf !== undefined) return checkpointOf(gguf, 'gguf', await openGgufModel(gguf, signal))
  const extension = extname(path).toLowerCase()
  const isFile = await stat(path).then(
    (found) => !found.isDirectory(),
    () => extension === '.safetensors',
  )
  if (!isFile) return checkpointOf(path, 'safetensors', await openFolder(path, signal))
  if (extension !== '.safetensors') {
    throw usageError('checkpoint.format', `${path} is a file of another format, expected .safetensors or .gguf`, {
      hint: 'for weights in several files, pass the folder',
    })
  }
  return checkpointOf(path, 'safetensors', await openSafetensors(path, signal))
}

interface Opened {
  readonly tensors: ReadonlyMap<string, FileTensor>
  readonly metadata?: ReadonlyMap<string, MetadataValue> | Readonly<Record<string, string>>
}

function checkpointOf(path: string, format: Checkpoint['format'], { tensors: found, metadata = {} }: Opened): Checkpoint {
  const tensors = new Map([...found].map(([name, each]) => [name, tensorOfFile(name, each)]))
  return {
    format,
    metadata: metadata instanceof Map ? metadata : new Map(Object.entries(metadata)),
    tensors,
    tensor(name) {
      const each = tensors.get(name)
      if (each !== undefined) return each
      throw usageError('checkpoint.tensor', `${path} has no tensor ${shown(String(name))}`, {
        hint: knownHint(String(name), [...tensors.keys()]),
      })
    },
  }
}

function tensorOfFile(name: string, file: FileTensor): CheckpointTensor {
  const dtype = storageTypes[file.dtype]
  const { shape, stored = file.dtype } = file
  async function read(options: ReadOptions = {}): Promise<Tensor<DType>> {
    const { dtype: requested, signal } = checked(options)
    if (requested !== undefined && requested !== dtype && !isFloat(dtype)) {
      throw usageError('weights.dtype', `tensor ${shown(name)} is ${dtype}, which is not read as ${requested}`, {
        hint: 'omit dtype: integers are read as they are stored',
      })
    }
    const whole = tensorOf(dtype, shape, await wholeOf(file, signal))
    return requested === undefined || requested === dtype ? whole : rounded(name, whole, requested)
  }
  return {
    ...{ name, dtype, stored, shape },
    // The two overloads of `read` cannot be expressed by the type of one function.
    read: read as CheckpointTensor['read'],
    rows(from, to) {
      const [count] = shape
      if (count === undefined || ![from, to].every(Number.isSafeInteger) || from < 0 || to <= from || to > count) {
        throw usageError('checkpoint.rows', `tensor ${shown(name)} [${shape.join(', ')}] has no rows ${from} to ${to}`, {
          hint: count === undefined ? 'it is a scalar: read it whole' : `expected 0 <= from < to <= ${count}`,
        })
      }
      return tensorOfFile(name, file.rows(from, to))
    },
  }
}

const isFloat = (dtype: DType): boolean => isFloat8(dtype) || floatTypes.some((each) => each === dtype)

const names = ['dtype', 'signal'] as const

/** @throws usage `checkpoint.option`, `weights.dtype` for arguments of untyped callers */
function checked(options: ReadOptions): ReadOptions {
  const unknown = Object.keys(options).find((name) => !names.some((each) => each === name))
  if (unknown !== undefined) {
    throw usageError('checkpoint.option', `read has no option ${unknown}`, { hint: nameHint('options', names, unknown) })
  }
  const { dtype } = options
  if (dtype === undefined || floatTypes.includes(dtype)) return options
  throw usageError('weights.dtype', `tensors are not read as ${JSON.stringify(dtype)}`, { hint: listed('types', floatTypes) })
}

/** A float tensor in another type. @throws usage `weights.value` for the first finite number that overflows there */
function rounded(name: string, whole: Tensor<DType>, dtype: FloatType): Tensor<FloatType> {
  const values = toNumbers(whole)
  const result = tensor(dtype, whole.shape, values as Float32Array)
  if (dtype === 'f32') return result
  const after = toNumbers(result)
  const at = after.findIndex((value, i) => !Number.isFinite(value) && Number.isFinite(values[i]))
  if (at < 0) return result
  throw usageError('weights.value', `tensor ${shown(name)}: element ${at} is ${values[at]}, too large for ${dtype}`, {
    hint: 'read it in f32 or bf16',
  })
}

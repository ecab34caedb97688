/**
 * States of programs on a device: named tensors in one buffer that outlive runs and programs, such as the caches, the counters and
 * the flags of decoding. The owner allocates them here, passes them to programs and releases them when no program runs.
 */
import { environmentError, HeddleError, usageError } from '../errors.js'
import type { DType } from '../ir/dtype.js'
import { decode, encode, type HostArrays } from './buffer.js'
import type { Layouts } from './layouts.js'
import type { NativeBuffer, NativeDevice, NativeSlice } from './native.js'
import { arenaAlignment } from './planner.js'
import { unwritten } from './poison.js'
import { describeValue, valueBytes } from './program_states.js'
import type { TensorSlice } from './session.js'

export interface StateDecl<D extends DType = DType> {
  readonly dtype: D
  readonly shape: readonly number[]
  /** Row-major if undefined. */
  readonly layout?: string
  /** Initialised to zeros: for a state with unwritten elements that steps read, such as a cache whose unwritten positions have weight 0. */
  readonly cleared?: boolean
}

type Decls = Readonly<Record<string, StateDecl>>

export interface StatesConfig {
  readonly device: NativeDevice
  /** Declared layouts by name. */
  readonly layouts: Layouts
}

export interface States<S extends Decls = Decls> {
  /** Tensors to pass to programs: `states: { step: { tensor: states.tensors.step, next: 'step.1' } }`. */
  readonly tensors: { readonly [K in keyof S]: TensorSlice }
  /** Device memory of all of them. */
  readonly bytes: number
  /**
   * Sets all elements in the order of the state's layout, padding included: after every run requested earlier, before the later ones.
   * @throws usage `states.values` for a wrong number of elements, and errors of the device
   */
  write<K extends keyof S & string>(name: K, values: HostArrays[S[K]['dtype']]): Promise<void>
  /** Sets several states; states declared next to each other are written in one transfer. @throws like `write` */
  writeAll(values: { readonly [K in keyof S]?: HostArrays[S[K]['dtype']] }): Promise<void>
  /** Reads all elements in the order of the state's layout, ordered among runs like writes. */
  read<K extends keyof S & string>(name: K): Promise<HostArrays[S[K]['dtype']]>
  /** Frees the memory. Programs that use it keep it alive until they are released too. */
  release(): void
}

/**
 * Allocates states in one buffer. Unless a state is cleared, it is filled with poison that shows in results: NaN in float types, -1 in
 * integers, which is out of bounds of every table it might index.
 * @throws environment `states.memory` naming the bytes needed and free, usage `states.name` for reads and writes of unknown states, and
 * errors of the device
 */
export async function openStates<const S extends Decls>({ device, layouts }: StatesConfig, decls: S): Promise<States<S>> {
  let bytes = 0
  const placed = Object.entries<StateDecl>(decls).map(([name, decl]) => {
    const offset = bytes
    const size = valueBytes({ ...decl, layout: decl.layout ?? 'row' }, layouts)
    bytes += aligned(size)
    return { name, decl, offset, size }
  })
  const buffer = allocate(device, Math.max(bytes, arenaAlignment))
  try {
    const cleared = placed.flatMap(({ decl, offset, size }) => (decl.cleared === true ? [{ buffer, offset, bytes: size }] : []))
    await initialise(device, { buffer, offset: 0, bytes: buffer.bytes }, cleared)
  } catch (error) {
    buffer.release()
    throw error
  }
  const tensors = Object.fromEntries(
    placed.map(({ name, decl: { cleared: _, ...form }, offset, size }) => [
      name,
      { ...form, slice: { buffer, offset, bytes: size } },
    ]),
  )
  const tensorOf = (name: string): TensorSlice => {
    const tensor = Object.hasOwn(tensors, name) ? tensors[name] : undefined
    if (tensor === undefined)
      throw usageError('states.name', `there is no state ${name}`, {
        hint: `states: ${Object.keys(tensors).join(', ') || 'none'}`,
      })
    return tensor
  }
  return {
    tensors: tensors as States<S>['tensors'],
    bytes: buffer.bytes,
    async write(name, values) {
      const { offset, data } = pieceOf(name, tensorOf(name), values)
      await buffer.write(offset, data)
    },
    async writeAll(values) {
      const pieces = Object.entries<HostArrays[DType] | undefined>(values).flatMap(([name, given]) =>
        given === undefined ? [] : [pieceOf(name, tensorOf(name), given)],
      )
      await Promise.all(joined(pieces).map(({ offset, data }) => buffer.write(offset, data)))
    },
    async read(name) {
      const { dtype, slice } = tensorOf(name)
      return decode(dtype, await buffer.read(slice.offset, slice.bytes)) as HostArrays[S[typeof name]['dtype']]
    },
    release: () => buffer.release(),
  }
}

/** Bytes and their offset in the buffer. */
interface Piece {
  readonly offset: number
  readonly data: Uint8Array
}

function pieceOf(name: string, { dtype, shape, layout = 'row', slice }: TensorSlice, values: HostArrays[DType]): Piece {
  const data = encode(dtype, values)
  if (data.byteLength !== slice.bytes) {
    const wanted = `${describeValue({ dtype, shape, layout })}, ${slice.bytes} bytes`
    throw usageError(
      'states.values',
      `state ${name}: expected ${wanted}, got ${values.length} elements, ${data.byteLength} bytes`,
    )
  }
  return { offset: slice.offset, data }
}

const aligned = (bytes: number): number => Math.ceil(bytes / arenaAlignment) * arenaAlignment

/** Merges adjacent pieces; only alignment padding lies between them. */
function joined(pieces: readonly Piece[]): Piece[] {
  const runs: Piece[][] = []
  for (const piece of pieces.toSorted((a, b) => a.offset - b.offset)) {
    const last = runs.at(-1)?.at(-1)
    if (last !== undefined && piece.offset === last.offset + aligned(last.data.byteLength)) runs.at(-1)?.push(piece)
    else runs.push([piece])
  }
  return runs.map((run) => {
    const [offset, end] = [run[0]?.offset ?? 0, Math.max(...run.map(({ offset, data }) => offset + data.byteLength))]
    const data = new Uint8Array(end - offset)
    for (const piece of run) data.set(piece.data, piece.offset - offset)
    return { offset, data }
  })
}

/** Allocates, and names states in the error: the device's own message does not say what the memory is for. */
function allocate(device: NativeDevice, bytes: number): NativeBuffer {
  try {
    return device.allocate(bytes)
  } catch (cause) {
    if (!(cause instanceof HeddleError) || cause.code !== 'device.memory') throw cause
    const free = device.info().memoryFreeBytes
    throw environmentError('states.memory', `states need ${bytes} bytes of device memory, ${free} are free`, {
      hint: 'use a smaller batch, fewer beams or fewer steps',
      cause,
    })
  }
}

async function initialise(device: NativeDevice, whole: NativeSlice, cleared: readonly NativeSlice[]): Promise<void> {
  const program = device.program([
    { kind: 'fill', label: 'states', target: whole, value: unwritten },
    ...cleared.map((target) => ({ kind: 'fill', label: 'cleared', target, value: 0 }) as const),
  ])
  try {
    await program.run([], [])
  } finally {
    program.release()
  }
}

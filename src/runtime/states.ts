/**
 * States of programs on a device: named tensors in one buffer that outlive runs and programs, such as the caches, the counters and
 * the flags of decoding. Whoever owns them allocates them here, gives them to programs and releases them when no program runs.
 */
import { environmentError, HeddleError, usageError } from '../errors.js'
import type { DType } from '../ir/dtype.js'
import { decode, encode, type HostArrays } from './buffer.js'
import type { Layouts } from './layouts.js'
import type { NativeBuffer, NativeDevice, NativeSlice } from './native.js'
import { arenaAlignment } from './planner.js'
import { describeValue, valueBytes } from './program_states.js'
import type { DeviceTensor } from './session.js'

export interface StateDecl<D extends DType = DType> {
  readonly dtype: D
  readonly shape: readonly number[]
  /** Row-major where undefined. */
  readonly layout?: string
}

type Decls = Readonly<Record<string, StateDecl>>

export interface StatesConfig {
  readonly device: NativeDevice
  /** Declared layouts by name. */
  readonly layouts: Layouts
}

export interface States<S extends Decls = Decls> {
  /** What programs take: `states: { step: { tensor: states.tensors.step, next: 'step.1' } }`. */
  readonly tensors: { readonly [K in keyof S]: DeviceTensor }
  /** Device memory of all of them. */
  readonly bytes: number
  /**
   * Sets elements as they lie in the state's layout, padding included: behind every run that was asked for before, ahead of the later ones.
   * @throws usage `states.values` for another number of elements, and what the device rejects with
   */
  write<K extends keyof S & string>(name: K, values: HostArrays[S[K]['dtype']]): Promise<void>
  /** The elements as they lie in the state's layout, ordered among runs as writes are. */
  read<K extends keyof S & string>(name: K): Promise<HostArrays[S[K]['dtype']]>
  /** Frees the memory. Programs that use it keep it alive until they are released too. */
  release(): void
}

/**
 * Allocates states in one buffer and sets every byte to zero.
 * @throws environment `states.memory` naming the bytes needed and free, usage `states.name` for reads and writes of unknown ones, and
 * what the device rejects with
 */
export async function openStates<const S extends Decls>({ device, layouts }: StatesConfig, decls: S): Promise<States<S>> {
  let bytes = 0
  const placed = Object.entries<StateDecl>(decls).map(([name, decl]) => {
    const offset = bytes
    const size = valueBytes({ ...decl, layout: decl.layout ?? 'row' }, layouts)
    bytes += Math.ceil(size / arenaAlignment) * arenaAlignment
    return { name, decl, offset, size }
  })
  const buffer = allocate(device, Math.max(bytes, arenaAlignment))
  try {
    await clear(device, { buffer, offset: 0, bytes: buffer.bytes })
  } catch (error) {
    buffer.release()
    throw error
  }
  const tensors = Object.fromEntries(
    placed.map(({ name, decl, offset, size }) => [name, { ...decl, slice: { buffer, offset, bytes: size } }]),
  )
  const tensorOf = (name: string): DeviceTensor => {
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
      const { dtype, shape, layout = 'row', slice } = tensorOf(name)
      const data = encode(dtype, values)
      if (data.byteLength !== slice.bytes) {
        const wanted = `${describeValue({ dtype, shape, layout })}, ${slice.bytes} bytes`
        throw usageError('states.values', `state ${name} is ${wanted}: ${values.length} elements have ${data.byteLength}`)
      }
      await buffer.write(slice.offset, data)
    },
    async read(name) {
      const { dtype, slice } = tensorOf(name)
      return decode(dtype, await buffer.read(slice.offset, slice.bytes)) as HostArrays[S[typeof name]['dtype']]
    },
    release: () => buffer.release(),
  }
}

/** The device's own message does not say what the memory is for. */
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

async function clear(device: NativeDevice, target: NativeSlice): Promise<void> {
  const program = device.program([{ kind: 'fill', label: 'states', target, value: 0 }])
  try {
    await program.run([], [])
  } finally {
    program.release()
  }
}

/**
 * Launches a single kernel. Host tensors and the results that return to the host share one arena. Results kept on the device get memory of
 * their own. An input that the op updates in place is its result.
 */

import type { DType } from '../../ir/dtype.js'
import { abortable } from '../abortable.js'
import type { NativeBuffer, NativeDevice, NativeLibrary, NativeSlice } from '../native.js'
import { arenaAlignment } from '../planner.js'
import type { CheckedCall } from './check_call.js'
import { DeviceTensor, type TensorHome } from './device_tensor.js'
import type { FoundKernel } from './find_kernel.js'
import { bytesIn, formBytes, tensorIn } from './form.js'
import type { Tensor } from './tensor.js'

export interface Launch {
  readonly call: CheckedCall
  readonly kernel: FoundKernel
  readonly library: NativeLibrary
  /** Memory of the inputs that are on the device. */
  readonly inputSlices: ReadonlyMap<string, NativeSlice>
  readonly keep: boolean
  readonly signal: AbortSignal | undefined
}

/** Memory of a tensor of the call: an offset in the arena of the call, or memory of its own. */
type Place = { readonly at: number; readonly bytes: number } | { readonly own: NativeSlice }

/**
 * Launches the kernel and resolves with the results. All work is submitted to the device before the first await.
 * @throws finding `device.fault`; environment `device.memory`; the signal's reason
 */
export async function launch(
  of: Launch,
  device: NativeDevice,
  home: TensorHome,
): Promise<Record<string, Tensor<DType> | DeviceTensor>> {
  const { call, kernel, library, keep, signal } = of
  const { op, outputs } = call
  const made: NativeBuffer[] = []
  const allocate = (bytes: number): NativeBuffer => {
    const buffer = device.allocate(Math.max(bytes, 1))
    made.push(buffer)
    return buffer
  }
  try {
    const { places, bytes } = placesOf(of, allocate)
    const arena = allocate(bytes)
    const slice = (name: string): NativeSlice => {
      const place = places.get(name)
      if (place === undefined) throw new Error(`internal: ${op.name} has no tensor ${name}`)
      return 'own' in place ? place.own : { buffer: arena, offset: place.at, bytes: place.bytes }
    }
    const { entry, dims, attrs } = kernel
    const buffers = entry.buffers.map(({ name }) => slice(name))
    const program = device.program([{ kind: 'kernel', label: op.name, library, key: entry.key, buffers, dims, attrs }])
    try {
      const writes = Object.entries(call.inputs).flatMap(([name, tensor]) =>
        tensor instanceof DeviceTensor ? [] : [{ to: slice(name), data: bytesIn(tensor, op.inputs[name]?.layout) }],
      )
      const reads = keep ? [] : Object.keys(outputs).map(slice)
      const results = await abortable(program, signal, () => program.run(writes, reads))
      arena.release()
      return Object.fromEntries(
        Object.entries(outputs).map(([name, form], i) => {
          if (!keep) return [name, tensorIn(form, results[i] ?? new Uint8Array())]
          const before = call.inputs[op.updates[name] ?? '']
          return [name, before instanceof DeviceTensor ? before : new DeviceTensor(form, home, slice(name))]
        }),
      )
    } finally {
      program.release()
    }
  } catch (error) {
    for (const buffer of made) buffer.release()
    throw error
  }
}

/** Memory of every tensor of the call, and the size of the arena. */
function placesOf(
  { call: { op, inputs, outputs }, inputSlices, keep }: Launch,
  allocate: (bytes: number) => NativeBuffer,
): { readonly places: ReadonlyMap<string, Place>; readonly bytes: number } {
  const places = new Map<string, Place>()
  let arenaBytes = 0
  const place = (name: string, bytes: number, stays: boolean): void => {
    if (stays) places.set(name, { own: { buffer: allocate(bytes), offset: 0, bytes } })
    else {
      places.set(name, { at: arenaBytes, bytes })
      arenaBytes += Math.ceil(bytes / arenaAlignment) * arenaAlignment
    }
  }
  const updated = new Set(Object.values(op.updates))
  for (const [name, tensor] of Object.entries(inputs)) {
    const slice = inputSlices.get(name)
    if (slice !== undefined) places.set(name, { own: slice })
    // An updated input is a kept result, so that it outlives the call.
    else place(name, formBytes({ ...tensor, layout: op.inputs[name]?.layout }), keep && updated.has(name))
  }
  for (const [name, form] of Object.entries(outputs)) {
    const before = places.get(op.updates[name] ?? '')
    if (before === undefined) place(name, formBytes(form), keep)
    else places.set(name, before)
  }
  return { places, bytes: arenaBytes }
}

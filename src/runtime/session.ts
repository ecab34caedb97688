/** A session: state shared by all programs of one model on a device, above all its weights, uploaded once. */
import type { Manifest } from '../emit/manifest/manifest.js'
import type { DType } from '../ir/dtype.js'
import { architectureOf } from './device.js'
import type { Layouts } from './layouts.js'
import type { KernelSource } from './library.js'
import type { NativeDevice, NativeSlice } from './native.js'
import { arenaAlignment } from './planner.js'
import { type AlgorithmOf, tunedAlgorithms } from './tuned_matmuls.js'
import { uploadTo } from './upload.js'
import { piecesOf, type Weight, weightBytes } from './weight.js'

export type { WeightTensor } from './weight.js'

/** A tensor in device memory; row-major unless a layout is named. */
export interface TensorSlice {
  readonly dtype: DType
  readonly shape: readonly number[]
  readonly layout?: string
  readonly slice: NativeSlice
}

export interface SessionConfig {
  readonly device: NativeDevice
  readonly library: KernelSource
  readonly manifest: Manifest
  /** Declared layouts by name. */
  readonly layouts: Layouts
  readonly weights: Readonly<Record<string, Weight>>
  /** Lets float32 matmuls round their operands to tf32. Off by default. */
  readonly allowTf32?: boolean
}

export interface Session extends Omit<Required<SessionConfig>, 'weights'> {
  readonly weights: ReadonlyMap<string, TensorSlice>
  /** Device memory the weights take. */
  readonly weightBytes: number
  /** Tuned algorithms of the device's matmul library. */
  readonly algorithmOf: AlgorithmOf
  /** Frees the weights. Programs built from the session keep them alive until they are released too. */
  release(): void
}

/** Flattening context of a session. */
export const contextOf = ({ weights, layouts, manifest, device }: Session) => ({
  weights,
  layouts,
  manifest,
  architecture: architectureOf(device.info()),
})

/** Field names of the flattening context. */
export type SessionContext = keyof ReturnType<typeof contextOf>

/**
 * Uploads the weights into one device buffer, one after the other, each piece by piece. Of deferred weights, host memory holds a few pieces
 * at a time.
 * @throws errors of the device, such as a lack of memory; errors of reading a weight; the signal's reason when it aborts
 */
export async function openSession(config: SessionConfig, signal?: AbortSignal): Promise<Session> {
  const tensors = Object.entries(config.weights)
  let bytes = 0
  const offsets = tensors.map(([, weight]) => {
    const offset = bytes
    bytes += Math.ceil(weightBytes(weight) / arenaAlignment) * arenaAlignment
    return offset
  })
  const buffer = config.device.allocate(Math.max(bytes, arenaAlignment))
  const weights = new Map<string, TensorSlice>()
  const upload = uploadTo(buffer)
  try {
    for (const [i, [name, weight]] of tensors.entries()) {
      const offset = offsets[i] ?? 0
      let at = offset
      for await (const piece of piecesOf(weight, signal)) {
        signal?.throwIfAborted()
        await upload.add(at, piece)
        at += piece.byteLength
      }
      const { dtype, shape, layout } = weight
      const slice = { buffer, offset, bytes: weightBytes(weight) }
      weights.set(name, { dtype, shape, ...(layout === undefined ? {} : { layout }), slice })
    }
    await upload.done()
  } catch (error) {
    buffer.release()
    throw error
  }
  return {
    ...config,
    allowTf32: config.allowTf32 ?? false,
    weights,
    weightBytes: bytes,
    algorithmOf: tunedAlgorithms(config.manifest.matmuls, config.device.info()),
    release: () => buffer.release(),
  }
}

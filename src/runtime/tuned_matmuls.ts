/**
 * Algorithms of the matmul library that were measured to be faster than its default. They are looked up by the name of a matmul, and apply to the
 * device and the library version they were measured with. Other devices and versions use the default, which a note reports.
 */
import { dtypes } from '../ir/dtype.js'
import type { TunedMatmul } from '../schedule/tuning/library.js'
import type { NativeDeviceInfo, NativeMatmul } from './native.js'
import { arenaAlignment } from './planner.js'

/** The algorithm of a matmul; undefined if the library chooses. */
export type AlgorithmOf = (matmul: NativeMatmul) => Uint8Array | undefined

/** Name of a matmul, independent of the memory it works on: `f16 x f16 -> f16, 1 x 128 x 768 x 768, a 0 768 1, b 0 768 1, out 0 768 1, bias`. */
export function matmulName({
  dtypes: types,
  allowTf32,
  extents,
  strides,
  epilogue,
}: Omit<NativeMatmul, 'kind' | 'label'>): string {
  const [a, b, out] = types.map((type) => dtypes[type] ?? '?')
  const [ofA, ofB, ofOut] = strides.map((each) => each.join(' '))
  const parts = [`${a} x ${b} -> ${out}`, extents.join(' x '), `a ${ofA}`, `b ${ofB}`, `out ${ofOut}`]
  const { bias, residual, relu } = epilogue ?? { relu: false }
  if (bias !== undefined) parts.push('bias')
  if (residual !== undefined) parts.push('residual')
  if (relu) parts.push('relu')
  if (allowTf32) parts.push('tf32')
  return parts.join(', ')
}

/** True if a matmul's operands have the alignment that a tuned algorithm may expect. */
export const isAligned = ({ a, b, out, epilogue }: NativeMatmul): boolean =>
  [a, b, out, epilogue?.bias, epilogue?.residual].every((slice) => slice === undefined || slice.offset % arenaAlignment === 0)

type DeviceInfo = Pick<NativeDeviceInfo, 'kind' | 'name' | 'matmulVersion'>

const fits =
  ({ name, matmulVersion }: DeviceInfo) =>
  ({ device, library }: TunedMatmul): boolean =>
    device === name && library === matmulVersion

/** Tuned matmuls of a device and its library version. */
export const keptFor = (matmuls: readonly TunedMatmul[] | undefined, info: DeviceInfo): readonly TunedMatmul[] =>
  (matmuls ?? []).filter(fits(info))

/** Tuned algorithms of a device and its library version, by matmul. */
export function tunedAlgorithms(matmuls: readonly TunedMatmul[] | undefined, info: DeviceInfo): AlgorithmOf {
  const tuned = keptFor(matmuls, info)
  if (tuned.length === 0) return () => undefined
  const known = new Map(tuned.map(({ matmul, algorithm }) => [matmul, new Uint8Array(Buffer.from(algorithm, 'hex'))]))
  return (matmul) => (isAligned(matmul) ? known.get(matmulName(matmul)) : undefined)
}

/** `13.1` for 130100, as cuBLASLt counts. */
export const libraryVersion = (version: number): string => `${Math.floor(version / 10_000)}.${Math.floor(version / 100) % 100}`

/** Reason why no tuned algorithm applies on a GPU; undefined if one does, if there are none, and on the CPU device, which has none. */
export function untunedNote(matmuls: readonly TunedMatmul[] | undefined, info: DeviceInfo): string | undefined {
  const [first] = matmuls ?? []
  if (first === undefined || info.kind !== 'cuda' || info.matmulVersion === 0 || matmuls?.some(fits(info))) return undefined
  const measured = new Set(matmuls?.map(({ device, library }) => `${device} with cuBLASLt ${libraryVersion(library)}`))
  return (
    `library matmuls use the default algorithm: the tuned ones were measured on ${[...measured].join(' and ')}, ` +
    `this is ${info.name} with ${libraryVersion(info.matmulVersion)}; heddle tune --library measures them here`
  )
}

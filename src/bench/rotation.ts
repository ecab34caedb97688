/**
 * Rotation of weights and inputs between timed passes. No timed pass may hit cached data of the previous pass, or small models look faster
 * than in any service that does other work in between. A pass streams all layer weights. If these exceed twice the cache, a pass
 * evicts its own inputs and weights, and one program is replayed as it is. Otherwise a replay is a chain of passes, each with its own
 * weights and ids, long enough that twice the cache is read between two uses of the same bytes. The time of a pass is then the
 * replay's time divided by their number. Activations are rewritten by every pass and stay shared. Such a chain has
 * one graph launch instead of one per pass; `passes` in the result shows its use.
 */
import type { Assembly } from '../models/encoder/bert.js'
import type { NativeDeviceInfo } from '../runtime/native.js'
import type { WeightTensor } from '../runtime/session.js'

export interface Rotation {
  /** Forward passes in a replay. */
  readonly passes: number
  /** Bytes of weights read between two uses of the same ones. */
  readonly bytes: number
  /** True if that is at least twice the device's cache; undefined if the cache is unknown. */
  readonly evicts: boolean | undefined
}

/** A chain longer than this takes long to build and capture. */
const maxPasses = 128

/**
 * Bytes of the cache that rotation must exceed: as reported by a GPU, or else an assumed size, the largest known one.
 * Undefined for the CPU device, whose caches are ignored.
 */
export const cacheOf = ({ kind, cacheBytes }: NativeDeviceInfo): number | undefined =>
  kind === 'cuda' ? (cacheBytes ?? assumedCache) : undefined

const assumedCache = 128 * 2 ** 20

/** @param passBytes weights a pass reads @param cacheBytes of the device, undefined when unknown or not modelled */
export function rotationOf(passBytes: number, cacheBytes: number | undefined): Rotation {
  if (cacheBytes === undefined) return { passes: 1, bytes: passBytes, evicts: undefined }
  const passes = Math.min(Math.ceil((2 * cacheBytes) / passBytes), maxPasses)
  return { passes, bytes: passes * passBytes, evicts: passes * passBytes >= 2 * cacheBytes }
}

/** Name of a value, input or weight of a pass in a chain. */
export const inPass = (pass: number, name: string): string => `pass${pass}/${name}`

const renamed = (pass: number, wires: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(wires).map(([port, name]) => [port, inPass(pass, name)]))

const everyPass = <T>(passes: number, make: (pass: number) => readonly T[]): T[] =>
  Array.from({ length: passes }, (_, pass) => make(pass)).flat()

type Wired = Pick<Assembly, 'applications' | 'outputs'>

/** Repeats a model's graphs `passes` times, with separate names for the values, inputs and weights of each pass. */
export function chain(
  { applications, outputs }: Wired,
  inputs: readonly string[],
  passes: number,
): Wired & { readonly inputs: readonly string[] } {
  return {
    applications: everyPass(passes, (pass) =>
      applications.map((application) => ({
        ...application,
        label: inPass(pass, application.label),
        inputs: renamed(pass, application.inputs),
        weights: renamed(pass, application.weights),
        outputs: renamed(pass, application.outputs),
      })),
    ),
    inputs: everyPass(passes, (pass) => inputs.map((name) => inPass(pass, name))),
    outputs: everyPass(passes, (pass) => outputs.map((name) => inPass(pass, name))),
  }
}

/** Renames values, inputs or weights as `chain` does; `of` returns those of one pass by their plain names. */
export function chained<T>(passes: number, of: (pass: number) => Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(
    everyPass(passes, (pass) => Object.entries(of(pass)).map(([name, value]): [string, T] => [inPass(pass, name), value])),
  )
}

/** Weights of a chain: the same host bytes, uploaded once per pass. */
export const chainedWeights = (passes: number, weights: Readonly<Record<string, WeightTensor>>): Record<string, WeightTensor> =>
  chained(passes, () => weights)

/**
 * Rotation: no timed pass may find in the device's cache what the pass before it left there, or small models look faster than
 * any service that does other things in between. A pass streams all layer weights. Where these exceed twice the cache, a pass
 * evicts its own inputs and weights, and one program is replayed as it is. Where they do not, a replay is a chain of passes,
 * each with weights and ids of its own, so many that twice the cache lies between two uses of the same bytes; a pass is then the
 * replay's time divided by their number. Activations are rewritten by every pass and stay shared. Such a chain pays
 * for one graph launch instead of one a pass; `passes` in the result says that it was used.
 */
import type { Assembly } from '../models/encoder/bert.js'
import type { NativeDeviceInfo } from '../runtime/native.js'
import type { WeightTensor } from '../runtime/session.js'

export interface Rotation {
  /** Forward passes in a replay. */
  readonly passes: number
  /** Bytes of weights read between two uses of the same ones. */
  readonly bytes: number
  /** True if that is twice the device's cache; undefined where the cache is not known. */
  readonly evicts: boolean | undefined
}

/** A chain longer than this takes long to build and capture. */
const maxPasses = 128

/**
 * Bytes of the cache that rotation has to outrun: what a GPU says, or what is assumed of one that does not, which is the largest known.
 * The CPU device is not timed for its caches.
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

const inPass = (pass: number, name: string): string => `pass${pass}/${name}`

const renamed = (pass: number, wires: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(wires).map(([port, name]) => [port, inPass(pass, name)]))

const everyPass = <T>(passes: number, make: (pass: number) => readonly T[]): T[] =>
  Array.from({ length: passes }, (_, pass) => make(pass)).flat()

type Wired = Pick<Assembly, 'applications' | 'outputs'>

/** A model's graphs `passes` times over: every value, input and weight of a pass has a name of its own. */
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

/** What `chain` calls the values, inputs or weights given by their plain names; `of` makes those of one pass. */
export function chained<T>(passes: number, of: (pass: number) => Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(
    everyPass(passes, (pass) => Object.entries(of(pass)).map(([name, value]): [string, T] => [inPass(pass, name), value])),
  )
}

/** The weights of a chain: the same host bytes, uploaded once a pass. */
export const chainedWeights = (passes: number, weights: Readonly<Record<string, WeightTensor>>): Record<string, WeightTensor> =>
  chained(passes, () => weights)

/** Kernels that the `js` device can run: those of the manifest, with the IR of the project's specs and of the shipped ones. */
import type { KernelEntry, Manifest } from '../../emit/manifest/manifest.js'
import { environmentError } from '../../errors.js'
import type { PlannedKernel } from '../../fuse/planned_kernel.js'
import { kernelName } from '../../ir/op_name.js'
import type { Lowered, LoweredSearch } from '../../program/lowered.js'
import { installation, type SearchedManifest } from '../../toolchain/index.js'
import type { EnsureOptions, KernelSource } from '../library.js'
import { loweredLibrary } from './device.js'
import { expectSame, type LoweredKernel } from './kernel.js'

export type LoweredByName = ReadonlyMap<string, PlannedKernel>

/** @param known IR that the caller has read already; other IR is read when a kernel of it is requested */
export function loweredSource(root: string, searched: SearchedManifest, known: LoweredByName = new Map()): KernelSource {
  const { manifest } = searched
  const entries = new Map(manifest.kernels.map((entry) => [entry.key, entry]))
  const kernels = new Map<string, LoweredKernel>()
  const library = loweredLibrary(kernels)
  const reading = readings(root, manifest)
  const { generated } = installation(root)
  const isShipped = (key: string): boolean => generated.length > 1 && searched.folderOf(key) === generated.at(-1)
  return {
    target: 'js',
    async ensure(keys, options = {}) {
      for (const key of keys) {
        if (kernels.has(key)) continue
        options.signal?.throwIfAborted()
        const entry = entries.get(key) ?? missing(key, options)
        const kernel = known.get(entry.op) ?? (await reading(entry, isShipped(key))) ?? unread(entry)
        const lowered = { entry, kernel }
        expectSame(lowered)
        kernels.set(key, lowered)
      }
    },
    of(key) {
      if (!kernels.has(key)) throw new Error(`internal: kernel ${key} is launched before it is requested`)
      return library
    },
  }
}

type Reading = (entry: KernelEntry, isShipped: boolean) => Promise<PlannedKernel | undefined>

/** Reads the IR of kernels: the project's at the first request, then shipped ops, then shipped graphs whose plans derive a kernel. */
function readings(root: string, { plans = {} }: Manifest): Reading {
  const read = new Map<string, Promise<Lowered>>()
  const once = (key: string, search: LoweredSearch): Promise<Lowered> => {
    const found = read.get(key) ?? import('../../program/lowered.js').then(({ lowered }) => lowered(root, search))
    read.set(key, found)
    // A later request tries again.
    found.catch(() => read.delete(key))
    return found
  }
  return async ({ key, op: name }, isShipped) => {
    const own = await once('', {})
    if (isShipped && own.own.has(name)) throw ungenerated(key, name)
    const found = own.ops.get(name) ?? own.derived().get(name)
    if (found !== undefined) return found
    const ofGraphs = graphsOf(name, plans)
    // Nearly every op of a graph is an op of its plans, too: an op is looked up without them first.
    const shipped = await once(`op ${name}`, { ops: [name] })
    if (ofGraphs.length === 0 || shipped.ops.has(name)) return shipped.ops.get(name)
    return (await once(ofGraphs.join(' '), { shipped: true, graphs: new Set(ofGraphs) })).derived().get(name)
  }
}

/** Names of the graphs that run a kernel under some plan. */
const graphsOf = (name: string, plans: NonNullable<Manifest['plans']>): readonly string[] => [
  ...new Set(
    Object.values(plans).flatMap((planned) =>
      Object.entries(planned).flatMap(([graph, { nodes }]) =>
        nodes.some((node) => node.kind === 'op' && kernelName(node.op) === name) ? [graph] : [],
      ),
    ),
  ),
]

/** An op of the project has the name of a shipped one, whose IR it hides. */
const ungenerated = (key: string, op: string) =>
  environmentError('library.stale', `${key} is the shipped kernel, and the project's own ${op} was not generated`, {
    hint: 'run heddle gen',
  })

function missing(key: string, { neededBy }: EnsureOptions): never {
  const user = neededBy?.(key)
  throw environmentError('library.kernel', `there is no kernel ${key}${user === undefined ? '' : `, which ${user} needs`}`, {
    hint: 'run heddle gen',
  })
}

function unread({ key, op }: KernelEntry): never {
  throw environmentError('library.kernel', `the js device runs kernels of specs, and no spec declares ${op} of ${key}`, {
    hint: 'run heddle gen, or take the CPU device: simt',
  })
}

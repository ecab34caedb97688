/** Notes and predicted times of one kernel for `heddle inspect`. */
import { sizeText } from '../bench/target/text.js'
import type { LaunchCost } from '../cost/launch.js'
import { usageError } from '../errors.js'
import { allInstances, instanceKey } from '../ir/instance.js'
import type { Kernel } from '../ir/kernel.js'
import { boundWords } from './plan_text.js'

export interface Prices {
  readonly dims: Readonly<Record<string, number>>
  /** In order of execution. */
  readonly launches: readonly LaunchCost[]
}

/** Notes of an instance, by its key, and the prices of its launches if all dimensions have sizes. @throws usage `inspect.shape` */
export async function pricesOn(
  kernel: Kernel,
  key: string,
  shape: Readonly<Record<string, number>> | undefined,
): Promise<{ readonly notes: readonly string[]; readonly prices?: Prices }> {
  const [{ mapKernel }, { notesOf }] = await Promise.all([import('../schedule/map.js'), import('../schedule/notes/notes.js')])
  const instance = allInstances(kernel).find(({ types, dims }) => instanceKey(kernel.name, types, dims) === key)
  if (instance === undefined) return { notes: [] }
  const unknown = Object.keys(shape ?? {}).find((dim) => !kernel.dims.includes(dim))
  if (unknown !== undefined) {
    throw usageError('inspect.shape', `${kernel.name} has no dimension ${unknown}`, {
      hint: `dimensions are ${kernel.dims.join(', ')}`,
    })
  }
  const mapped = mapKernel(instance)
  const dims = { ...kernel.typical, ...instance.dims, ...shape }
  if (kernel.dims.some((dim) => dims[dim] === undefined)) return { notes: notesOf(mapped).map(({ message }) => message) }
  const [{ costDevice }, { partCosts }, { pricedNotes }] = await Promise.all([
    import('../cost/device.js'),
    import('../cost/kernel.js'),
    import('../cost/notes.js'),
  ])
  const device = costDevice('h200')
  const sizes = { dims, attrs: Object.fromEntries(kernel.attrs.map(({ name, default: usual }) => [name, usual])) }
  return { notes: pricedNotes(mapped, sizes, device), prices: { dims, launches: partCosts(mapped, sizes, device) } }
}

/** Title and text of prices: a line for each launch, with its predicted time and limit, its blocks, its bytes and its instructions. */
export const priceLines = ({ dims, launches }: Prices): readonly [string, string] => [
  `prices (h200, ${sizeText(dims)})`,
  launches.map(lineOf).join('\n'),
]

function lineOf({ name, blocks, threads, memory, cache, instructions, seconds, bound }: LaunchCost): string {
  const [moved, cached, million] = [memory, cache, instructions].map((count) => (count / 1e6).toFixed(2))
  const work = `${moved} MB of memory, ${cached} MB of caches, ${million} million instructions`
  return `${name}: ${(seconds * 1e6).toFixed(2)} us, ${boundWords[bound]}; ${blocks} blocks of ${threads} threads; ${work}`
}

/** Runs the loops of a kernel, after each pass, on small sizes, beside the evaluation of its body. */
import { evaluateKernel, type HostTensor } from '../../src/ir/evaluate.js'
import type { Instance } from '../../src/ir/instance.js'
import type { Kernel } from '../../src/ir/kernel.js'
import type { Team } from '../../src/loop/evaluate_lane.js'
import { evaluatePasses } from '../../src/loop/evaluate_mapped.js'
import type { Walk } from '../../src/loop/ir.js'
import { loopPasses } from '../../src/loop/pipeline.js'
import { mapKernel, schedulePasses } from '../../src/schedule/map.js'
import { reordered } from '../../src/verify/tolerance.js'

export type Passes = typeof loopPasses

/** Small integers and quarters, so that sums are exact in any order. Integer tensors hold indices below `most`. */
function inputOf(
  tensor: Kernel['tensors'][number],
  dims: Readonly<Record<string, number>>,
  most: number,
  seed: number,
): HostTensor {
  const shape = tensor.dims.map((dim) => dims[dim] ?? 1)
  const length = shape.reduce((a, b) => a * b, 1)
  const isInteger = typeof tensor.dtype === 'string' && tensor.dtype.startsWith('i')
  const value = (i: number): number => (isInteger ? (i * 7 + 3 + seed) % most : ((i * 37 + 11 + 13 * seed) % 41) / 4 - 5)
  return { data: Float64Array.from({ length }, (_, i) => value(i)), shape }
}

/** Passes that keep the walks of columns, and long rows, in one launch. */
export const oneLaunch = {
  ...schedulePasses,
  walkKernels: () => undefined,
  longRows: () => undefined,
  longScans: () => undefined,
}

/** Passes without tiles of staged loads, which tests of other loops leave out. */
const untiled = { ...oneLaunch, stageLoads: () => undefined }

export interface Difference {
  readonly walk: Walk
  readonly pass: string
  readonly place: string
}

/** First differences between the loops of a kernel and its body, by walk and pass; or an error of the evaluation. */
export function differences(
  instance: Instance,
  dims: Readonly<Record<string, number>>,
  { lanes, vec, slots = 1, tile }: Pick<Team, 'lanes' | 'vec' | 'slots' | 'tile'>,
  passes: Partial<Passes> = {},
): Difference[] {
  const { kernel } = instance
  const mapped = mapKernel(instance, undefined, undefined, tile === undefined ? untiled : schedulePasses)
  const most = Math.min(...Object.values(dims))
  // Sums that are scaled are not exact.
  const isScaled = mapped.program.kind === 'rows' && mapped.program.joined !== undefined
  const isSame = (got: number, want: number): boolean =>
    Object.is(got + 0, want + 0) || (isScaled && Math.abs(got - want) <= reordered * Math.abs(want))
  const inputs = kernel.tensors
    .filter(({ access }) => access === 'in')
    .map((tensor, i) => [tensor.name, inputOf(tensor, dims, most, i)])
  const tensors: Record<string, HostTensor> = Object.fromEntries(inputs)
  const wanted = evaluateKernel(kernel, tensors, dims)
  const team = { lanes, vec, slots, ...(tile === undefined ? {} : { tile }) }
  const evaluations = evaluatePasses(mapped, { tensors, dims }, team, { ...loopPasses, ...passes }, 'each')
  return evaluations.flatMap(({ walk, pass, outputs }): Difference[] => {
    const place = Object.entries(wanted).flatMap(([name, { data }]) => {
      const at = data.findIndex((value, i) => !isSame(outputs[name]?.data[i] ?? 0, value))
      return at < 0 ? [] : [`${name}[${at}] is ${outputs[name]?.data[at]}, not ${data[at]}`]
    })[0]
    return place === undefined ? [] : [{ walk, pass, place }]
  })
}

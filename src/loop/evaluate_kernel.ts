/** Evaluation of a kernel by its loops, for comparison with the evaluation of its body (src/ir/evaluate.ts). */
import { type HostTensor, position } from '../ir/evaluate.js'
import { known, mergedPosition, type Numbers } from '../ir/evaluate_expr.js'
import { storedNumber } from '../ir/store.js'
import { hasMergedAxes, type MappedKernel } from '../schedule/mapped.js'
import { evaluateLoops } from './evaluate.js'
import type { Team } from './evaluate_lane.js'
import type { Loop } from './ir.js'

/** Inputs of an evaluation. Dimensions have values; attributes default to the kernel's. */
export interface Case {
  readonly tensors: Readonly<Record<string, HostTensor>>
  readonly dims: Numbers
  readonly attrs?: Numbers
}

/**
 * Outputs of a kernel, in double precision. Elements that nobody stores are NaN, or those of the tensor that an output updates.
 * @throws internal errors of the loops; internal error if an element is stored twice
 */
export function evaluateByLoops(
  mapped: MappedKernel,
  loops: readonly Loop[],
  { tensors, dims, attrs }: Case,
  team: Team,
): Readonly<Record<string, HostTensor>> {
  const { kernel } = mapped.instance
  const isMerged = hasMergedAxes(mapped)
  const size = (dim: string): number => known(dims[dim], 'dimension', dim)
  const outputs = new Map(
    kernel.tensors.flatMap(({ name, access, dims: of, dtype, updates }) => {
      if (access !== 'out') return []
      const shape = of.map(size)
      const data = new Float64Array(shape.reduce((a, b) => a * b, 1)).fill(Number.NaN)
      if (updates !== undefined) data.set(known(tensors[updates], 'tensor', updates).data)
      return [[name, { data, shape, dtype, stored: new Set<number>() }] as const]
    }),
  )
  const defaults = Object.fromEntries(kernel.attrs.map((attr) => [attr.name, attr.default]))
  const store = (tensor: string, indices: readonly number[], value: number | boolean): void => {
    const { data, shape, dtype, stored } = known(outputs.get(tensor), 'output', tensor)
    const place = (isMerged ? mergedPosition : position)(tensor, indices, shape)
    if (stored.has(place)) throw new Error(`internal: ${tensor}[${indices.join(', ')}] is stored twice`)
    stored.add(place)
    data[place] = typeof dtype === 'string' ? storedNumber(dtype, Number(value)) : Number(value)
  }
  evaluateLoops(loops, { dims, attrs: { ...defaults, ...attrs }, tensors, isMerged, store }, team)
  return Object.fromEntries([...outputs].map(([name, { data, shape }]) => [name, { data, shape }]))
}

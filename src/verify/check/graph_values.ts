/** Sizes and values for checks of whole graphs and programs, and the comparison of their results within tolerances. */
import type { Manifest } from '../../emit/manifest/manifest.js'
import { type DType, dtypeInfo, isFloat8 } from '../../ir/dtype.js'
import type { Facts } from '../../ir/facts/facts.js'
import type { Graph, ValueId } from '../../ir/graph.js'
import { resolveDType } from '../../ir/instance.js'
import { evaluateExtent } from '../../ir/shape.js'
import { findLayout, type Layouts, layoutSize } from '../../runtime/layouts.js'
import { roundTo } from '../../runtime/numbers.js'
import { load, store } from '../block.js'
import { compare } from '../compare.js'
import { type CheckResult, saturated } from '../conformance.js'
import { drawOf } from '../domains.js'
import { longestRagged } from '../ragged.js'
import { normal, random } from '../random.js'
import { graphTolerance, unitRoundoff, withNaiveError } from '../tolerance.js'

export type Numbers = Readonly<Record<string, number>>
type Data = ArrayLike<number>

/** Extents assigned to the dimensions of a graph in turn: all one, small distinct ones, and some around a warp. */
export const extents: readonly (readonly number[])[] = [
  [1, 1, 1],
  [2, 3, 5, 4, 7, 6],
  [3, 33, 2, 8, 31, 65, 5],
  [5, 2, 17, 3, 40, 7],
]

const largestValue = ({ values }: Graph, dims: Numbers): number =>
  Math.max(...values.map(({ shape }) => shape.reduce((product, extent) => product * evaluateExtent(extent, dims), 1)))

/** Sizes whose largest value is within a limit; the smallest size if none is, so that at least one is tried. */
export function withinReach(graph: Graph, sizes: readonly Numbers[], limit: number): readonly Numbers[] {
  const near = sizes.filter((dims) => largestValue(graph, dims) <= limit)
  if (near.length > 0) return near
  const least = Math.min(...sizes.map((dims) => largestValue(graph, dims)))
  return sizes.filter((dims) => largestValue(graph, dims) === least).slice(0, 1)
}

export interface Stage {
  readonly graph: Graph
  readonly dims: Numbers
  readonly types: Readonly<Record<string, DType>>
  readonly layouts: Layouts
}

export interface Drawing extends Stage {
  readonly facts: Facts
  readonly seed: string
  /** Values that are not drawn, by name. */
  readonly known?: Readonly<Record<string, Data>>
  /** Names of matrices with small elements, so that a matmul preserves the magnitude of the other operand. */
  readonly small?: ReadonlySet<string>
}

/** Draws values by their facts, rounded to their types, and encodes them as they lie in memory. */
export function drawGiven(
  given: Readonly<Record<string, ValueId>>,
  { graph, facts, dims, types, layouts, seed, known = {}, small = new Set() }: Drawing,
): { readonly values: Map<ValueId, Data>; readonly bytes: Record<string, Uint8Array> } {
  const values = new Map<ValueId, Data>()
  const bytes: Record<string, Uint8Array> = {}
  for (const [input, id] of Object.entries(given)) {
    const { buffer, shape } = formOf(input, id, { graph, dims, types, layouts })
    const next = random(`${seed} ${input}`)
    const draw = drawOf(buffer, facts.inputs[input], 'ragged')
    const length = shape.reduce((product, extent) => product * extent, 1)
    const request = { next, value: normal, dims: { ...dims, '(seq)': longestRagged }, shape }
    const scale = small.has(input) && shape.length > 1 ? 1 / Math.sqrt(shape.at(-1) ?? 1) : 1
    const any = () => Float64Array.from({ length }, () => (dtypeInfo[buffer.dtype].scalar === 'i32' ? 1 : scale * normal(next)))
    const data = roundTo(buffer.dtype, Float64Array.from(known[input] ?? draw?.(request) ?? any()))
    values.set(id, data)
    bytes[input] = bytesOf(input, id, data, { graph, dims, types, layouts })
  }
  return { values, bytes }
}

/** The bytes of a value as they lie in memory. */
export function bytesOf(name: string, id: ValueId, data: Data, stage: Stage): Uint8Array {
  const { buffer, shape } = formOf(name, id, stage)
  const size = layoutSize(findLayout(stage.layouts, buffer.layout, shape.length), shape) * dtypeInfo[buffer.dtype].bytes
  return store({ buffer, shape, offset: 0, bytes: size }, data, stage.layouts)
}

function formOf(name: string, id: ValueId, { graph, dims, types }: Stage) {
  const value = graph.values[id]
  if (value === undefined) throw new Error(`internal: ${name} is not a value`)
  const buffer: Manifest['kernels'][number]['buffers'][number] = {
    name,
    access: 'in',
    dtype: resolveDType(value.dtype, types),
    dims: [],
    layout: value.layout,
  }
  return { buffer, shape: value.shape.map((extent) => evaluateExtent(extent, dims)) }
}

export interface Holding extends Stage {
  /** Storage type of the run. */
  readonly dtype: DType
  /** The coarsest type that an intermediate value is stored in; by default that of the run. */
  readonly coarsest?: DType
  /** Number of kernels that a value has passed through. */
  readonly steps: number
  /** True for elements that are compared; all if undefined. */
  readonly valid?: (index: number) => boolean
  /** Bound of the error of each element due to values stored between kernels; Infinity if their type cannot represent such a number. */
  readonly storedError: (id: ValueId) => Data
}

const isCoarser = (a: DType, b: DType): boolean => unitRoundoff[b] > 0 && unitRoundoff[a] > unitRoundoff[b]

/** The coarsest type of 16 bits or more that values between the nodes of a graph are stored in. */
export function coarsestOf(graph: Graph, dtype: DType, types: Readonly<Record<string, DType>>): DType {
  const given = new Set([...Object.values(graph.inputs), ...Object.values(graph.weights)])
  const made = graph.values.flatMap((value, id) => (given.has(id) ? [] : [resolveDType(value.dtype, types)]))
  const floats = made.filter((each) => !isFloat8(each))
  return floats.reduce((coarsest, each) => (isCoarser(each, coarsest) ? each : coarsest), dtype)
}

/** True if an output cannot be compared: an index chosen among floats may differ when these are rounded. */
export const isUnsure = (of: DType, run: DType): boolean => dtypeInfo[of].scalar === 'i32' && run !== 'f32'

interface Comparison {
  readonly passed: boolean
  readonly detail: string
  /** Elements not judged of an output that passed, with the reason. */
  readonly note?: string
}

/** Compares a device's output with that of the nodes; undefined if it cannot be compared, or has no element to compare. */
export function compareOutput(
  output: string,
  id: ValueId,
  wanted: Data,
  bytes: Uint8Array,
  { dtype, coarsest = dtype, steps, valid, storedError, ...stage }: Holding,
): Comparison | undefined {
  const { buffer, shape } = formOf(output, id, stage)
  if (isUnsure(buffer.dtype, dtype)) return undefined
  const stored = load({ buffer, shape, offset: 0, bytes: bytes.byteLength }, bytes, stage.layouts)
  const of = (data: Data): Data => (valid === undefined ? data : Array.from(data).filter((_, i) => valid(i)))
  const [found, expected] = [of(stored), of(saturated(buffer.dtype, wanted))]
  if (expected.length === 0) return undefined
  const numbers = Array.from(expected).filter(Number.isFinite)
  const scale = Math.sqrt(numbers.reduce((sum, each) => sum + each * each, 0) / Math.max(1, numbers.length))
  // A float32 result may depend on values stored in a coarser type.
  const coarser = isCoarser(coarsest, buffer.dtype) ? coarsest : buffer.dtype
  // NaN in the nodes' own results, such as in fully masked rows, is expected.
  const bound = graphTolerance(coarser, steps, scale)
  const first = compare(found, expected, bound, 'equals')
  if (first.passed || unitRoundoff[buffer.dtype] === 0) return { passed: first.passed, detail: `${output}: ${first.summary}` }
  const errors = of(storedError(id))
  const judged = [...Array(expected.length).keys()].filter((i) => errors[i] !== Number.POSITIVE_INFINITY)
  if (judged.length === 0) return undefined
  const pick = (data: Data): Float64Array => Float64Array.from(judged, (i) => data[i] ?? Number.NaN)
  const naive = pick(errors)
  const wider = compare(pick(found), pick(expected), (i) => withNaiveError(bound, naive[i] ?? 0), 'equals')
  const detail = `${output}: ${(wider.passed ? wider : first).summary}`
  const beyond = expected.length - judged.length
  if (!wider.passed || beyond === 0) return { passed: wider.passed, detail }
  return {
    passed: true,
    detail,
    note: `${beyond} of ${expected.length} elements of ${output} pass through values beyond what their type holds`,
  }
}

/** Combines the results of all outputs: the first failure, or all details. Undefined if no output can be compared. */
export function held(
  name: string,
  outputs: readonly (readonly [string, ValueId])[],
  hold: (output: string, id: ValueId) => ReturnType<typeof compareOutput>,
): CheckResult | undefined {
  const results: Comparison[] = []
  for (const [output, id] of outputs) {
    const result = hold(output, id)
    if (result?.passed === false) return { name, passed: false, detail: result.detail }
    if (result !== undefined) results.push(result)
  }
  if (results.length === 0) return undefined
  const notes = results.flatMap(({ note }) => note ?? [])
  const detail = results.map((each) => each.detail).join('; ')
  return { name, passed: true, detail, ...(notes.length > 0 ? { note: notes.join('; ') } : {}) }
}

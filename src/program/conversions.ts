/**
 * Steps between storage forms of a value, as graphs of one op: padding removed and restored, floats to int8 and back, and the conversions that a
 * project declares for its layouts.
 */
import type { ScaleForm } from '../ir/graph.js'
import { printType } from '../ir/kernel.js'
import type { ProgramValue, RaggedAxis } from '../ir/program.js'
import { multiplyExtents, printExtent, printShape, type Shape } from '../ir/shape.js'
import type { Conversion } from '../lang/conversion.js'
import { type GraphBuilder, type GraphDecl, type GraphTensor, graph } from '../lang/graph.js'
import { tensor } from '../lang/tensor.js'
import type { TensorDecl } from '../lang/types.js'
import {
  dequantize,
  locateRows,
  packIntegers,
  packRows,
  quantize,
  sequenceStarts,
  unpackIntegers,
  unpackRows,
} from '../std/index.js'
import { hasPaddedRows, isFloat, printForm, type StorageForm, storedShape } from './storage_form.js'

/** Input of a step: the value itself, or one of the tensors that locate the rows of its ragged axis. */
export type StepInput = 'value' | 'lengths' | 'starts' | 'sequences' | 'positions'

/** A step that changes the storage form of a value. */
export interface Step {
  readonly to: StorageForm
  /** Steps that round cost more than those that only move. */
  readonly cost: number
  readonly graph: GraphDecl
  /** Source of each input of the graph, by the input's name. */
  readonly inputs: Readonly<Record<string, StepInput>>
  readonly scales: Readonly<Record<string, ScaleForm>>
}

const moveCost = 1
const roundCost = 100

/** Steps that convert a value from one form to another. */
export function stepsFrom(
  value: ProgramValue,
  from: StorageForm,
  axes: readonly RaggedAxis[],
  conversions: readonly Conversion[],
): Step[] {
  const shape = storedShape(value.shape, from, axes)
  const steps = conversions.flatMap((conversion) => conversionStep(value, from, shape, conversion) ?? [])
  if (from.layout !== 'row') return steps
  if (isFloat(from.store) || from.store === 'i32')
    steps.push(
      ...axes.flatMap((axis, ragged) => (hasPaddedRows(value.shape, axis) ? paddingStep(value, from, axis, ragged) : [])),
    )
  if (isFloat(from.store)) {
    if (from.store === value.dtype || printType(from.store) === printType(value.dtype)) steps.push(quantiseStep(from, shape))
  } else if (from.store === 'i8') steps.push(dequantised(value, from, shape))
  return steps
}

/** Removes padding from rows, or restores it. */
function paddingStep(value: ProgramValue, from: StorageForm, axis: RaggedAxis, ragged: number): Step[] {
  const rest = value.shape.slice(1)
  const type = printType(from.store)
  const isIds = from.store === 'i32'
  const [batch, seq, width] = [printExtent(axis.batch), printExtent(axis.seq), printExtent(multiplyExtents(rest))]
  const padded = printShape(value.shape)
  const packed = printShape([{ factor: 1, dims: [axis.tokens] }, ...rest])
  if (from.rows === 'padded') {
    const made = graph('remove_padding', {
      inputs: { x: tensor(type, padded), sequences: tensor('i32', axis.tokens), positions: tensor('i32', axis.tokens) },
      weights: {},
      build: (g, { x, sequences, positions }) => {
        const given = { x: g.view(x, `${batch} ${seq} ${width}`), sequences, positions }
        const rows = isIds ? g.apply(packIntegers, given).y : g.apply(packRows, given).y
        return { nodes: { rows }, outputs: { y: g.view(rows, packed) } }
      },
    })
    const inputs = { x: 'value', sequences: 'sequences', positions: 'positions' } as const
    return [{ to: { ...from, rows: 'packed', ragged }, cost: moveCost, graph: made, inputs, scales: {} }]
  }
  if (from.ragged !== ragged) return []
  const made = graph('restore_padding', {
    inputs: { x: tensor(type, packed), starts: tensor('i32', batch), lengths: tensor('i32', batch) },
    weights: {},
    build: (g, { x, starts, lengths }) => {
      const rows = { x: g.view(x, `${axis.tokens} ${width}`), starts, lengths }
      const tokens = isIds ? g.apply(unpackIntegers, rows, {}, { s: seq }).y : g.apply(unpackRows, rows, {}, { s: seq }).y
      return { nodes: { tokens }, outputs: { y: g.view(tokens, padded) } }
    },
  })
  const inputs = { x: 'value', starts: 'starts', lengths: 'lengths' } as const
  return [{ to: { ...from, rows: 'padded', ragged: undefined }, cost: moveCost, graph: made, inputs, scales: {} }]
}

/** Applies an op to a value of any rank, flattened to a matrix, and restores the value's shape. */
const onMatrix = (g: GraphBuilder, x: GraphTensor, shape: Shape, apply: (x: GraphTensor) => GraphTensor) => {
  const flat = printShape([multiplyExtents(shape.slice(0, -1)), ...shape.slice(-1)])
  const made = apply(printShape(shape) === flat ? x : g.view(x, flat))
  return { nodes: { made }, outputs: { y: printShape(shape) === flat ? made : g.view(made, printShape(shape)) } }
}

const quantiseStep = (from: StorageForm, shape: Shape): Step => ({
  to: { ...from, store: 'i8' },
  cost: roundCost,
  graph: graph('quantise', {
    inputs: { x: tensor(printType(from.store), printShape(shape)) },
    weights: {},
    attrs: ['inverse'],
    build: (g, { x }, _, { inverse }) => onMatrix(g, x, shape, (rows) => g.apply(quantize, { x: rows }, { inverse }).y),
  }),
  inputs: { x: 'value' },
  scales: { inverse: 'inverse' },
})

const dequantised = ({ dtype }: ProgramValue, from: StorageForm, shape: Shape): Step => ({
  to: { ...from, store: dtype },
  cost: roundCost,
  graph: graph('dequantise', {
    inputs: { x: tensor('i8', printShape(shape)) },
    weights: {},
    attrs: ['step'],
    build: (g, { x }, _, { step }) =>
      onMatrix(g, x, shape, (rows) => g.apply(dequantize, { x: rows }, { step }, {}, { T: printType(dtype) }).y),
  }),
  inputs: { x: 'value' },
  scales: { step: 'step' },
})

/** The step that applies a project's conversion to a form; undefined if the conversion does not accept the form. */
function conversionStep(value: ProgramValue, from: StorageForm, shape: Shape, { op, scales = {} }: Conversion): Step | undefined {
  const [[input, takes] = [], [output, gives] = []] = [Object.entries(op.inputs)[0], Object.entries(op.outputs)[0]]
  if (input === undefined || output === undefined || takes === undefined || gives === undefined) return undefined
  const layoutOf = ({ layout }: TensorDecl): string => layout?.name ?? 'row'
  const isInt8 = ({ type }: TensorDecl): boolean => type === 'i8'
  const rank = takes.dims.split(' ').length
  if (layoutOf(takes) !== from.layout || isInt8(takes) !== (from.store === 'i8') || rank !== shape.length) return undefined
  if (!isInt8(takes) && !isFloat(from.store)) return undefined
  const type = printType(from.store === 'i8' ? value.dtype : from.store)
  const attrs = Object.keys(scales)
  return {
    to: { ...from, store: isInt8(gives) ? 'i8' : from.store === 'i8' ? value.dtype : from.store, layout: layoutOf(gives) },
    cost: isInt8(takes) === isInt8(gives) ? moveCost : roundCost,
    graph: graph(op.name, {
      inputs: { x: tensor(printType(from.store), printShape(shape), takes.layout) },
      weights: {},
      attrs,
      build: (g, { x }, _, given) => {
        const made = g.apply(op, { [input]: x }, given, {}, isInt8(takes) ? { T: type } : {})[output]
        if (made === undefined) throw new Error(`internal: ${op.name} gives no ${output}`)
        return { nodes: { made }, outputs: { y: made } }
      },
    }),
    inputs: { x: 'value' },
    scales,
  }
}

/**
 * Cheapest sequence of steps from one of several forms to the wanted one; undefined if no sequence reaches it.
 * @returns the initial form, and the steps in order
 */
export function cheapestPath(
  value: ProgramValue,
  made: readonly StorageForm[],
  wanted: StorageForm,
  axes: readonly RaggedAxis[],
  conversions: readonly Conversion[],
): { readonly from: StorageForm; readonly steps: readonly Step[] } | undefined {
  const name = (form: StorageForm): string => `${printForm(form)} ${form.ragged}`
  const open = made.map((from) => ({ at: from, from, steps: [] as readonly Step[], cost: 0 }))
  const done = new Set<string>()
  for (;;) {
    const next = open.filter(({ at }) => !done.has(name(at))).sort((a, b) => a.cost - b.cost)[0]
    if (next === undefined) return undefined
    if (name(next.at) === name(wanted)) return next
    done.add(name(next.at))
    for (const step of stepsFrom(value, next.at, axes, conversions)) {
      open.push({ at: step.to, from: next.from, steps: [...next.steps, step], cost: next.cost + step.cost })
    }
  }
}

/** Graph that locates the rows of a ragged axis from the lengths of its sequences; the number of tokens stays on the device. */
export const placingGraph = ({ batch, tokens }: RaggedAxis) =>
  graph('packing', {
    inputs: { lengths: tensor('i32', printExtent(batch)) },
    weights: {},
    build: (g, { lengths }) => {
      const scanned = g.apply(sequenceStarts, { lengths: g.view(lengths, `1 ${printExtent(batch)}`) }).starts
      const starts = g.view(scanned, printExtent(batch))
      const { sequences, positions } = g.apply(locateRows, { starts, lengths }, {}, { t: tokens })
      return { nodes: { scanned, sequences }, outputs: { starts, sequences, positions } }
    },
  })

/**
 * Loads staged through shared memory. An elementwise kernel that transposes stores along one axis and loads along another: whichever of the
 * two neighbouring threads run along, the other costs a memory sector for each element. A block takes a tile of both axes instead. It loads
 * the tile along the axis in which the loads are contiguous, and reads it from shared memory along the axis of the stores.
 *
 *     for m: y[m, c] = x[c, m] for c < n      tile[c - c0][m - m0] = x[c, m] in chunks along m; y[m, c] = tile[c - c0][m - m0] in chunks along c
 */
import { i32 } from '../../ir/build.js'
import { type DType, dtypeInfo } from '../../ir/dtype.js'
import { type Expr, type ExprOf, inPlaceOf } from '../../ir/expr.js'
import { type Instance, resolveDType } from '../../ir/instance.js'
import type { RowAxis, TensorParam } from '../../ir/kernel.js'
import { polynomialOf, samePolynomial, stepOf } from '../../ir/polynomial.js'
import { freshName, type NormalKernel } from '../normalise/normal.js'
import type { Pass, Step } from '../normalise/passes.js'
import { contains, rewriteDown, rewritePaths, sameExpr, usesIndex } from '../normalise/rewrite.js'
import { classify, offsetOf } from './access.js'
import { multiplesOf } from './multiples.js'

/** A load that a block makes for its whole tile. */
export interface StagedLoad {
  /** Stands for the elements, as a row over the loop of the pass. */
  readonly name: string
  readonly load: ExprOf<'load'>
  readonly dtype: DType
  /** Consecutive elements of one access along the axis. */
  readonly vec: number
  /** True if offsets rise by 1 along the axis and by a constant along the loop: one offset is computed for all elements of a tile. */
  readonly isLinear: boolean
}

/** The axis that staged loads are contiguous along, beside the loop of the pass. */
export interface Staging {
  readonly axis: RowAxis
  readonly loads: readonly StagedLoad[]
  /** True if the stores of adjacent places of the axis are adjacent, and no value depends on a place: chunks may go on from one to the next. */
  readonly isRun: boolean
}

/** Bytes of one access, and the fewest elements of one that pay. */
const packBytes = 16
const fewestElements = 4

/** Static shared memory of a block, and the bytes of the largest tile by those of an element: 16 x 256 places with padding (native/device/stage.cuh). */
const sharedBytes = 49152
const tileBytes = (dtype: DType): number => {
  const word = Math.max(4, dtypeInfo[dtype].bytes)
  return ((16 / (word / dtypeInfo[dtype].bytes) + 1) * 256 + 128) * word
}

/** The steps of an elementwise program with its strided loads staged; undefined where no load gains. */
export function stageLoads(
  { kernel, types, dims }: Instance,
  { axes, taken, inBounds }: Pick<NormalKernel, 'axes' | 'taken' | 'inBounds'>,
  steps: readonly Step[],
): { readonly staging: Staging; readonly steps: readonly Step[] } | undefined {
  const [pass] = steps.flatMap((step) => (step.kind === 'pass' ? [step.pass] : []))
  if (pass === undefined || !pass.statements.some((s) => s.kind === 'loopStore' && s.run !== undefined)) return undefined
  const { loop } = pass
  const { tensorOf, chunkAlong, isLinear: isLinearAlong } = accessesOf({ kernel, types, dims })
  const known = new Set([...axes.map(({ index }) => index), loop.index])
  const isStrided = (load: ExprOf<'load'>): boolean =>
    usesIndex(load, loop.index) && isOver(load, known) && chunkAlong(load, loop.index) === 0
  const isStaged = (node: Expr, always: boolean): node is ExprOf<'load'> =>
    node.kind === 'load' && isStrided(node) && (always || inBounds(node))
  const axis = axes.find(({ index, also = [] }) =>
    valuesOf(pass).some(
      (value) =>
        also.length === 0 &&
        hasStaged(value, (node, always) => isStaged(node, always) && chunkAlong(node, index) >= fewestElements),
    ),
  )
  if (axis === undefined) return undefined
  const loads: StagedLoad[] = []
  const staged = (value: Expr): Expr =>
    rewritePaths(value, (node, always) => {
      if (!isStaged(node, always) || chunkAlong(node, axis.index) < fewestElements) return undefined
      const same = loads.find((each) => sameExpr(each.load, node))
      const dtype = resolveDType(tensorOf(node.tensor)?.dtype ?? 'f32', types)
      // Loads without room in shared memory stay strided, and have a note.
      const held = loads.reduce((sum, each) => sum + tileBytes(each.dtype), 0)
      if (same === undefined && held + tileBytes(dtype) > sharedBytes) return undefined
      const name = same?.name ?? freshName(`${node.tensor}_tile`, taken)
      if (same === undefined)
        loads.push({
          name,
          load: node,
          dtype,
          vec: chunkAlong(node, axis.index),
          isLinear: isLinearAlong(node, axis.index, loop.index),
        })
      return inPlaceOf(node, {
        kind: 'element',
        type: node.type,
        row: name,
        index: { kind: 'index', type: 'i32', name: loop.index },
      })
    })
  const changed = steps.map((step): Step => (step.kind === 'pass' ? { ...step, pass: mapPass(step.pass, staged) } : step))
  return { staging: { axis, loads, isRun: isRunOf(changed, axis.index, tensorOf, dims) }, steps: changed }
}

/** Places of the loads of a kernel. */
function accessesOf({ kernel, types, dims }: Instance) {
  const multiples = multiplesOf(kernel)
  const tensorOf = (name: string): TensorParam | undefined => kernel.tensors.find((tensor) => tensor.name === name)
  /** Elements of an access along an index; 0 if they are not contiguous. */
  const chunkAlong = (load: ExprOf<'load'>, index: string): number => {
    const tensor = tensorOf(load.tensor)
    const access = tensor && classify(offsetOf(tensor, load.indices, dims), index, multiples)
    if (tensor === undefined || access?.kind !== 'contiguous') return 0
    let vec = packBytes / dtypeInfo[resolveDType(tensor.dtype, types)].bytes
    while (Number.isFinite(access.run) && access.run % vec !== 0) vec /= 2
    return vec
  }
  /** True if an increase of 1 along an index depends on no other index, and neither does that of the loop on the index. */
  const isLinear = ({ tensor: name, indices }: ExprOf<'load'>, along: string, loop: string): boolean => {
    const tensor = tensorOf(name)
    const offset = tensor && offsetOf(tensor, indices, dims)
    if (offset === undefined) return false
    const one = stepOf(offset, along)
    return one !== undefined && samePolynomial(one, polynomialOf(i32(1))) && stepOf(offset, loop) !== undefined
  }
  return { tensorOf, chunkAlong, isLinear }
}

/** True if all accesses in chunks walk the axis and the loop of the pass as one run, and nothing else depends on either. */
function isRunOf(
  steps: readonly Step[],
  axis: string,
  tensorOf: (name: string) => TensorParam | undefined,
  dims: Instance['dims'],
): boolean {
  const isFree = (expr: Expr, names: readonly string[]): boolean => {
    let found = false
    // Staged and loaded elements are read at their own place.
    rewriteDown(expr, (node) => {
      found ||= node.kind === 'index' && names.includes(node.name)
      return node.kind === 'element' ? node : undefined
    })
    return !found
  }
  return steps.every((step) => {
    if (step.kind !== 'pass') return step.kind === 'let' && isFree(step.value, [axis])
    const { loop, rows, statements } = step.pass
    const length = polynomialOf(loop.length)
    const isRun = (name: string, indices: readonly Expr[], run: number | undefined): boolean => {
      const tensor = tensorOf(name)
      const step = tensor && stepOf(offsetOf(tensor, indices, dims), axis)
      return run === Number.POSITIVE_INFINITY && step !== undefined && samePolynomial(step, length)
    }
    const isRow = (row: Pass['rows'][number]): boolean =>
      row.kind === 'loaded'
        ? row.guard === undefined && isRun(row.load.tensor, row.load.indices, row.run)
        : row.kind === 'computed' && isFree(row.value, [axis, loop.index])
    return (
      rows.every(isRow) &&
      statements.every(
        (s) =>
          s.kind === 'loopStore' &&
          s.when === undefined &&
          isRun(s.tensor, s.indices, s.run) &&
          isFree(s.value, [axis, loop.index]),
      )
    )
  })
}

/** True if a load follows from indices alone, so that a block can make it before anything is computed. */
const isOver = (load: ExprOf<'load'>, known: ReadonlySet<string>): boolean =>
  !load.indices.some((index) =>
    contains(
      index,
      (node) =>
        node.kind === 'load' ||
        node.kind === 'local' ||
        node.kind === 'element' ||
        node.kind === 'fold' ||
        (node.kind === 'index' && !known.has(node.name)),
    ),
  )

function hasStaged(value: Expr, test: (node: Expr, always: boolean) => boolean): boolean {
  let found = false
  rewritePaths(value, (node, always) => {
    found ||= test(node, always)
    return undefined
  })
  return found
}

/** Values that a pass computes for each element. */
const valuesOf = ({ rows, statements }: Pass): readonly Expr[] => [
  ...rows.flatMap((row) => (row.kind === 'computed' ? [row.value] : [])),
  ...statements.flatMap((s) => (s.kind === 'loopStore' ? [s.value] : [])),
]

const mapPass = (pass: Pass, map: (value: Expr) => Expr): Pass => ({
  ...pass,
  rows: pass.rows.map((row) => (row.kind === 'computed' ? { ...row, value: map(row.value) } : row)),
  statements: pass.statements.map((s) => (s.kind === 'loopStore' ? { ...s, value: map(s.value) } : s)),
})

/**
 * Long rows of scans as two launches: totals of the pieces of each row, and scans of the pieces, whose elements are combined with the totals before them.
 * A block that scans a row alone leaves the rest of the device idle where rows are few. Runs with the pass for long rows (long_rows.ts, map.ts).
 *
 *     y[m, c] = scan(x[m, c])    t[m, p] = sum(c < 4096: x[m, 4096 p + c]); y[m, 4096 p + c] = sum(q < p: t[m, q]) + scan(x[m, 4096 p + c])
 */
import { call, dim as dimVar, i32, index as indexVar, local } from '../../ir/build.js'
import { constructOf } from '../../ir/constructs/index.js'
import type { Scan } from '../../ir/constructs/scan.js'
import type { StoreRow } from '../../ir/constructs/store_row.js'
import type { Expr } from '../../ir/expr.js'
import type { Instance } from '../../ir/instance.js'
import type { IntrinsicName } from '../../ir/intrinsics.js'
import type { Kernel, Stmt, StmtOf, TensorParam } from '../../ir/kernel.js'
import { isUpdating } from '../../ir/update.js'
import { mapStmt, rewrite } from '../../ir/walk.js'
import { isHostExpr } from '../normalise/host_expr.js'
import { freshName } from '../normalise/normal.js'
import { contains, rewriteDown, sameExpr, substituteDims } from '../normalise/rewrite.js'
import { takenNames } from '../normalise/taken_names.js'
import { scratchTensor, withoutUnread, withUsed } from './cut_kernel.js'
import { bytesOf, type LongRows, mostOf, withMultiples } from './long_rows.js'

/** Elements of a piece: a chunk of 8 for each lane of the widest block of a row. */
const pieceLength = 4096

/** Kernels in place of one that scans: of totals, and of scans that begin with those before them. */
export interface LongScans extends Pick<LongRows, 'length' | 'most' | 'bytes'> {
  readonly totals: Kernel
  readonly scans: Kernel
  /** True for combinations whose results are the same bits in any order. */
  readonly isExact: boolean
}

/** Combinations of two parts of a row. A declared monoid may need its elements in order, which a reduction does not keep. */
const combinations: Readonly<Record<string, IntrinsicName>> = { sum: 'add', max: 'maximum', min: 'minimum' }

type Looped = StmtOf<'row'> | Scan | StoreRow

const isScan = (s: Stmt): s is Scan => s.kind === 'scan'
const isLooped = (s: Stmt): s is Looped => s.kind === 'row' || s.kind === 'storeRow' || isScan(s)

/** The piece of a row that a block has. */
interface Piece {
  readonly dim: string
  readonly index: string
  readonly length: Expr
  /** Place of the piece's first element in the row. */
  readonly first: Expr
}

/** The kernel as kernels over pieces; undefined unless it stores values of scans along its rows, and reduces nothing. */
export function longScans({ kernel: given, dims, types }: Instance): LongScans | undefined {
  if (isUpdating(given) || given.rows.some(({ also = [] }) => also.length > 0)) return undefined
  const numbers = new Map(Object.entries(dims).map(([name, extent]) => [name, i32(extent)]))
  const body = withoutUnread(given.body.map((s) => mapStmt(s, (e) => substituteDims(e, numbers))))
  const length = lengthOf(body)
  if (length === undefined) return undefined
  const taken = takenNames(given)
  const piece = pieceOf(length, taken)
  const kernel: Kernel = {
    ...given,
    body,
    dims: [...given.dims, piece.dim],
    computed: {
      ...given.computed,
      [piece.dim]: call('idiv', call('add', length, i32(pieceLength - 1)), i32(pieceLength)),
    },
    rows: [...given.rows, { index: piece.index, dim: piece.dim }],
  }
  const scans = body.filter(isScan)
  const scratch = new Map(
    scans.map(({ name, type }) => [name, scratchTensor(freshName(`${name}_once`, taken), type, kernel.rows)]),
  )
  const totals = withMultiples(totalsKernel(kernel, piece, scratch), given)
  return {
    totals,
    scans: withMultiples(scansKernel(kernel, piece, scratch, taken), given),
    length,
    most: mostOf(length, given),
    bytes: bytesOf([totals], given, types),
    isExact: scans.every(({ monoid, type }) => monoid !== 'sum' || type === 'i32'),
  }
}

function pieceOf(length: Expr, taken: Set<string>): Piece {
  const [dim, index] = [freshName('pieces', taken), freshName('piece', taken)]
  const first = call('mul', indexVar(index), i32(pieceLength))
  return { dim, index, first, length: call('minimum', i32(pieceLength), call('sub', length, first)) }
}

/**
 * The one length of all loops, if it is known before the kernel runs; elements are read where a loop over the row is, and no other loops are there. A value
 * of the row that reads an element, as the last of a scan, needs more than a piece.
 */
function lengthOf(body: readonly Stmt[]): Expr | undefined {
  const scans = body.filter(isScan)
  const [length] = scans.map((s) => s.length)
  if (length === undefined || !isHostExpr(length)) return undefined
  const scanned = new Set(scans.map(({ name }) => name))
  const isPlain = (s: Stmt): boolean => {
    if (
      constructOf(s)
        .rowExprs(s)
        .some((e) => contains(e, ({ kind }) => kind === 'element'))
    )
      return false
    if (s.kind === 'let') return true
    if (!isLooped(s) || !sameExpr(s.length, length)) return false
    if (isScan(s) && !Object.hasOwn(combinations, s.monoid)) return false
    if (s.kind === 'storeRow' && (s.axis !== undefined || s.when !== undefined)) return false
    const isElsewhere = (node: Expr): boolean =>
      node.kind === 'element' &&
      !(node.index.kind === 'index' && node.index.name === s.index && (s.kind === 'storeRow' || !scanned.has(node.row)))
    return !contains(s.value, (node) => node.kind === 'fold' || isElsewhere(node))
  }
  return body.every(isPlain) ? length : undefined
}

/** A statement with the elements of a piece in place of those of a row. */
function inPiece<S extends Looped>(s: S, { first, length }: Piece): S {
  const at = call('add', first, indexVar(s.index))
  const isOwn = (node: Expr): boolean => node.kind === 'index' && node.name === s.index
  const value = rewriteDown(s.value, (node) => (node.kind === 'element' ? node : isOwn(node) ? at : undefined))
  return { ...s, value, ...(s.kind === 'storeRow' ? { from: first } : {}), length }
}

const places = (rows: Kernel['rows']): readonly Expr[] => rows.map(({ index }) => indexVar(index))

function totalsOf({ name }: Scan, scratch: ReadonlyMap<string, TensorParam>): string {
  const tensor = scratch.get(name)
  if (tensor === undefined) throw new Error(`internal: the scan ${name} has no totals`)
  return tensor.name
}

/** Combines the elements of each piece. */
function totalsKernel(kernel: Kernel, piece: Piece, scratch: ReadonlyMap<string, TensorParam>): Kernel {
  const body = kernel.body.flatMap((s): readonly Stmt[] => {
    if (s.kind === 'storeRow') return []
    const made = isLooped(s) ? inPiece(s, piece) : s
    if (!isScan(made)) return [made]
    const value = local(made.name, made.type)
    return [
      { ...made, kind: 'reduce' },
      { kind: 'store', tensor: totalsOf(made, scratch), indices: places(kernel.rows), value },
    ]
  })
  return withUsed({ ...kernel, name: `${kernel.name}_part1`, body: withoutUnread(body) }, [...scratch.values()])
}

/** Scans each piece, and stores its elements combined with the totals of those before it. */
function scansKernel(kernel: Kernel, piece: Piece, scratch: ReadonlyMap<string, TensorParam>, taken: Set<string>): Kernel {
  const combined = new Map<string, (own: Expr) => Expr>()
  const body = kernel.body.flatMap((s): readonly Stmt[] => {
    const made = isLooped(s) ? inPiece(s, piece) : s
    if (isScan(made)) {
      const before = freshName(`${made.name}_before`, taken)
      const combination = combinations[made.monoid] ?? 'add'
      combined.set(made.name, (own) => call(combination, local(before, made.type), own))
      const earlier = freshName('earlier', taken)
      return [totalsBefore(made, { before, earlier }, kernel, piece, totalsOf(made, scratch)), made]
    }
    if (made.kind !== 'storeRow') return [made]
    const value = rewrite(made.value, (node) => (node.kind === 'element' ? (combined.get(node.row)?.(node) ?? node) : node))
    return [{ ...made, value }]
  })
  const outputs = kernel.tensors.filter(({ access }) => access === 'out')
  const given = [...scratch.values()].map((tensor): TensorParam => ({ ...tensor, access: 'in' }))
  return withUsed({ ...kernel, body }, [...given, ...outputs])
}

/** The combination of the totals of earlier pieces. */
const totalsBefore = (
  { type, monoid }: Scan,
  names: { readonly before: string; readonly earlier: string },
  { rows }: Kernel,
  { dim, index }: Piece,
  tensor: string,
): StmtOf<'reduce'> => ({
  kind: 'reduce',
  name: names.before,
  type,
  monoid,
  length: call('minimum', dimVar(dim), indexVar(index)),
  index: names.earlier,
  value: { kind: 'load', type, tensor, indices: [...places(rows.slice(0, -1)), indexVar(names.earlier)] },
})

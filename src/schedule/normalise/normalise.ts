/**
 * First pass of the schedule: brings a kernel into the normal form of the later passes.
 * - Fixed dimensions become constants.
 * - The loops of a kernel that transposes are interchanged.
 * - If the outputs of a kernel are scalars of all row axes, its innermost axis becomes the loop, so that `gelu` over (m, c)
 *   and over a row of m have one form.
 * - Constructs of equal length share one loop index, so equal computations have equal structural hashes.
 * - A row element at another index than the loop's is replaced by its computation, unless the row is worth sharing.
 * - Loads of consecutive elements become vector loads: rows of their own, which the later passes may keep in registers.
 *
 *     reduce top = max(c < n: x[m, c])            top = max of x_c[c]             where x_c = load x[m, c] in chunks
 *     y[m, d] = x[m, d] - top for d < n           store y[m, c] = x_c[c] - top    the same loop, so x_c is loaded once
 */
import { dim as dimVar, i32, index as indexVar } from '../../ir/build.js'
import { constructOf } from '../../ir/constructs/index.js'
import type { Expr } from '../../ir/expr.js'
import type { Instance } from '../../ir/instance.js'
import type { Kernel, RowAxis, Stmt } from '../../ir/kernel.js'
import { extentOf } from '../../ir/row_axis.js'
import { introducedNames, mapStmt, visitKernel } from '../../ir/walk.js'
import { turn } from '../access/interchange.js'
import { interleavedPlaces } from '../access/interleaved.js'
import type { Normalise } from '../constructs/construct.js'
import { madeWithSteps } from '../constructs/fold_state.js'
import { normalisers } from '../constructs/index.js'
import { type Context, isInBounds, readsScan } from './elements.js'
import { freshName, type NormalKernel, type NormalStmt, type Statement } from './normal.js'
import { rewriteDown, substituteDims, usesIndex } from './rewrite.js'

/** Chunks of a row, as far as loads suit them. */
export type Chunks = 'any' | 'in pieces' | 'in spans' | 'interleaved'

/**
 * Brings an instance's kernel into normal form. The kernel must have passed the IR verifier.
 * @param chunks `in pieces`: for chunks that each lie in one piece of an elementwise kernel's row (src/schedule/access/segments.ts); `in spans`: with loads
 * beside the place of an element (src/schedule/windows/spans.ts); `interleaved`: with groups of elements (src/schedule/access/interleaved.ts)
 */
export function normalise({ kernel: given, dims, types }: Instance, chunks: Chunks = 'any'): NormalKernel {
  const interchanged = turn(given, dims)
  const kernel = interchanged?.kernel ?? given
  const fixed = new Map(Object.entries(dims).map(([name, extent]) => [name, i32(extent)]))
  const body = kernel.body.map((s) => mapStmt(s, (e) => substituteDims(e, fixed)))
  const { axes, statements } =
    isPointwise(body) && kernel.rows.length > 0 ? loopOverLastAxis(kernel, body, fixed) : { axes: kernel.rows, statements: body }

  const taken = namesOf(kernel)
  const pieces: Context['pieces'] =
    chunks !== 'in pieces' ? undefined : { index: freshName('chunk', taken), bounds: new Map(), conditions: new Map() }
  const context: Context = {
    kernel,
    statements,
    fixed: dims,
    types,
    loops: new Map(),
    elementIndex: axes === kernel.rows ? undefined : kernel.rows.at(-1)?.index,
    extents: new Map(axes.map((axis) => [axis.index, extentOf(axis, (dim) => fixed.get(dim) ?? dimVar(dim))])),
    lets: new Map(),
    rows: new Map(),
    shared: new Map(),
    taken,
    pieces,
    inSpans: chunks === 'in spans',
    interleaved: new Map(),
  }
  const isMade = madeWithSteps(statements)
  const made: Context = chunks === 'interleaved' ? { ...context, interleaved: interleavedPlaces(statements, context) } : context
  const normal = statements.flatMap((s) => (isMade(s) ? [] : normaliseStatement(s, made)))
  const loops = [...new Set(normal.flatMap((s) => ('loop' in s ? [s.loop] : [])))]
  const elementwise =
    loops.length === 1 && normal.every((s) => s.kind === 'let' || (s.kind === 'loopStore' && !readsScan(s.value, context.rows)))
  const replaced = replacedOf(kernel)
  return {
    elementwise,
    axes,
    across: interchanged?.across,
    rows: context.rows,
    shared: context.shared,
    loops,
    statements: normal,
    replaced,
    waits: waitsOf(kernel, replaced),
    inBounds: (load) => isInBounds(load, context),
    pieces,
    taken: context.taken,
    hasPlainSums: given.storedPlaces !== undefined,
  }
}

/** Outputs that replace inputs which the kernel reads. */
function replacedOf(kernel: Kernel): Set<string> {
  const read = new Set<string>()
  visitKernel(kernel, (node) => {
    if (node.kind === 'load') read.add(node.tensor)
  })
  return new Set(kernel.tensors.flatMap(({ name, updates }) => (updates !== undefined && read.has(updates) ? [name] : [])))
}

/** Scalars of a row are read by all its threads; rows that are kept whole are read by the passes that compute them. */
function waitsOf({ body }: Kernel, replaced: ReadonlySet<string>): NormalKernel['waits'] {
  if (body.some((s) => s.kind === 'row' && s.kept !== undefined)) return 'passes'
  const isNumber = body.some((s) => s.kind === 'store' && replaced.has(s.tensor))
  return isNumber && body.some(({ kind }) => kind === 'storeRow') ? 'reads' : 'no'
}

/** True if all results are scalars of the row axes and no statement walks over a row: rows are computed where they are read. */
const isPointwise = (body: readonly Stmt[]): boolean =>
  body.every((s) => {
    const { walk } = constructOf(s).traits
    return walk === 'none' || walk === 'where read'
  })

/** Makes the innermost row axis the loop: lets that depend on it become rows, stores become loop stores. */
function loopOverLastAxis(
  kernel: Kernel,
  body: readonly Stmt[],
  fixed: ReadonlyMap<string, Expr>,
): { axes: readonly RowAxis[]; statements: readonly Statement[] } {
  const axis = kernel.rows.at(-1)
  if (axis === undefined) throw new Error(`internal: ${kernel.name} has no row axis`)
  const { index } = axis
  const length = extentOf(axis, (dim) => fixed.get(dim) ?? dimVar(dim))
  const perElement = new Set<string>()
  const rewriteLocals = (e: Expr): Expr =>
    rewriteDown(e, (node) =>
      node.kind === 'local' && perElement.has(node.name)
        ? { kind: 'element', type: node.type, row: node.name, index: indexVar(index) }
        : undefined,
    )
  const statements = body.map((s): Statement => {
    const rewritten = mapStmt(s, rewriteLocals)
    if (rewritten.kind === 'store') return { ...rewritten, kind: 'writtenStore', index, length }
    if (rewritten.kind !== 'let' || !usesIndex(rewritten.value, index)) return rewritten
    perElement.add(rewritten.name)
    return { ...rewritten, kind: 'row', index, length }
  })
  return { axes: kernel.rows.slice(0, -1), statements }
}

function normaliseStatement(s: Statement, context: Context): readonly NormalStmt[] {
  const normalise: Normalise<Statement> = normalisers[s.kind]
  return normalise(s, context)
}

const namesOf = (kernel: Kernel): Set<string> =>
  new Set([
    ...kernel.dims,
    ...kernel.attrs.map((a) => a.name),
    ...kernel.tensors.map((t) => t.name),
    ...kernel.rows.map((r) => r.index),
    ...kernel.body.flatMap(introducedNames),
  ])

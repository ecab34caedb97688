/**
 * Reductions of whole rows of a matmul, in two programs: one reduces groups of columns, which the main loop holds in registers, and the other
 * combines the results of a row's groups and goes on. The matmul itself is never stored.
 *
 *     top = max(c < n: x[m, c])              top[m, p] = max of group p               top = max(p < g: top[m, p])
 *     total = sum(c < n: exp(x[m, c] - top)) total[m, p] = sum of exp(x - top[m, p])  total = sum(p < g: exp(top[m, p] - top) * total[m, p])
 *     y[m] = top + log(total) - x[m, l[m]]   picked[m, p] = x if the group has l[m]   y[m] = top + log(total) - picked[m, l[m] / width]
 */
import { call, constant, dim, i32, index, local } from '../../ir/build.js'
import { constructOf } from '../../ir/constructs/index.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import { hashOf } from '../../ir/expr_hash.js'
import type { Kernel, Stmt, StmtOf, TensorParam } from '../../ir/kernel.js'
import { rowMajor } from '../../ir/layout.js'
import { freshName } from '../../ir/names.js'
import type { ReducedRows } from '../../ir/product.js'
import { scaledPart, shiftedSum } from '../../ir/shifted_sum.js'
import { freeNames, introducedNames, mapStmt, rewrite, stmtExprs, substitute, visit, withoutSpans } from '../../ir/walk.js'
import { equalExprs } from '../space/positions.js'

type Reduce = StmtOf<'reduce'>

/** Reason why rows cannot be reduced in groups. */
export class NotReduced extends Error {}

/**
 * @param kernel a program over the rows of matmuls, without row values
 * @param accumulators its tensors that stand for the matmuls, whose rows are the program's
 * @throws NotReduced
 */
export const reducedRows = (kernel: Kernel, accumulators: readonly string[]): ReducedRows =>
  new Reducing(kernel, accumulators).run()

/** True for a program over the rows of the matmuls that reduces them or reads an element of each. */
export function reducesRows({ body, rows, tensors }: Kernel, accumulators: readonly string[]): boolean {
  const axes = (tensors.find(({ name }) => accumulators.includes(name))?.dims ?? []).slice(0, -1)
  const isOver = axes.length === rows.length && rows.every(({ dim: axis, also }) => axes.includes(axis) && also === undefined)
  return isOver && body.some((stmt) => stmt.kind === 'store' || constructOf(stmt).traits.elements === 'combined')
}

class Reducing {
  readonly #kernel: Kernel
  readonly #accumulators: readonly string[]
  readonly #rows: readonly Expr[]
  readonly #columns: string
  readonly #taken: Set<string>
  readonly #groups: string
  readonly #width: string
  readonly #group: Expr
  /** Scalars of a row, written out wherever they are read. */
  readonly #scalars = new Map<string, Expr>()
  /** Reductions of the columns by name, and scalars that the second program computes otherwise. */
  readonly #reduced = new Map<string, Reduce>()
  readonly #others = new Set<string>()
  /** The place that a group has found, by the name of the reduction that searches it. */
  readonly #places = new Map<string, string>()
  readonly #shared: TensorParam[] = []
  readonly #parts: Stmt[] = []
  readonly #stores: Stmt[] = []
  readonly #picked = new Map<string, string>()
  readonly #rest: Stmt[] = []

  constructor(kernel: Kernel, accumulators: readonly string[]) {
    this.#kernel = kernel
    this.#accumulators = accumulators
    const { dims = [] } = kernel.tensors.find(({ name }) => accumulators.includes(name)) ?? {}
    this.#columns = dims.at(-1) ?? ''
    const axes = dims.slice(0, -1)
    if (axes.includes(this.#columns)) throw new NotReduced('rows and columns of the matmul have one name')
    this.#rows = axes.map((axis) => index(kernel.rows.find((row) => row.dim === axis)?.index ?? ''))
    const { tensors, attrs, rows, body } = kernel
    this.#taken = new Set([...kernel.dims, ...[...tensors, ...attrs].map(({ name }) => name), ...rows.map((row) => row.index)])
    for (const stmt of body) for (const name of introducedNames(stmt)) this.#taken.add(name)
    this.#width = this.#fresh('group_width')
    this.#groups = this.#fresh('groups')
    this.#group = index(this.#fresh('group'))
  }

  run(): ReducedRows {
    const stored = this.#kernel.body.find((stmt) => stmt.kind === 'storeRow' && this.#isAlong(stmt))
    if (stored !== undefined)
      throw new NotReduced(
        'an epilogue works on each element of the matmul by itself, row by row: a reduction of a row of the matmul needs a kernel of its own',
      )
    for (const stmt of this.#kernel.body) this.#add(mapStmt(stmt, (expr) => substitute(expr, this.#scalars)))
    const { tensors, rows, dims } = this.#kernel
    const group = this.#group.kind === 'index' ? this.#group.name : ''
    const all = { ...this.#kernel, dims: [...dims, this.#width, this.#groups] }
    const [parts, rest] = [[...this.#parts, ...this.#stores], this.#rest]
    const inputs = tensors.filter(({ access }) => access === 'in')
    const read = (body: readonly Stmt[], from: readonly TensorParam[]) => from.filter(({ name }) => loads(body, [name]))
    const asInputs = this.#shared.map((tensor): TensorParam => ({ ...tensor, access: 'in' }))
    return {
      width: this.#width,
      groups: this.#groups,
      shared: this.#shared,
      partials: {
        ...all,
        rows: [...rows, { index: group, dim: this.#groups }],
        tensors: [...read(parts, inputs), ...this.#shared],
        body: parts,
      },
      rest: {
        ...all,
        tensors: [...read(rest, [...inputs, ...asInputs]), ...tensors.filter(({ access }) => access === 'out')],
        body: rest,
      },
    }
  }

  #fresh = (wanted: string): string => freshName(wanted, this.#taken)

  #add(stmt: Stmt): void {
    if (stmt.kind === 'let') {
      this.#scalars.set(stmt.name, stmt.value)
      return
    }
    if (!this.#isAlong(stmt)) {
      this.#rest.push(mapStmt(stmt, (expr) => this.#withPicked(expr)))
      for (const { kind, name } of constructOf(stmt).defines(stmt)) if (kind === 'local') this.#others.add(name)
      return
    }
    if (stmt.kind !== 'reduce')
      throw new NotReduced(
        `parts of a row do not suffice for ${stmt.kind}: a reduction of a row of the matmul needs a kernel of its own`,
      )
    if (!equalExprs(stmt.length, dim(this.#columns)))
      throw new NotReduced(`${stmt.name} reduces the matmul along another axis than its columns, or some of them`)
    this.#reduce(stmt)
  }

  /** True if a statement reads different elements of a row of the matmuls. */
  #isAlong(stmt: Stmt): boolean {
    const own = 'index' in stmt ? stmt.index : undefined
    return own !== undefined && this.#loadsOf(stmt).some((load) => load.indices.some((at) => freeNames(at).has(own)))
  }

  /** Loads of the matmuls in a statement. */
  #loadsOf(stmt: Stmt): readonly ExprOf<'load'>[] {
    const found: ExprOf<'load'>[] = []
    for (const expr of stmtExprs(stmt))
      visit(expr, (node) => {
        if (node.kind === 'load' && this.#accumulators.includes(node.tensor)) found.push(node)
      })
    return found
  }

  /** Adds a reduction over the columns. */
  #reduce(stmt: Reduce): void {
    const at = [...this.#rows, index(stmt.index)]
    if (!this.#loadsOf(stmt).every(({ indices }) => indices.every((each, i) => equalExprs(each, at[i]))))
      throw new NotReduced(`${stmt.name} reads an element of the matmul in another row or column than its own`)
    const read = [...freeNames(stmt.value)]
    const other = read.find((name) => this.#others.has(name))
    if (other !== undefined)
      throw new NotReduced(
        `${stmt.name} depends on ${other}, a reduction of another tensor, which its groups of columns do not have`,
      )
    const chained = read.filter((name) => this.#reduced.has(name))
    if (chained.length > 0) this.#addShifted(stmt, chained[0] ?? '')
    else if (stmt.monoid === 'argmax' || stmt.monoid === 'argmin') this.#addPlace(stmt)
    else this.#combine(stmt, this.#addPart(stmt))
    this.#reduced.set(stmt.name, stmt)
  }

  /** The second program's reduction of a shared tensor, whose groups are combined as elements are. */
  #combine(stmt: Reduce, tensor: string): void {
    const at = this.#fresh('group')
    this.#rest.push({ ...stmt, length: dim(this.#groups), index: at, value: this.#load(tensor, index(at)) })
  }

  #addShifted(stmt: Reduce, chained: string): void {
    const tops = new Map([...this.#reduced].filter(([, { monoid }]) => monoid === 'max'))
    const shifted = shiftedSum(stmt, tops, new Set(this.#reduced.keys()))
    if (shifted === undefined)
      throw new NotReduced(
        `${stmt.name} depends on ${chained} of the whole row, which no part of it knows; of such reductions only sums of exponentials shifted by the maximum of their own exponents follow from parts`,
      )
    const tensor = this.#addPart(stmt)
    const at = this.#fresh('group')
    const value = scaledPart(shifted, this.#load(tensor, index(at)), this.#load(this.#sharedOf(shifted.top), index(at)))
    this.#rest.push({ ...stmt, length: dim(this.#groups), index: at, value })
  }

  /** Adds the search of a place: that of each group with its element, of which the first best is the row's. */
  #addPlace(stmt: Reduce): void {
    const found = this.#fresh(`${stmt.name}_in_group`)
    const place = this.#fresh(`${stmt.name}_place`)
    this.#parts.push(this.#inGroup({ ...stmt, name: found }))
    this.#parts.push({ kind: 'let', name: place, type: 'i32', value: call('add', this.#start(), local(found, 'i32')) })
    this.#places.set(stmt.name, place)
    const places = this.#share(`${stmt.name}_places`, 'i32', local(place, 'i32'))
    const best = this.#addPart(this.#pick(`${stmt.name}_best`, stmt.value, stmt.index, local(place, 'i32')))
    const [group, at] = [this.#fresh('group'), this.#fresh(`${stmt.name}_group`)]
    this.#rest.push({ ...stmt, name: at, length: dim(this.#groups), index: group, value: this.#load(best, index(group)) })
    const none = call('eq', dim(this.#groups), i32(0))
    const value = call('select', none, i32(0), this.#load(places, local(at, 'i32')))
    this.#rest.push({ kind: 'let', name: stmt.name, type: 'i32', value })
  }

  /** A sum that is an element at one column. */
  #pick(wanted: string, element: Expr, column: string, place: Expr): Reduce {
    const type = element.type === 'i32' ? 'i32' : 'f32'
    const value = call('select', call('eq', index(column), place), element, constant(type, 0))
    return { kind: 'reduce', name: this.#fresh(wanted), type, monoid: 'sum', length: dim(this.#columns), index: column, value }
  }

  /** Adds a reduction of each group, and shares its result. @returns the shared tensor */
  #addPart(stmt: Reduce): string {
    this.#parts.push(this.#inGroup(stmt))
    return this.#share(`${stmt.name}_parts`, stmt.type, local(stmt.name, stmt.type))
  }

  #share(wanted: string, type: Expr['type'], value: Expr): string {
    const name = this.#fresh(wanted)
    const dims = [
      ...this.#rows.map((row) => this.#kernel.rows.find((axis) => row.kind === 'index' && axis.index === row.name)?.dim ?? ''),
      this.#groups,
    ]
    this.#shared.push({ name, access: 'out', dtype: type === 'i32' ? 'i32' : 'f32', dims, layout: rowMajor(dims) })
    this.#stores.push({ kind: 'store', tensor: name, indices: [...this.#rows, this.#group], value })
    return name
  }

  #sharedOf = (name: string): string => {
    const at = this.#stores.findIndex((stmt) => stmt.kind === 'store' && stmt.value.kind === 'local' && stmt.value.name === name)
    return this.#shared[at]?.name ?? ''
  }

  #load(tensor: string, group: Expr): Expr {
    const type = this.#shared.find(({ name }) => name === tensor)?.dtype === 'i32' ? 'i32' : 'f32'
    return { kind: 'load', type, tensor, indices: [...this.#rows, group] }
  }

  /** First column of a group. */
  #start = (): Expr => call('mul', this.#group, dim(this.#width))

  /** A reduction over the columns of a group. */
  #inGroup(stmt: Reduce): Reduce {
    const at = this.#fresh(stmt.index)
    const column = call('add', this.#start(), index(at))
    const length = call('minimum', dim(this.#width), call('sub', dim(this.#columns), this.#start()))
    return { ...stmt, length, index: at, value: substitute(stmt.value, new Map([[stmt.index, column]])) }
  }

  /** The expression with elements of the matmuls at known columns read from the group that has them. */
  #withPicked(expr: Expr): Expr {
    return rewrite(expr, (node) => {
      if (node.kind !== 'load' || !this.#accumulators.includes(node.tensor)) return node
      const at = node.indices.at(-1)
      if (at === undefined || !this.#rows.every((row, i) => equalExprs(row, node.indices[i])))
        throw new NotReduced('an element of the matmul is read in another row than its own')
      return this.#load(this.#pickedAt(node, at), call('idiv', at, dim(this.#width)))
    })
  }

  /** The shared tensor that has an element of the matmuls. */
  #pickedAt({ tensor, type }: ExprOf<'load'>, at: Expr): string {
    const key = `${tensor} ${hashOf(withoutSpans(at))}`
    const known = this.#picked.get(key)
    if (known !== undefined) return known
    const found = at.kind === 'local' ? this.#places.get(at.name) : undefined
    const bound = [...freeNames(at)].find((name) => !this.#rows.some((row) => row.kind === 'index' && row.name === name))
    if ((found === undefined && bound !== undefined) || (found === undefined && loadsAny(at, this.#accumulators)))
      throw new NotReduced(
        `an element of the matmul is read at a column that follows from ${bound ?? 'the matmul'}, which no part of the row knows`,
      )
    const column = this.#fresh('column')
    const element: Expr = { kind: 'load', type, tensor, indices: [...this.#rows, index(column)] }
    const made = this.#addPart(this.#pick('picked', element, column, found === undefined ? at : local(found, 'i32')))
    this.#picked.set(key, made)
    return made
  }
}

function loadsAny(expr: Expr, tensors: readonly string[]): boolean {
  let found = false
  visit(expr, (node) => {
    found ||= node.kind === 'load' && tensors.includes(node.tensor)
  })
  return found
}

const loads = (body: readonly Stmt[], tensors: readonly string[]): boolean =>
  body.some((stmt) => stmtExprs(stmt).some((expr) => loadsAny(expr, tensors)))

/**
 * Derives one kernel from the bodies of a group's nodes. Each member's statements are copied in graph order with their
 * indices rewritten to the group's atoms; a load of a value another member computes becomes an element of that member's
 * row, or, where it reads another position, the producer's expression itself. Values used outside the group are stored.
 */
import { call, dim as dimExpr, index as indexExpr } from '../ir/build.js'
import type { Expr, ExprOf } from '../ir/expr.js'
import type { AttrValue, Graph, NodeOf, ValueId } from '../ir/graph.js'
import type { Kernel, Stmt, StmtOf, TensorParam } from '../ir/kernel.js'
import { verifyKernel } from '../ir/verify.js'
import { mapStmt, rewrite, substitute } from '../ir/walk.js'
import { inlineRows } from './inline.js'
import { createNames, type Names } from './names.js'
import { type Binding, Parameters } from './parameters.js'
import { equalExprs, Positions } from './positions.js'
import { boundValue, illegal, isElementwise, type Member, type Space, spaceOf } from './space.js'

export interface Derived {
  readonly kernel: Kernel
  readonly inputs: readonly Binding[]
  readonly outputs: readonly Binding[]
  readonly attrs: Readonly<Record<string, AttrValue>>
}

/** What a member of the group computes, for the members after it, defined at logical `indices`. */
type Produced =
  | { readonly kind: 'scalar'; readonly member: string; readonly indices: readonly Expr[]; readonly value: Expr }
  | {
      readonly kind: 'row'
      readonly member: string
      /** The row's loop index stands for the inner atom. */
      readonly row: StmtOf<'row'>
      readonly indices: readonly Expr[]
      /** The element as an expression of its indices alone; undefined when it depends on a reduction. */
      readonly pure: Expr | undefined
    }

/**
 * @param outside values that nodes outside the group, or the graph's user, still need
 * @throws usage `plan.illegal` naming the two nodes that conflict and why
 */
export function deriveKernel(
  graph: Graph,
  group: string,
  members: readonly Member[],
  views: readonly NodeOf<'view'>[],
  outside: ReadonlySet<ValueId>,
): Derived {
  return new Derivation(graph, group, members, views, outside).run()
}

class Derivation {
  readonly #group: string
  readonly #members: readonly Member[]
  readonly #outside: ReadonlySet<ValueId>
  readonly #space: Space
  readonly #names: Names
  readonly #parameters: Parameters
  readonly #produced = new Map<ValueId, Produced>()
  /** Results of the group's inner views, and what they view. */
  readonly #viewed: ReadonlyMap<ValueId, ValueId>
  readonly #body: Stmt[] = []

  constructor(
    graph: Graph,
    group: string,
    members: readonly Member[],
    views: readonly NodeOf<'view'>[],
    outside: ReadonlySet<ValueId>,
  ) {
    this.#group = group
    this.#members = members
    this.#outside = outside
    this.#viewed = new Map(views.map((view) => [view.out, view.input]))
    this.#space = spaceOf(graph, group, members, views)
    this.#names = createNames(this.#space)
    this.#parameters = new Parameters(graph, group, this.#space, this.#names)
  }

  run(): Derived {
    for (const member of this.#members) this.#copy(member)
    const first = this.#members[0]?.kernel
    if (first === undefined) throw new Error(`internal: group ${this.#group} is empty`)
    const parameters = this.#parameters
    const tensors = parameters.tensors()
    const kernel: Kernel = inlineRows({
      name: this.#group,
      source: first.source,
      dims: [...new Set(tensors.flatMap((tensor) => tensor.dims))],
      types: parameters.types(this.#members),
      attrs: parameters.attrs,
      tensors,
      rows: this.#space.rows.map((atom) => ({ index: this.#names.rowIndex(atom), dim: this.#names.atom(atom) })),
      body: this.#body,
    })
    verifyKernel(kernel, `fuse ${this.#group}`)
    return { kernel, inputs: parameters.bindings('in'), outputs: parameters.bindings('out'), attrs: parameters.attrValues }
  }

  /** Copies a member's statements into the fused body. */
  #copy(member: Member): void {
    const renamed = new Map<string, string>()
    const attrs = new Map(member.kernel.attrs.map((attr) => [attr.name, this.#parameters.attr(member, attr)]))
    const rename = (name: string): string => {
      const fresh = renamed.get(name) ?? this.#names.fresh(name)
      renamed.set(name, fresh)
      return fresh
    }
    const group = { name: this.#group, space: this.#space, names: this.#names, members: this.#members }
    for (const stmt of member.kernel.body) {
      const loop =
        'length' in stmt
          ? { index: stmt.index, atoms: this.#loopAtoms(member, stmt.length), inner: this.#names.fresh('c') }
          : undefined
      const positions = new Positions(group, member, loop)
      const made = mapStmt(stmt, (expr) => this.#convert(member, expr, positions, rename, attrs))
      this.#emit(member, made, loop, rename, positions)
    }
  }

  #emit(member: Member, made: Stmt, loop: Loop | undefined, rename: (name: string) => string, positions: Positions): void {
    if (made.kind === 'let') {
      this.#body.push({ ...made, name: rename(made.name) })
      return
    }
    if (made.kind === 'store') {
      const id = boundValue(member, made.tensor)
      this.#produced.set(id, { kind: 'scalar', member: member.node.name, indices: made.indices, value: made.value })
      if (this.#outside.has(id))
        this.#body.push({ ...made, tensor: this.#parameters.output(member, paramOf(member, made.tensor)) })
      return
    }
    if (loop === undefined) throw new Error(`internal: ${made.kind} has no loop`)
    const atom = loop.atoms.at(-1)
    const length = atom === undefined ? made.length : dimExpr(this.#names.atom(atom))
    if (made.kind === 'storeRow') this.#emitRow(member, { ...made, length, index: loop.inner }, loop, positions)
    else this.#body.push({ ...made, name: rename(made.name), index: loop.inner, length })
  }

  /** A stored row becomes a row value, for the members after it, and a store where the value is needed outside. */
  #emitRow(member: Member, made: StmtOf<'storeRow'>, loop: Loop, positions: Positions): void {
    const id = boundValue(member, made.tensor)
    const param = paramOf(member, made.tensor)
    const { length, index, value } = made
    const row: StmtOf<'row'> = { kind: 'row', name: this.#names.fresh('r'), type: value.type, length, index, value }
    const logical = [...made.rows, positions.number(loop.index)]
    const indices = logical.flatMap((expr, i) => positions.split(expr, this.#space.atomsOf(member, param.dims[i] ?? '')) ?? [])
    const pure = isElementwise(member.kernel) ? this.#pure(value) : undefined
    this.#produced.set(id, { kind: 'row', member: member.node.name, row, indices, pure })
    this.#body.push(row)
    if (!this.#outside.has(id)) return
    if (!equalExprs(indices.at(-1), indexExpr(index))) {
      throw illegal(
        this.#group,
        member.node.name,
        this.#members.at(-1)?.node.name ?? '',
        `${member.node.name} stores along another axis`,
      )
    }
    const at = this.#names.fresh('c')
    this.#body.push({
      kind: 'storeRow',
      tensor: this.#parameters.output(member, param),
      rows: indices.slice(0, -1),
      length,
      index: at,
      value: { kind: 'element', type: row.type, row: row.name, index: indexExpr(at) },
    })
  }

  #loopAtoms(member: Member, length: Expr): readonly number[] {
    return length.kind === 'dim' ? this.#space.atomsOf(member, length.name) : []
  }

  #convert(
    member: Member,
    expr: Expr,
    positions: Positions,
    rename: (name: string) => string,
    attrs: ReadonlyMap<string, string>,
  ): Expr {
    return rewrite(expr, (node) => {
      switch (node.kind) {
        case 'local':
          return { ...node, name: rename(node.name) }
        case 'element':
          return { ...node, row: rename(node.row) }
        case 'attr':
          return { ...node, name: attrs.get(node.name) ?? node.name }
        case 'dim':
          return this.#space
            .atomsOf(member, node.name)
            .map((atom): Expr => dimExpr(this.#names.atom(atom)))
            .reduce((total, extent) => call('mul', total, extent))
        case 'index':
          return positions.has(node.name) ? positions.number(node.name) : node
        case 'load':
          return this.#load(member, node, positions)
        default:
          return node
      }
    })
  }

  #load(member: Member, load: ExprOf<'load'>, positions: Positions): Expr {
    const param = paramOf(member, load.tensor)
    const value = boundValue(member, load.tensor)
    const producer = this.#produced.get(this.#viewed.get(value) ?? value)
    const indices = load.indices.flatMap((expr, i) => {
      const split = positions.split(expr, this.#space.atomsOf(member, param.dims[i] ?? ''))
      if (split !== undefined) return split
      const reason = `${load.tensor} is read at a computed position of a split axis`
      throw illegal(this.#group, producer?.member ?? member.node.name, member.node.name, reason)
    })
    return producer === undefined
      ? { ...load, tensor: this.#parameters.input(member, param), indices }
      : this.#read(producer, member, indices)
  }

  /** Reads what another member computes: its row where the position is the same, its expression where it is not. */
  #read(producer: Produced, member: Member, indices: readonly Expr[]): Expr {
    const crosses = () => illegal(this.#group, producer.member, member.node.name, 'a row reduction crosses the row of the group')
    const moved = indices.filter((index, i) => !equalExprs(index, producer.indices[i]))
    if (producer.kind === 'scalar') {
      if (moved.length > 0) throw crosses()
      return producer.value
    }
    const { row, pure } = producer
    const element = indices[producer.indices.findIndex((index) => index.kind === 'index' && index.name === row.index)]
    if (element !== undefined && moved.every((index) => index === element)) {
      return { kind: 'element', type: row.type, row: row.name, index: element }
    }
    if (pure === undefined) throw crosses()
    const values = producer.indices.flatMap((index, i) =>
      index.kind === 'index' ? [[index.name, indices[i] ?? index] as const] : [],
    )
    return substitute(pure, new Map(values))
  }

  /** The expression with every element of another member's row replaced by what it is; undefined if one depends on a reduction. */
  #pure(expr: Expr): Expr | undefined {
    const rows = new Map(
      [...this.#produced.values()].flatMap((made) => (made.kind === 'row' ? [[made.row.name, made] as const] : [])),
    )
    let whole = true
    const made = rewrite(expr, (node) => {
      if (node.kind === 'local') whole = false
      if (node.kind !== 'element') return node
      const producer = rows.get(node.row)
      if (producer?.pure === undefined) {
        whole = false
        return node
      }
      return substitute(producer.pure, new Map([[producer.row.index, node.index]]))
    })
    return whole ? made : undefined
  }
}

/** A member's loop: its index, the atoms it spans, and the fused kernel's index along the last of them. */
interface Loop {
  readonly index: string
  readonly atoms: readonly number[]
  readonly inner: string
}

function paramOf(member: Member, tensor: string): TensorParam {
  const param = member.kernel.tensors.find((candidate) => candidate.name === tensor)
  if (param === undefined) throw new Error(`internal: ${member.node.name} has no tensor ${tensor}`)
  return param
}

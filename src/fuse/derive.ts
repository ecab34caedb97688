/**
 * Derives one kernel from the bodies of a group's nodes. Each member's statements are copied in graph order with their
 * indices rewritten to the group's atoms; a load of a value another member computes becomes an element of that member's
 * row, or, where it reads another position, the producer's expression itself. Values used outside the group are stored.
 */

import { call, dim as dimExpr, index as indexExpr } from '../ir/build.js'
import type { DType } from '../ir/dtype.js'
import type { Expr } from '../ir/expr.js'
import type { AttrValue, Graph, NodeOf, ValueId } from '../ir/graph.js'
import type { AttrParam, DTypeRef, Kernel, Stmt, StmtOf, TensorParam } from '../ir/kernel.js'
import { rowMajor } from '../ir/layout.js'
import type { Shape } from '../ir/shape.js'
import { verifyKernel } from '../ir/verify.js'
import { mapStmt, rewrite, substitute } from '../ir/walk.js'
import { inlineRows } from './inline.js'
import { boundValue, illegal, isElementwise, type Member, type Space, spaceOf } from './space.js'

/** A parameter of the fused kernel, the graph value it stands for, and the shape the kernel sees it in. */
export interface Binding {
  readonly param: string
  readonly value: ValueId
  readonly shape: Shape
}

export interface Derived {
  readonly kernel: Kernel
  readonly inputs: readonly Binding[]
  readonly outputs: readonly Binding[]
  readonly attrs: Readonly<Record<string, AttrValue>>
}

/** What a member of the group computes, for the members after it. */
type Produced =
  | { readonly kind: 'scalar'; readonly member: string; readonly rows: readonly Expr[]; readonly value: Expr }
  | {
      readonly kind: 'row'
      readonly member: string
      readonly row: StmtOf<'row'>
      /** The logical indices it is defined for; the loop index stands for the inner atom. */
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
  readonly #graph: Graph
  readonly #group: string
  readonly #members: readonly Member[]
  readonly #outside: ReadonlySet<ValueId>
  readonly #space: Space
  readonly #taken = new Set<string>()
  readonly #atomNames = new Map<number, string>()
  readonly #produced = new Map<ValueId, Produced>()
  readonly #viewed = new Map<ValueId, ValueId>()
  readonly #tensors = new Map<ValueId, TensorParam>()
  readonly #shapes = new Map<ValueId, Shape>()
  readonly #attrs: AttrParam[] = []
  readonly #attrValues: Record<string, AttrValue> = {}
  readonly #body: Stmt[] = []

  constructor(
    graph: Graph,
    group: string,
    members: readonly Member[],
    views: readonly NodeOf<'view'>[],
    outside: ReadonlySet<ValueId>,
  ) {
    this.#graph = graph
    this.#group = group
    this.#members = members
    this.#outside = outside
    this.#space = spaceOf(graph, group, members, views)
    for (const view of views) this.#viewed.set(view.out, view.input)
    for (const atom of [...this.#space.rows, this.#space.inner]) this.#atomName(atom)
  }

  run(): Derived {
    for (const member of this.#members) this.#copy(member)
    const first = this.#members[0]?.kernel
    if (first === undefined) throw new Error(`internal: group ${this.#group} is empty`)
    const tensors = [...this.#tensors.entries()].sort(([, a], [, b]) => Number(a.access === 'out') - Number(b.access === 'out'))
    const kernel: Kernel = inlineRows({
      name: this.#group,
      source: first.source,
      dims: [...new Set(tensors.flatMap(([, tensor]) => tensor.dims))],
      types: this.#types(),
      attrs: this.#attrs,
      tensors: tensors.map(([, tensor]) => tensor),
      rows: this.#space.rows.map((atom) => ({ index: this.#rowIndex(atom), dim: this.#atomName(atom) })),
      body: this.#body,
    })
    verifyKernel(kernel, `fuse ${this.#group}`)
    const bindings = (access: 'in' | 'out'): Binding[] =>
      tensors.flatMap(([value, tensor]) =>
        tensor.access === access ? [{ param: tensor.name, value, shape: this.#shapes.get(value) ?? [] }] : [],
      )
    return { kernel, inputs: bindings('in'), outputs: bindings('out'), attrs: this.#attrValues }
  }

  /** Copies a member's statements into the fused body. */
  #copy(member: Member): void {
    const names = new Map<string, string>()
    const attrs = new Map(member.kernel.attrs.map((attr) => [attr.name, this.#attr(member, attr)]))
    const rename = (name: string): string => {
      const known = names.get(name)
      if (known !== undefined) return known
      const fresh = this.#fresh(name)
      names.set(name, fresh)
      return fresh
    }
    for (const stmt of member.kernel.body) {
      const loop = 'length' in stmt ? { index: stmt.index, atoms: this.#loopAtoms(member, stmt.length) } : undefined
      const inner = loop === undefined ? undefined : this.#fresh('c')
      const indices = this.#indexAtoms(member, loop, inner)
      const convert = (expr: Expr): Expr => this.#convert(member, expr, indices, rename, attrs)
      this.#emit(member, mapStmt(stmt, convert), stmt, inner, rename, indices)
    }
  }

  #emit(
    member: Member,
    made: Stmt,
    source: Stmt,
    loop: string | undefined,
    rename: (name: string) => string,
    indices: IndexAtoms,
  ): void {
    switch (made.kind) {
      case 'let':
        this.#body.push({ ...made, name: rename(made.name) })
        return
      case 'row':
      case 'reduce':
        this.#body.push({
          ...made,
          name: rename(made.name),
          index: loop ?? made.index,
          length: this.#innerLength(member, source),
        })
        return
      case 'store': {
        const id = boundValue(member, made.tensor)
        this.#produced.set(id, { kind: 'scalar', member: member.node.name, rows: made.indices, value: made.value })
        if (this.#outside.has(id)) this.#body.push({ ...made, tensor: this.#output(member, made.tensor, id) })
        return
      }
      case 'storeRow':
        this.#emitRow(member, made, source, loop ?? made.index, indices)
        return
    }
  }

  #emitRow(member: Member, made: StmtOf<'storeRow'>, source: Stmt, loop: string, indices: IndexAtoms): void {
    const id = boundValue(member, made.tensor)
    const length = this.#innerLength(member, source)
    const row: StmtOf<'row'> = {
      kind: 'row',
      name: this.#fresh('r'),
      type: made.value.type,
      length,
      index: loop,
      value: made.value,
    }
    const tensor = member.kernel.tensors.find((candidate) => candidate.name === made.tensor)
    const logical = source.kind === 'storeRow' ? [...source.rows, indexExpr(source.index)] : []
    const all = logical.flatMap((expr, i) => this.#expand(member, expr, tensor?.dims[i] ?? '', indices) ?? [])
    const pure = isElementwise(member.kernel) ? this.#pure(made.value) : undefined
    this.#produced.set(id, { kind: 'row', member: member.node.name, row, indices: all, pure })
    this.#body.push(row)
    if (!this.#outside.has(id)) return
    const last = all.at(-1)
    if (last?.kind !== 'index' || last.name !== loop) {
      throw illegal(
        this.#group,
        member.node.name,
        this.#members.at(-1)?.node.name ?? '',
        `${member.node.name} stores along another axis`,
      )
    }
    const index = this.#fresh(loop)
    this.#body.push({
      kind: 'storeRow',
      tensor: this.#output(member, made.tensor, id),
      rows: all.slice(0, -1),
      length,
      index,
      value: { kind: 'element', type: row.type, row: row.name, index: indexExpr(index) },
    })
  }

  /** The loop length of a statement over the group's axes: only its last atom is looped, the others are rows. */
  #innerLength(member: Member, source: Stmt): Expr {
    if (!('length' in source)) throw new Error(`internal: ${source.kind} has no loop`)
    const atom = this.#loopAtoms(member, source.length).at(-1)
    return atom === undefined ? source.length : dimExpr(this.#atomName(atom))
  }

  #loopAtoms(member: Member, length: Expr): readonly number[] {
    return length.kind === 'dim' ? this.#space.atomsOf(member, length.name) : []
  }

  /** What each index variable of a member stands for while a statement is copied. */
  #indexAtoms(
    member: Member,
    loop: { index: string; atoms: readonly number[] } | undefined,
    inner: string | undefined,
  ): IndexAtoms {
    const map = new Map<string, { atoms: readonly number[]; exprs: readonly Expr[] }>()
    for (const axis of member.kernel.rows) {
      const atoms = this.#space.atomsOf(member, axis.dim)
      map.set(axis.index, { atoms, exprs: atoms.map((atom) => this.#position(member, atom, inner)) })
    }
    if (loop !== undefined && inner !== undefined) {
      const exprs = loop.atoms.map((atom, i) =>
        i === loop.atoms.length - 1 ? indexExpr(inner) : this.#position(member, atom, inner),
      )
      map.set(loop.index, { atoms: loop.atoms, exprs: loop.atoms.length === 0 ? [indexExpr(inner)] : exprs })
    }
    return map
  }

  /** Where the fused kernel stands along an atom: one of its row indices, or the element index. */
  #position(member: Member, atom: number, inner: string | undefined): Expr {
    if (this.#space.rows.includes(atom)) return indexExpr(this.#rowIndex(atom))
    if (atom === this.#space.inner && inner !== undefined) return indexExpr(inner)
    const other = this.#members.find((candidate) => candidate !== member)?.node.name ?? ''
    throw illegal(this.#group, member.node.name, other, 'their iteration spaces differ')
  }

  #convert(
    member: Member,
    expr: Expr,
    indices: IndexAtoms,
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
          return this.#product(this.#space.atomsOf(member, node.name))
        case 'index':
          return indices.has(node.name) ? this.#flatten(indices, node.name) : node
        case 'load':
          return this.#load(member, node, indices)
        default:
          return node
      }
    })
  }

  /** A row-major position over several atoms as one number. */
  #flatten(indices: IndexAtoms, name: string): Expr {
    const found = indices.get(name)
    const [first, ...rest] = found?.exprs ?? []
    if (found === undefined || first === undefined) return indexExpr(name)
    return rest.reduce(
      (total, expr, i) => call('add', call('mul', total, dimExpr(this.#atomName(found.atoms[i + 1] ?? 0))), expr),
      first,
    )
  }

  #product(atoms: readonly number[]): Expr {
    return atoms.map((atom) => dimExpr(this.#atomName(atom))).reduce((total, extent) => call('mul', total, extent))
  }

  /** Positions along the atoms of one tensor dimension; undefined when a split dimension is read at a computed position. */
  #expand(member: Member, expr: Expr, dim: string, indices: IndexAtoms): readonly Expr[] | undefined {
    const atoms = this.#space.atomsOf(member, dim)
    if (expr.kind === 'index') {
      const found = indices.get(expr.name)
      if (found !== undefined && found.atoms.length === atoms.length) return found.exprs
    }
    return atoms.length === 1 ? [expr] : undefined
  }

  #load(member: Member, load: Extract<Expr, { kind: 'load' }>, indices: IndexAtoms): Expr {
    const param = member.kernel.tensors.find((tensor) => tensor.name === load.tensor)
    if (param === undefined) throw new Error(`internal: ${member.node.name} loads unknown tensor ${load.tensor}`)
    const value = boundValue(member, load.tensor)
    const producer = this.#produced.get(this.#viewed.get(value) ?? value)
    const all = load.indices.map((expr, i) => this.#splitIndex(member, expr, param.dims[i] ?? '', indices))
    if (all.some((positions) => positions === undefined)) {
      throw illegal(
        this.#group,
        producer?.member ?? member.node.name,
        member.node.name,
        `${load.tensor} is read at a computed position of a split axis`,
      )
    }
    const positions = all.flatMap((found) => found ?? [])
    if (producer === undefined) return { ...load, tensor: this.#input(member, param, value), indices: positions }
    return this.#read(producer, member, positions)
  }

  /** An index that was already rewritten: recognised again by the position it stands for. */
  #splitIndex(member: Member, expr: Expr, dim: string, indices: IndexAtoms): readonly Expr[] | undefined {
    const atoms = this.#space.atomsOf(member, dim)
    if (atoms.length === 1) return [expr]
    for (const [name, found] of indices) {
      if (found.atoms.length === atoms.length && equal(this.#flatten(indices, name), expr)) return found.exprs
    }
    return undefined
  }

  #read(producer: Produced, member: Member, positions: readonly Expr[]): Expr {
    if (producer.kind === 'scalar') {
      if (positions.every((position, i) => equal(position, producer.rows[i]))) return producer.value
      throw illegal(this.#group, producer.member, member.node.name, 'a row reduction crosses the row of the group')
    }
    const { row, indices, pure } = producer
    const moved = positions.filter((position, i) => !equal(position, indices[i]))
    const along = indices.findIndex((index) => index.kind === 'index' && index.name === row.index)
    const element = positions[along]
    if (element !== undefined && moved.every((position) => position === element)) {
      return { kind: 'element', type: row.type, row: row.name, index: element }
    }
    if (pure === undefined)
      throw illegal(this.#group, producer.member, member.node.name, 'a row reduction crosses the row of the group')
    const values = new Map(
      indices.flatMap((index, i) => (index.kind === 'index' ? [[index.name, positions[i] ?? index] as const] : [])),
    )
    return substitute(pure, values)
  }

  /** The expression with every element of another member's row replaced by what it is; undefined if one depends on a reduction. */
  #pure(expr: Expr): Expr | undefined {
    let whole = true
    const made = rewrite(expr, (node) => {
      if (node.kind === 'local') whole = false
      if (node.kind !== 'element') return node
      const producer = [...this.#produced.values()].find(
        (candidate) => candidate.kind === 'row' && candidate.row.name === node.row,
      )
      if (producer?.kind !== 'row' || producer.pure === undefined) {
        whole = false
        return node
      }
      return substitute(producer.pure, new Map([[producer.row.index, node.index]]))
    })
    return whole ? made : undefined
  }

  #input(member: Member, param: TensorParam, value: ValueId): string {
    return this.#tensors.get(value)?.name ?? this.#declare(member, param, value, 'in')
  }

  #output(member: Member, tensor: string, value: ValueId): string {
    const param = member.kernel.tensors.find((candidate) => candidate.name === tensor)
    if (param === undefined) throw new Error(`internal: ${member.node.name} stores unknown tensor ${tensor}`)
    return this.#declare(member, param, value, 'out')
  }

  /** Declares a tensor of the fused kernel over atoms. Only row-major tensors may be seen in a finer shape. */
  #declare(member: Member, param: TensorParam, value: ValueId, access: 'in' | 'out'): string {
    const atoms = param.dims.flatMap((dim) => [...this.#space.atomsOf(member, dim)])
    const dims = atoms.map((atom) => this.#atomName(atom))
    if (param.layout.name !== 'row' && atoms.length !== param.dims.length) {
      throw illegal(
        this.#group,
        member.node.name,
        this.#members.at(-1)?.node.name ?? '',
        `layout ${param.layout.name} of ${param.name} cannot be split`,
      )
    }
    const name = this.#fresh(param.name)
    const dtype = this.#graph.values[value]?.dtype ?? param.dtype
    this.#tensors.set(value, { name, access, dtype, dims, layout: param.layout.name === 'row' ? rowMajor(dims) : param.layout })
    this.#shapes.set(
      value,
      atoms.map((atom) => this.#space.axes.extent(atom)),
    )
    return name
  }

  #attr(member: Member, attr: AttrParam): string {
    const name = this.#fresh(attr.name)
    this.#attrs.push({ ...attr, name })
    this.#attrValues[name] = member.node.attrs[attr.name] ?? attr.default
    return name
  }

  /** Type parameters of the fused kernel: those of the graph values it touches, where every member allows them. */
  #types(): Kernel['types'] {
    const types: Record<string, readonly DType[]> = {}
    for (const { node, kernel } of this.#members) {
      for (const [param, choices] of Object.entries(kernel.types)) {
        const ref: DTypeRef | undefined = node.types[param]
        if (ref === undefined || typeof ref === 'string') continue
        types[ref.param] = types[ref.param]?.filter((choice) => choices.includes(choice)) ?? choices
      }
    }
    const used = new Set([...this.#tensors.values()].flatMap(({ dtype }) => (typeof dtype === 'string' ? [] : [dtype.param])))
    return Object.fromEntries(Object.entries(types).filter(([param]) => used.has(param)))
  }

  #rowIndex(atom: number): string {
    return `i_${this.#atomName(atom)}`
  }

  #atomName(atom: number): string {
    const known = this.#atomNames.get(atom)
    if (known !== undefined) return known
    const name = this.#fresh(this.#space.axes.label(atom))
    this.#atomNames.set(atom, name)
    return name
  }

  #fresh(base: string): string {
    for (let i = 1; ; i++) {
      const name = i === 1 ? base : `${base}${i}`
      if (this.#taken.has(name)) continue
      this.#taken.add(name)
      return name
    }
  }
}

type IndexAtoms = ReadonlyMap<string, { readonly atoms: readonly number[]; readonly exprs: readonly Expr[] }>

const equal = (a: Expr | undefined, b: Expr | undefined): boolean => a === b || JSON.stringify(a) === JSON.stringify(b)

/**
 * Derives one kernel from the bodies of a group's nodes. Each member's statements are copied in graph order with their indices rewritten to the
 * group's atoms. A load of a value that another member computes becomes an element of that member's row; where it reads another position, the
 * producer's expression is inlined. An elementwise member that runs over other axes than the group leaves no statements: it is inlined into its
 * readers. Values used outside the group are stored.
 */
import { dim as dimExpr, i32, index as indexExpr } from '../../ir/build.js'
import { constructOf } from '../../ir/constructs/index.js'
import type { Expr } from '../../ir/expr.js'
import type { AttrValue, Graph, NodeOf, ValueId } from '../../ir/graph.js'
import type { Kernel, Stmt, StmtOf, TensorParam } from '../../ir/kernel.js'
import { verifyKernel } from '../../ir/verify.js'
import { mapStmt, substitute } from '../../ir/walk.js'
import type { LayoutsByName } from '../graph/edit.js'
import { createNames, type Names } from '../space/names.js'
import { type Binding, Parameters } from '../space/parameters.js'
import { equalExprs, Positions } from '../space/positions.js'
import { ProducedValues } from '../space/produced.js'
import { boundValue, illegal, isElementwise, loopDims, type Member, type Space, spaceOf } from '../space/space.js'
import { checkDerivedKernel } from './checks.js'
import { Converter, type Copy, paramOf } from './convert.js'
import { byElement } from './elements.js'
import { inlineRows } from './inline.js'
import { checkUpdates } from './updates.js'

export interface Derived<K = Kernel> {
  readonly kernel: K
  readonly inputs: readonly Binding[]
  readonly outputs: readonly Binding[]
  readonly attrs: Readonly<Record<string, AttrValue>>
}

/**
 * @param outside values that nodes outside the group, or the graph's caller, still need
 * @throws usage `plan.illegal` naming the two nodes that conflict and why
 */
export function deriveKernel(
  graph: Graph,
  group: string,
  members: readonly Member[],
  views: readonly NodeOf<'view'>[],
  outside: ReadonlySet<ValueId>,
  layouts: LayoutsByName,
): Derived {
  const space = spaceOf(graph, group, members, views)
  const seen = members.map((member) => byElement(member, space))
  const isSame = seen.every((member, i) => member === members[i])
  const own = isSame ? space : spaceOf(graph, group, seen, views)
  return new Derivation({ graph, group, members: seen, views, outside, layouts, space: own }).run()
}

/** A group to derive, in its space. */
interface SpacedGroup {
  readonly graph: Graph
  readonly group: string
  readonly members: readonly Member[]
  readonly views: readonly NodeOf<'view'>[]
  readonly outside: ReadonlySet<ValueId>
  readonly layouts: LayoutsByName
  readonly space: Space
}

class Derivation {
  readonly #group: string
  readonly #members: readonly Member[]
  readonly #outside: ReadonlySet<ValueId>
  readonly #space: Space
  readonly #names: Names
  readonly #parameters: Parameters
  readonly #produced: ProducedValues
  readonly #converter: Converter
  readonly #body: Stmt[] = []

  constructor({ graph, group, members, views, outside, layouts, space }: SpacedGroup) {
    this.#group = group
    this.#members = members
    this.#outside = outside
    this.#produced = new ProducedValues(group, new Map(views.map((view) => [view.out, view.input])))
    this.#space = space
    this.#names = createNames(this.#space)
    this.#parameters = new Parameters(graph, group, this.#space, this.#names, layouts)
    this.#converter = new Converter(group, this.#space, this.#names, this.#parameters, this.#produced)
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
      ...this.#rowsOf(tensors),
      typical: parameters.typical(),
    })
    checkDerivedKernel(kernel, this.#group, this.#members)
    verifyKernel(kernel, `fuse ${this.#group}`)
    checkUpdates(kernel, this.#group, this.#members)
    return { kernel, inputs: parameters.bindings('in'), outputs: parameters.bindings('out'), attrs: parameters.attrValues }
  }

  /** Rows and body of the kernel. A row of one element that no tensor has, as between two views, is left out: its index is 0. */
  #rowsOf(tensors: readonly TensorParam[]): Pick<Kernel, 'rows' | 'body'> {
    const { rows: atoms, axes } = this.#space
    const isKept = (atom: number): boolean =>
      !axes.isUnit(atom) || tensors.some(({ dims }) => dims.includes(this.#names.atom(atom)))
    const rows = atoms.filter(isKept).map((atom) => ({ index: this.#names.rowIndex(atom), dim: this.#names.atom(atom) }))
    if (rows.length === atoms.length) return { rows, body: this.#body }
    const zero = new Map(atoms.filter((atom) => !isKept(atom)).map((atom) => [this.#names.rowIndex(atom), i32(0)]))
    return { rows, body: this.#body.map((stmt) => mapStmt(stmt, (expr) => substitute(expr, zero))) }
  }

  /** Copies a member's statements into the fused body. */
  #copy(member: Member): void {
    const copy: Copy = {
      member,
      renamed: new Map(),
      attrs: new Map(member.kernel.attrs.map((attr) => [attr.name, this.#parameters.attr(member, attr)])),
      runs: this.#runs(member),
      scalars: new Map(),
    }
    const group = { name: this.#group, space: this.#space, names: this.#names, members: this.#members, lends: !copy.runs }
    for (const stmt of member.kernel.body) {
      const loop =
        'length' in stmt
          ? { index: stmt.index, atoms: this.#loopAtoms(member, stmt.length), inner: this.#names.fresh('c') }
          : undefined
      const positions = new Positions(group, member, loop)
      const made = mapStmt(stmt, (expr) => this.#converter.convert(copy, expr, positions))
      this.#emit(copy, made, loop, positions)
    }
  }

  /**
   * True if a member has the group's rows and runs along its inner axis: the same axes with another one inside, as in a transposed copy, are
   * another iteration. Rows of one element, which have the index 0, fit always. A member that does not fit must be elementwise and needed nowhere
   * else; otherwise it is run and refused.
   */
  #runs(member: Member): boolean {
    const { rows, inner, axes, atomsOf } = this.#space
    const isRow = (atom: number): boolean => rows.includes(atom) || axes.isUnit(atom)
    const outputs = Object.values(member.node.outputs)
    const fits =
      member.kernel.rows.every((axis) => atomsOf(member, axis.dim).every(isRow)) &&
      loopDims(member.kernel).every((dim) => {
        const atoms = atomsOf(member, dim)
        return atoms.at(-1) === inner && atoms.slice(0, -1).every(isRow)
      })
    return fits || !isElementwise(member.kernel) || outputs.some((id) => this.#outside.has(id))
  }

  #emit(copy: Copy, made: Stmt, loop: Loop | undefined, positions: Positions): void {
    const { member } = copy
    if (made.kind === 'let') {
      const name = this.#converter.rename(copy, made.name)
      if (isElementwise(member.kernel)) copy.scalars.set(name, substitute(made.value, copy.scalars))
      if (copy.runs) this.#body.push({ ...made, name })
      return
    }
    if (made.kind === 'store') {
      const id = boundValue(member, made.tensor)
      const param = paramOf(member, made.tensor)
      const { value } = made
      const places = this.#converter.places(member, param, made.indices, positions)
      const indices = places.map(({ index }) => index)
      this.#produced.set(id, { kind: 'scalar', member: member.node.name, places, value, pure: this.#pureOf(copy, value) })
      if (this.#outside.has(id)) this.#body.push({ ...made, indices, tensor: this.#parameters.output(member, param) })
      return
    }
    const { alone } = constructOf(made).traits
    if (alone !== undefined) {
      const other = this.#members.find((candidate) => candidate !== member)?.node.name ?? ''
      throw illegal(this.#group, member.node.name, other, `${member.node.name} ${alone}, which is a kernel of its own`)
    }
    if (loop === undefined) throw new Error(`internal: ${made.kind} has no loop`)
    const atom = loop.atoms.at(-1)
    const length = atom === undefined ? made.length : dimExpr(this.#names.atom(atom))
    const moved = { ...made, length, index: loop.inner }
    if (moved.kind === 'storeRow') this.#emitRow(copy, moved, loop, positions)
    else this.#body.push(constructOf(moved).rename(moved, (name) => this.#converter.rename(copy, name)))
  }

  /** Makes a row value of a stored row, for later members, and a store where the value is needed outside. */
  #emitRow(copy: Copy, made: StmtOf<'storeRow'>, loop: Loop, positions: Positions): void {
    const { member, runs } = copy
    const id = boundValue(member, made.tensor)
    const param = paramOf(member, made.tensor)
    const { length, index, value } = made
    const row: StmtOf<'row'> = { kind: 'row', name: this.#names.fresh('r'), type: value.type, length, index, value }
    const places = this.#converter.places(member, param, [...made.rows, positions.number(loop.index)], positions)
    const indices = places.map((place) => place.index)
    this.#produced.set(id, { kind: 'row', member: member.node.name, row, places, pure: this.#pureOf(copy, value), runs })
    if (!runs) return
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

  /** The result of an elementwise member as an expression of its indices alone. */
  #pureOf({ member, scalars }: Copy, value: Expr): Expr | undefined {
    return isElementwise(member.kernel) ? this.#produced.pure(substitute(value, scalars)) : undefined
  }

  #loopAtoms(member: Member, length: Expr): readonly number[] {
    return length.kind === 'dim' ? this.#space.atomsOf(member, length.name) : []
  }
}

/** A member's loop: its index, the atoms it spans, and the fused kernel's index along the last of them. */
interface Loop {
  readonly index: string
  readonly atoms: readonly number[]
  readonly inner: string
}

/**
 * The parameters of an attention kernel. Its slots are derived separately, each with its own names. Here tensors of one value become one
 * parameter, and dimensions of equal extent one dimension.
 */
import { call, i32 } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import type { AttrValue, Graph, ValueId } from '../../ir/graph.js'
import type { AttrParam, Kernel, TensorParam } from '../../ir/kernel.js'
import { rowMajor } from '../../ir/layout.js'
import { type Extent, printExtent, type Shape } from '../../ir/shape.js'
import type { RowOperand } from '../../ir/template.js'
import { rewrite } from '../../ir/walk.js'
import { valueAt } from '../graph/edit.js'
import { floatTypes } from '../product/identity.js'
import type { Derived } from '../rows/derive.js'
import { type Binding, commonTypes } from '../space/parameters.js'
import type { Member } from '../space/space.js'

/** A slot's expression, and the derivation that its names belong to. */
export interface Piece {
  readonly derived: Derived
  readonly value: Expr
}

interface Declared extends Binding {
  readonly tensor: TensorParam
}

export class AttentionSlots {
  readonly #graph: Graph
  readonly #dims = new Map<string, string>()
  readonly #extents = new Map<string, Extent>()
  readonly #tensors = new Map<ValueId, Declared>()
  readonly #attrs: AttrParam[] = []
  readonly #attrValues: Record<string, AttrValue> = {}
  readonly #taken = new Set<string>(['raw', 'result', 'total', 'top', 'owner', 'b', 'c', 'h', 'i', 'j'])

  constructor(graph: Graph) {
    this.#graph = graph
  }

  /** Name of the kernel's dimension for an extent. */
  dim(extent: Extent | undefined): string {
    if (extent === undefined) throw new Error('internal: an axis of attention without an extent')
    const key = printExtent(extent)
    const known = this.#dims.get(key)
    if (known !== undefined) return known
    const made = this.#fresh(/^[a-z]\w*$/i.test(key) ? `${key}_extent` : 'extent')
    this.#dims.set(key, made)
    this.#extents.set(made, extent)
    return made
  }

  /**
   * An extent as a number: a dimension where a tensor has it, else attributes that the program supplies. Called after all tensors are declared.
   */
  extent(extent: Extent): Expr {
    const name = this.dim(extent)
    if ([...this.#tensors.values()].some(({ tensor }) => tensor.dims.includes(name))) return { kind: 'dim', type: 'i32', name }
    const factors = extent.dims.map((graphDim) => this.#given(graphDim))
    const factor = extent.factor === 1 && factors.length > 0 ? [] : [i32(extent.factor)]
    return [...factors, ...factor].reduce((left, right) => call('mul', left, right))
  }

  /** An expression with attributes for the dimensions that no tensor has. Called after all tensors are declared. */
  withAttributes(expr: Expr): Expr {
    return rewrite(expr, (node) => {
      const extent = node.kind === 'dim' ? this.#extents.get(node.name) : undefined
      return extent === undefined ? node : this.extent(extent)
    })
  }

  /** The same for the address of a row, and for its element. */
  rowWithAttributes<R extends RowOperand>(row: R): R {
    const indices = row.indices.map((each) => this.withAttributes(each))
    return { ...row, indices, ...(row.element === undefined ? {} : { element: this.withAttributes(row.element) }) }
  }

  /** An attribute for a dimension of the graph that no tensor of the kernel has. */
  #given(graphDim: string): Expr {
    const name = this.dim({ factor: 1, dims: [graphDim] })
    if (this.#attrValues[name] === undefined) this.#attrs.push({ name, type: 'i32', default: 1 })
    this.#attrValues[name] = { dim: graphDim }
    return { kind: 'attr', type: 'i32', name }
  }

  /** The parameter of a value under a shape. */
  tensor(id: ValueId, shape: Shape, access: TensorParam['access'], layout?: TensorParam['layout']): string {
    const known = this.#tensors.get(id)
    if (known !== undefined) return known.param
    const { dtype } = valueAt(this.#graph.values, id)
    const dims = shape.map((extent) => this.dim(extent))
    const weight = Object.entries({ ...this.#graph.inputs, ...this.#graph.weights }).find(([, value]) => value === id)?.[0]
    const param = this.#fresh(access === 'out' ? 'y' : (weight ?? 'x'))
    this.#tensors.set(id, {
      param,
      value: id,
      shape,
      tensor: { name: param, access, dtype, dims, layout: layout ?? rowMajor(dims) },
    })
    return param
  }

  /** The layout of a parameter. */
  layoutOf(param: string): TensorParam['layout'] {
    const found = [...this.#tensors.values()].find(({ tensor }) => tensor.name === param)
    if (found === undefined) throw new Error(`internal: no tensor ${param}`)
    return found.tensor.layout
  }

  /** The parameter of a value that updates the tensor `before` in place. */
  update(id: ValueId, shape: Shape, layout: TensorParam['layout'], before: string): string {
    const param = this.tensor(id, shape, 'out', layout)
    const declared = this.#tensors.get(id)
    if (declared !== undefined) this.#tensors.set(id, { ...declared, tensor: { ...declared.tensor, updates: before } })
    return param
  }

  input(id: ValueId): string {
    return this.tensor(id, valueAt(this.#graph.values, id).shape, 'in')
  }

  /** An expression of a piece in the kernel's own names. `except` is the tensor that stands for the matmul. */
  inKernelNames({ derived }: Piece, expr: Expr, except: string | undefined): Expr {
    const { kernel, inputs, outputs } = derived
    const bindings = [...inputs, ...outputs]
    const extents = new Map(
      kernel.tensors.flatMap((tensor) => {
        const shape = bindings.find(({ param }) => param === tensor.name)?.shape ?? []
        return tensor.dims.map((name, i) => [name, shape[i]] as const)
      }),
    )
    return rewrite(expr, (node) => {
      // Roles already use the kernel's own dimensions.
      if (node.kind === 'dim') return extents.has(node.name) ? { ...node, name: this.dim(extents.get(node.name)) } : node
      if (node.kind === 'attr') return { ...node, name: this.#attr(derived, node.name) }
      if (node.kind !== 'load' || node.tensor === except) return node
      const binding = inputs.find(({ param }) => param === node.tensor)
      const tensor = kernel.tensors.find(({ name }) => name === node.tensor)
      if (binding === undefined || tensor === undefined) throw new Error(`internal: no tensor ${node.tensor}`)
      const layout = tensor.layout.name === 'row' ? undefined : tensor.layout
      return { ...node, tensor: this.tensor(binding.value, binding.shape, 'in', layout) }
    })
  }

  /** The kernel's signature. Its storage types are those that all members allow. @throws usage `plan.illegal` where they have none in common */
  signature(group: string, members: readonly Member[]): Pick<Kernel, 'dims' | 'types' | 'attrs' | 'tensors'> {
    const all = [...this.#tensors.values()].map(({ tensor }) => tensor)
    const tensors = [...all.filter(({ access }) => access === 'in'), ...all.filter(({ access }) => access === 'out')]
    const params = new Set(tensors.flatMap(({ dtype }) => (typeof dtype === 'string' ? [] : [dtype.param])))
    const allowed = commonTypes(group, members)
    const types = Object.fromEntries(
      [...params].map((param) => [param, floatTypes.filter((type) => allowed[param]?.includes(type) !== false)]),
    )
    return { dims: [...new Set(tensors.flatMap(({ dims }) => dims))], types, attrs: this.#attrs, tensors }
  }

  bindings(): Pick<Derived, 'inputs' | 'outputs' | 'attrs'> {
    const of = (access: TensorParam['access']): Binding[] =>
      [...this.#tensors.values()]
        .filter(({ tensor }) => tensor.access === access)
        .map(({ param, value, shape }) => ({ param, value, shape }))
    return { inputs: of('in'), outputs: of('out'), attrs: this.#attrValues }
  }

  #attr(derived: Derived, name: string): string {
    const attr = derived.kernel.attrs.find((candidate) => candidate.name === name)
    const value = derived.attrs[name]
    if (attr === undefined || value === undefined) throw new Error(`internal: no attribute ${name}`)
    const known = this.#attrs.find((other) => JSON.stringify(this.#attrValues[other.name]) === JSON.stringify(value))
    if (known !== undefined) return known.name
    const made = this.#fresh(name)
    this.#attrs.push({ ...attr, name: made })
    this.#attrValues[made] = value
    return made
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

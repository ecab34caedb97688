/** Common names for the kernels of several parts of a group, for horizontal fusion. */
import { index as indexOf } from '../../ir/build.js'
import type { AttrValue } from '../../ir/graph.js'
import type { AttrParam, Kernel, TensorParam } from '../../ir/kernel.js'
import { freshName } from '../../ir/names.js'
import { printExtent, printShape } from '../../ir/shape.js'
import { introducedNames, mapStmt, substitute } from '../../ir/walk.js'
import { renameKernel } from '../product/rename.js'
import type { Binding } from '../space/parameters.js'
import type { Derived } from './derive.js'

/** Parameters of several kernels under common names: dimensions of one extent are one, and so are tensors of one value. */
export class Joining {
  readonly #taken = new Set<string>()
  readonly #extents = new Map<string, string>()
  readonly #tensors: { readonly param: TensorParam; readonly binding: Binding }[] = []
  readonly #attrs: AttrParam[] = []
  readonly #attrValues: Record<string, AttrValue> = {}
  readonly #typical: Record<string, number> = {}
  readonly #types: Record<string, Kernel['types'][string]> = {}

  /** A name that is not taken. */
  readonly fresh = (base: string): string => freshName(base, this.#taken)

  /** The kernel under these names; adds those of its parameters that are new. */
  add({ kernel, inputs, outputs, attrs }: Derived): Kernel {
    const bindings = new Map([...inputs, ...outputs].map((binding) => [binding.param, binding]))
    const dims = this.#dimsOf(kernel, bindings)
    const named = renameKernel(kernel, { dims, tensors: new Map(), attrs: new Map() })
    const tensors = new Map<string, string>()
    for (const param of named.tensors) {
      const binding = bindings.get(param.name)
      if (binding === undefined) throw new Error(`internal: ${param.name} is bound to no value`)
      tensors.set(param.name, this.#tensor(param, binding))
    }
    const given = new Map(kernel.attrs.map((attr) => [attr.name, this.#attr(attr, attrs[attr.name] ?? attr.default)]))
    for (const [param, choices] of Object.entries(kernel.types)) this.#types[param] ??= choices
    for (const [name, size] of Object.entries(kernel.typical ?? {})) this.#typical[dims.get(name) ?? name] = size
    return this.#freshIndices(renameKernel(named, { dims: new Map(), tensors, attrs: given }))
  }

  parameters(): Pick<Kernel, 'dims' | 'types' | 'attrs' | 'tensors' | 'typical'> {
    const all = this.#tensors.map(({ param }) => param)
    const tensors = (['in', 'out'] as const).flatMap((access) => all.filter((param) => param.access === access))
    return { dims: [...this.#extents.keys()], types: this.#types, attrs: this.#attrs, tensors, typical: this.#typical }
  }

  bindings(): Pick<Derived, 'inputs' | 'outputs' | 'attrs'> {
    const of = (access: TensorParam['access']) =>
      this.#tensors.filter(({ param }) => param.access === access).map(({ binding }) => binding)
    return { inputs: of('in'), outputs: of('out'), attrs: this.#attrValues }
  }

  /** Common names of a kernel's dimensions, by their names in the kernel. */
  #dimsOf(kernel: Kernel, bindings: ReadonlyMap<string, Binding>): ReadonlyMap<string, string> {
    const extents = new Map(
      kernel.tensors.flatMap(({ name, dims }) =>
        dims.map((own, axis) => [own, printExtent(bindings.get(name)?.shape[axis] ?? { factor: 1, dims: [] })] as const),
      ),
    )
    const found = new Map<string, string>()
    const used = new Set<string>()
    for (const own of kernel.dims) {
      const extent = extents.get(own) ?? ''
      const [known] = [...this.#extents].find(([name, each]) => each === extent && !used.has(name)) ?? []
      const name = known ?? freshName(own, this.#taken)
      this.#extents.set(name, extent)
      used.add(name)
      found.set(own, name)
    }
    return found
  }

  /** The name of a tensor. An input is known by its value, its axes and its layout. */
  #tensor(param: TensorParam, binding: Binding): string {
    const known = this.#tensors.find(
      (other) =>
        param.access === 'in' &&
        other.binding.value === binding.value &&
        printShape(other.binding.shape) === printShape(binding.shape) &&
        other.param.dims.join() === param.dims.join(),
    )
    if (known !== undefined) return known.param.name
    const name = freshName(param.name, this.#taken)
    this.#tensors.push({ param: { ...param, name }, binding: { ...binding, param: name } })
    return name
  }

  #attr(attr: AttrParam, value: AttrValue): string {
    const isGiven = (other: AttrParam): boolean =>
      other.type === attr.type &&
      typeof value === 'object' &&
      JSON.stringify(this.#attrValues[other.name]) === JSON.stringify(value)
    const known = this.#attrs.find(isGiven)
    if (known !== undefined) return known.name
    const name = freshName(attr.name, this.#taken)
    this.#attrs.push({ ...attr, name })
    this.#attrValues[name] = value
    return name
  }

  /** The kernel with indices that no other part has. */
  #freshIndices(kernel: Kernel): Kernel {
    const rows = kernel.rows.map((row) => ({ ...row, index: freshName(row.index, this.#taken) }))
    const renamed = new Map(kernel.rows.map(({ index }, i) => [index, indexOf(rows[i]?.index ?? index)]))
    const body = kernel.body.map((stmt) => {
      const made = mapStmt(stmt, (expr) => substitute(expr, renamed))
      if (made.kind !== 'storeRow') return made
      const own = freshName(made.index, this.#taken)
      const along = new Map([[made.index, indexOf(own)]])
      return { ...mapStmt(made, (expr) => substitute(expr, along)), index: own }
    })
    for (const name of body.flatMap(introducedNames)) this.#taken.add(name)
    return { ...kernel, rows, body }
  }
}

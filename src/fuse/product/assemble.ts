/** Assembles a matmul kernel: its row programs under common names, its tensors in the order of launchers. */
import type { Graph, ValueId } from '../../ir/graph.js'
import type { Kernel, TensorParam } from '../../ir/kernel.js'
import { freshName } from '../../ir/names.js'
import { groupExtents, type MatmulFactor, type MatmulKernel, type ReducedRows } from '../../ir/product.js'
import { type LayoutsByName, valueAt } from '../graph/edit.js'
import type { Derived } from '../rows/derive.js'
import type { Binding } from '../space/parameters.js'
import { illegal } from '../space/space.js'
import type { Accumulated } from './epilogue.js'
import type { Prologue } from './factor.js'
import { floatTypes } from './identity.js'
import { layoutOver } from './layout_over.js'
import { renameKernel } from './rename.js'

/** A factor of the group: a graph value, and the program that computes it if the group does. */
export interface FactorPart {
  /** The matmul's node. */
  readonly node: string
  readonly value: ValueId
  /** Its axes by role. */
  readonly axes: readonly string[]
  readonly prologue: Prologue | undefined
}

export interface KernelParts {
  readonly batch: readonly string[]
  readonly left: FactorPart
  readonly right: readonly FactorPart[]
  readonly epilogue: Accumulated
  readonly partials: Partials | undefined
}

/** The program of partials, with its names of the matmuls it reads and of their axes by role. */
export interface Partials extends Derived {
  readonly accumulators: readonly (string | undefined)[]
  readonly named: ReadonlyMap<string, string>
}

/** Parts of the kernel that come from one factor. */
interface Placed {
  readonly factor: MatmulFactor
  readonly tensors: readonly TensorParam[]
  readonly inputs: readonly Binding[]
  readonly attrs: Derived['attrs']
  readonly params: Kernel['attrs']
}

/** Parts of the kernel that come from a program of partials. */
interface PlacedPartials extends Derived {
  readonly tensors: readonly TensorParam[]
}

/** A kernel while it is assembled. */
interface Assembly {
  readonly graph: Graph
  readonly name: string
  readonly layouts: LayoutsByName
  readonly epilogue: Accumulated
  /** A name that the kernel does not use yet, derived from a wanted one. */
  readonly fresh: (wanted: string) => string
  /** The kernel's dimension for an axis, by role. */
  readonly nameOf: (axis: string) => string
}

/** The kernel with the bindings of its parameters. */
export function assemble(
  graph: Graph,
  name: string,
  { batch, left, right, epilogue, partials }: KernelParts,
  layouts: LayoutsByName,
): Derived<MatmulKernel> {
  const assembly: Assembly = { graph, name, layouts, epilogue, ...naming(epilogue) }
  const { nameOf } = assembly
  const { kernel, accumulators } = epilogue
  const a = placeFactor(assembly, left, 'a')
  const others = right.map((part, i) => placeFactor(assembly, part, i === 0 ? 'b' : `b${i + 1}`))
  const products = others.map(({ factor }, i) => ({ b: factor, accumulator: accumulators[i] ?? '' }))
  const [product, ...further] = products
  if (product === undefined) throw new Error(`internal: group ${name} has no product`)
  const placed = [a, ...others]
  const stored = partials === undefined ? undefined : placePartials(assembly, partials)
  const outer = [...batch, 'm', 'n'].map(nameOf)
  const made: MatmulKernel = {
    kind: 'matmul',
    name,
    source: kernel.source,
    ...signature(kernel, accumulators, placed, stored, [...outer, nameOf('k')]),
    batch: batch.map(nameOf),
    m: nameOf('m'),
    n: nameOf('n'),
    k: nameOf('k'),
    a: a.factor,
    products: [product, ...further],
    epilogue: kernel,
    ...(stored === undefined ? {} : { partials: stored.kernel }),
  }
  const whole = epilogue.reduced === undefined ? made : withReduced(made, epilogue.reduced)
  const inputs = [
    ...placed.flatMap((part) => part.inputs),
    ...epilogue.inputs.filter(({ param }) => !accumulators.includes(param)),
    ...(stored?.inputs ?? []),
  ]
  const attrs = Object.assign({}, epilogue.attrs, ...placed.map((part) => part.attrs), stored?.attrs ?? {}) as Derived['attrs']
  return { kernel: whole, inputs, outputs: [...epilogue.outputs, ...(stored?.outputs ?? [])], attrs }
}

/** The kernel with the programs that reduce its rows: they have its parameters, and names of their own for what is between them. */
function withReduced(kernel: MatmulKernel, { partials, rest, shared, ...own }: ReducedRows): MatmulKernel {
  const taken = new Set([...kernel.dims, ...[...kernel.tensors, ...kernel.attrs].map(({ name }) => name)])
  const [width, groups] = [freshName(own.width, taken), freshName(own.groups, taken)]
  const dims = new Map([
    [own.width, width],
    [own.groups, groups],
  ])
  const tensors = new Map(shared.map(({ name }) => [name, freshName(name, taken)] as const))
  const renamed = (program: Kernel): Kernel => ({
    ...renameKernel(program, { dims, tensors, attrs: new Map() }),
    dims: [...kernel.dims, width, groups],
    attrs: kernel.attrs,
  })
  const made = renamed(partials)
  const names = new Set(tensors.values())
  const computed = groupExtents([...kernel.batch, kernel.m], kernel.n, { width, groups })
  return {
    ...kernel,
    reduced: {
      ...{ width, groups, partials: made },
      rest: { ...renamed(rest), name: `${kernel.name}_rest`, computed },
      shared: made.tensors.filter(({ name }) => names.has(name)),
    },
  }
}

/** Names of a kernel that begins with an epilogue. */
function naming({ kernel, named }: Accumulated): Pick<Assembly, 'fresh' | 'nameOf'> {
  const taken = new Set([
    ...kernel.dims,
    ...kernel.tensors.map((tensor) => tensor.name),
    ...kernel.attrs.map((attr) => attr.name),
  ])
  const fresh = (wanted: string): string => {
    const made = taken.has(wanted) ? fresh(`${wanted}_`) : wanted
    taken.add(made)
    return made
  }
  const axes = new Map([...named, ['k', fresh('k')]])
  return { fresh, nameOf: (axis) => axes.get(axis) ?? axis }
}

/** Parameters of a kernel that come from all of its parts. @param axes its dimensions by role */
function signature(
  epilogue: Kernel,
  accumulators: readonly string[],
  placed: readonly Placed[],
  stored: PlacedPartials | undefined,
  axes: readonly string[],
): Pick<MatmulKernel, 'dims' | 'types' | 'attrs' | 'tensors'> {
  const partials = stored === undefined ? [] : [stored.kernel]
  const tensors = inOrder([
    ...placed.flatMap((part) => part.tensors),
    ...epilogue.tensors.filter((param) => !accumulators.includes(param.name)),
    ...(stored?.tensors ?? []),
  ])
  return {
    dims: [...new Set([...epilogue.dims, ...axes, ...tensors.flatMap(({ dims }) => dims)])],
    types: typesOf(tensors, [epilogue, ...placed.flatMap(({ factor }) => factor.prologue ?? []), ...partials]),
    attrs: [...epilogue.attrs, ...placed.flatMap(({ params }) => params), ...partials.flatMap(({ attrs }) => attrs)],
    tensors,
  }
}

function placeFactor(
  { graph, name, layouts, fresh, nameOf }: Assembly,
  { node, value, axes, prologue }: FactorPart,
  wanted: string,
): Placed {
  const dims = axes.map(nameOf)
  if (prologue !== undefined) return placePrologue(prologue, dims, fresh)
  const { dtype, layout: stored, shape } = valueAt(graph.values, value)
  const param = fresh(wanted)
  const layout = layoutOver(stored, dims, layouts)
  if (layout === undefined) throw illegal(name, node, node, `a factor is in layout ${stored}, which is not declared`)
  const tensor: TensorParam = { name: param, access: 'in', dtype, dims, layout }
  return { factor: { tensor: param }, tensors: [tensor], inputs: [{ param, value, shape }], attrs: {}, params: [] }
}

/** A prologue under names of its own, except for the axes of its result, which have the kernel's. */
function placePrologue(
  { kernel, result, inputs, attrs }: Prologue,
  axes: readonly string[],
  fresh: (wanted: string) => string,
): Placed {
  const own = kernel.tensors.find((tensor) => tensor.name === result)?.dims ?? []
  const shared = new Map(own.map((dim, i) => [dim, axes[i] ?? dim] as const))
  const renamed = (names: readonly string[]) => new Map(names.map((wanted) => [wanted, fresh(wanted)] as const))
  const dims = new Map([...renamed(kernel.dims.filter((dim) => !shared.has(dim))), ...shared])
  const tensors = renamed(kernel.tensors.map((tensor) => tensor.name))
  const params = renamed(kernel.attrs.map((attr) => attr.name))
  const prologue = renameKernel(kernel, { dims, tensors, attrs: params })
  const tensorName = (param: string): string => tensors.get(param) ?? param
  return {
    factor: { tensor: tensorName(result), prologue },
    tensors: prologue.tensors.filter(({ access }) => access === 'in'),
    inputs: inputs.map((binding) => ({ ...binding, param: tensorName(binding.param) })),
    attrs: Object.fromEntries(Object.entries(attrs).map(([param, value]) => [params.get(param) ?? param, value])),
    params: prologue.attrs,
  }
}

/** Inputs first, in the order of launchers. */
const inOrder = (tensors: readonly TensorParam[]): readonly TensorParam[] => [
  ...tensors.filter(({ access }) => access === 'in'),
  ...tensors.filter(({ access }) => access === 'out'),
]

/** A program of partials under the kernel's names: matmuls and their axes are the epilogue's, all other names its own. */
function placePartials(
  { epilogue, nameOf, fresh }: Assembly,
  { kernel, inputs, outputs, attrs, accumulators, named }: Partials,
): PlacedPartials {
  const renamed = (names: readonly string[]) => names.map((wanted) => [wanted, fresh(wanted)] as const)
  const shared = new Map([...named].map(([axis, dim]) => [dim, nameOf(axis)] as const))
  const products = new Map(
    accumulators.flatMap((param, i) => (param === undefined ? [] : [[param, epilogue.accumulators[i] ?? ''] as const])),
  )
  const dims = new Map([...renamed(kernel.dims.filter((dim) => !shared.has(dim))), ...shared])
  const own = kernel.tensors.map(({ name }) => name).filter((name) => !products.has(name))
  const tensors = new Map([...renamed(own), ...products])
  const params = new Map(renamed(kernel.attrs.map(({ name }) => name)))
  const made = renameKernel(kernel, { dims, tensors, attrs: params })
  const bound = (bindings: readonly Binding[]) =>
    bindings
      .filter(({ param }) => !products.has(param))
      .map((each) => ({ ...each, param: tensors.get(each.param) ?? each.param }))
  return {
    kernel: made,
    tensors: made.tensors.filter(({ name }) => !epilogue.accumulators.includes(name)),
    inputs: bound(inputs),
    outputs: bound(outputs),
    attrs: Object.fromEntries(Object.entries(attrs).map(([param, value]) => [params.get(param) ?? param, value])),
  }
}

/** Storage types of a kernel's type parameters: those that all of its programs allow, or all floats. */
function typesOf(tensors: readonly TensorParam[], programs: readonly Kernel[]): Kernel['types'] {
  const params = new Set(tensors.flatMap(({ dtype }) => (typeof dtype === 'string' ? [] : [dtype.param])))
  return Object.fromEntries(
    [...params].map((param) => {
      const limits = programs.flatMap(({ types }) => (types[param] === undefined ? [] : [types[param]]))
      const [first = floatTypes, ...rest] = limits
      return [param, first.filter((type) => rest.every((other) => other.includes(type)))]
    }),
  )
}

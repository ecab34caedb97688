/**
 * What a graph's build function calls: one method per kind of node. Each checks its operands where it is called, so that what does not
 * fit is refused at the author's line.
 */
import { concerning, usageError, type Written } from '../errors.js'
import { dtypeInfo, isDType, isFloat8 } from '../ir/dtype.js'
import type { AttrValue, GraphNode, GraphValue, ValueId } from '../ir/graph.js'
import type { DTypeRef } from '../ir/kernel.js'
import { own } from '../ir/own.js'
import { multiplyExtents, parseExtent, parseShape, printShape, type Shape, sameExtent } from '../ir/shape.js'
import type { LayoutDecl } from './layout.js'
import type { Op, TensorDecl, Tensors } from './types.js'
import { writtenAt } from './written.js'

/** A value inside a graph under construction. */
export interface GraphTensor {
  readonly value: ValueId
}

export type Handles<T extends Tensors> = { readonly [K in keyof T]: GraphTensor }

/** What a matmul stores, where it is not what follows from its factors. */
export interface MatmulResult {
  /** A storage type or a type parameter: `i32` of int8 factors, or a float type. */
  readonly result?: string
  readonly layout?: LayoutDecl
}

const dtypeRef = (type: string): DTypeRef => (isDType(type) ? type : { param: type })

const pending = ''

const isInteger = (dtype: DTypeRef): boolean => typeof dtype === 'string' && dtypeInfo[dtype].scalar === 'i32'

/** The storage type of a matmul's result. @throws usage `graph.dtype` */
function resultType(subscripts: string, a: DTypeRef, b: DTypeRef, result: string | undefined): DTypeRef {
  const named = (dtype: DTypeRef): string => (typeof dtype === 'string' ? dtype : dtype.param)
  const refuse = (problem: string, hint: string) => usageError('graph.dtype', `"${subscripts}": ${problem}`, { hint })
  const integer = [a, b].find(isInteger)
  if (integer !== undefined)
    throw refuse(`a factor is stored as ${named(integer)}`, 'factors are floats or i8: convert it by an op of its own')
  const whole = a === 'i8' && b === 'i8'
  const wanted = result === undefined ? undefined : dtypeRef(result)
  const tiny = [a, b].find(isFloat8)
  if (tiny !== undefined && wanted === undefined)
    throw refuse(`a factor is stored as ${tiny}`, "say what the result is stored as: { result: 'f16' }")
  if (wanted === undefined) {
    if (whole) return 'i32'
    if (named(a) === named(b)) return a
    throw refuse(`the factors are stored as ${named(a)} and ${named(b)}`, "say what the result is stored as: { result: 'f32' }")
  }
  if (wanted === 'i8' || (wanted !== 'i32' && isInteger(wanted)))
    throw refuse(`sums do not fit ${named(wanted)}`, 'quantise them by an op behind the matmul')
  if (wanted === 'i32' && !whole) throw refuse('sums of floats are stored as i32', "write { result: 'f32' }, and round by an op")
  return wanted
}

/** @throws usage `graph.input`, `graph.attribute` for what an op does not have */
function refuseOthers(op: string, what: 'input' | 'attribute', given: object, known: object): void {
  const other = Object.keys(given).find((name) => !Object.hasOwn(known, name))
  if (other === undefined) return
  const names = Object.keys(known)
  throw usageError(`graph.${what}`, `${op} has no ${what} ${other}`, {
    hint: names.length === 0 ? `it has no ${what}s` : `it has ${names.join(', ')}`,
    about: { path: [other] },
  })
}

/** What a build function calls: one method per kind of node. */
export class GraphBuilder {
  /** Ops applied so far, by name. */
  readonly ops = new Map<string, Op>()
  readonly values: GraphValue[] = []
  readonly nodes: GraphNode[] = []
  /** Where each node was asked for. */
  readonly written: Written[] = []
  readonly #made = new WeakSet<GraphTensor>()

  /** The tensor of a value that was put into `values`: to go on with a graph that exists. */
  adopt(value: ValueId): GraphTensor {
    const handle = { value }
    this.#made.add(handle)
    return handle
  }

  /** Adds a value that no node computes: a graph input or a weight. */
  declare(decl: TensorDecl): GraphTensor {
    return this.#value({ dtype: dtypeRef(decl.type), shape: parseShape(decl.dims), layout: decl.layout?.name ?? 'row' })
  }

  /**
   * Applies an op. Its dimensions are bound to the extents of its inputs, and those no input has to `extents`; likewise its type
   * parameters, and those no input has to `results`.
   * @throws usage `graph.*` naming op, tensor and extents
   */
  apply<I extends Tensors, O extends Tensors, A extends Readonly<Record<string, number>>>(
    op: Op<I, O, A>,
    inputs: Handles<I>,
    attrs: { readonly [K in keyof A]?: AttrValue } = {},
    extents: Readonly<Record<string, string>> = {},
    results: Readonly<Record<string, string>> = {},
  ): Handles<O> {
    const dims: Record<string, Shape[number]> = Object.fromEntries(
      Object.entries(extents).map(([dim, extent]) => [dim, concerning({ path: [dim] }, () => parseExtent(extent))]),
    )
    const types: Record<string, DTypeRef> = Object.fromEntries(
      Object.entries(results).map(([param, type]) => [param, dtypeRef(type)]),
    )
    const ids: Record<string, ValueId> = {}
    const given = inputs as Readonly<Record<string, GraphTensor>>
    for (const [name, decl] of Object.entries<TensorDecl>(op.inputs)) {
      const handle = given[name]
      if (handle === undefined) throw usageError('graph.input', `${op.name}: input ${name} is missing`)
      ids[name] = handle.value
      concerning({ path: [name] }, () => this.#bind(op.name, name, decl, this.at(handle), dims, types))
    }
    refuseOthers(op.name, 'input', given, op.inputs)
    this.ops.set(op.name, op as unknown as Op)
    refuseOthers(op.name, 'attribute', attrs, op.attrs)
    const outputs: Record<string, GraphTensor> = {}
    for (const [name, decl] of Object.entries<TensorDecl>(op.outputs)) {
      const shape = parseShape(decl.dims).map((extent) => {
        const bound = extent.dims.length === 1 && extent.factor === 1 ? dims[extent.dims[0] ?? ''] : undefined
        if (bound === undefined)
          throw usageError('graph.output', `${op.name}: no input fixes dimension "${decl.dims}" of output ${name}`)
        return bound
      })
      const ref = dtypeRef(decl.type)
      const dtype = typeof ref === 'string' ? ref : types[ref.param]
      if (dtype === undefined)
        throw usageError('graph.output', `${op.name}: no input fixes the storage type ${decl.type} of output ${name}`)
      outputs[name] = this.#value({ dtype, shape, layout: decl.layout?.name ?? 'row' })
    }
    this.#add(this.apply, {
      kind: 'op',
      name: pending,
      op: op.name,
      types,
      inputs: ids,
      outputs: Object.fromEntries(Object.entries(outputs).map(([name, handle]) => [name, handle.value])),
      attrs: attrs as Readonly<Record<string, AttrValue>>,
    })
    return outputs as Handles<O>
  }

  /**
   * Multiplies two tensors over named axes, as in `matmul('m k, n k -> m n', x, w)`: the names say which axis is which, in any order.
   * Accumulates in float32, or of two int8 tensors in int32. The result is row-major and has the type of the factors, of int8 `i32`, unless
   * something else is asked for.
   * @throws usage `graph.matmul` for subscripts that do not fit, `graph.dtype` for types that are not multiplied or stored so
   */
  matmul(subscripts: string, a: GraphTensor, b: GraphTensor, wanted: LayoutDecl | MatmulResult = {}): GraphTensor {
    const { layout, result }: MatmulResult = 'name' in wanted ? { layout: wanted } : wanted
    const made = concerning({ path: [subscripts] }, () => this.#product(subscripts, a, b, result))
    const out = this.#value({ dtype: made.dtype, shape: made.shape, layout: layout?.name ?? 'row' })
    this.#add(this.matmul, { kind: 'matmul', name: pending, a: a.value, b: b.value, out: out.value, subscripts: made.subscripts })
    return out
  }

  /** Type and shape of a product, and its axes. */
  #product(subscripts: string, a: GraphTensor, b: GraphTensor, result: string | undefined) {
    const match = /^([\w ]+), ([\w ]+) -> ([\w ]+)$/.exec(subscripts)
    const [sa, sb, so] = [match?.[1], match?.[2], match?.[3]].map((part) => part?.split(' ') ?? [])
    if (sa === undefined || sb === undefined || so === undefined || match === null) {
      throw usageError('graph.matmul', `"${subscripts}" is not a matmul`, { hint: "write 'm k, n k -> m n'" })
    }
    const axes: Record<string, Shape[number]> = {}
    for (const [names, handle] of [
      [sa, a],
      [sb, b],
    ] as const) {
      const { shape } = this.at(handle)
      if (names.length !== shape.length) {
        throw usageError(
          'graph.matmul',
          `"${subscripts}": ${names.join(' ')} has ${names.length} axes, the tensor "${printShape(shape)}" has ${shape.length}`,
        )
      }
      names.forEach((axis, i) => {
        const extent = shape[i]
        if (extent === undefined) return
        const known = own(axes, axis)
        if (known !== undefined && !sameExtent(known, extent)) {
          throw usageError(
            'graph.matmul',
            `"${subscripts}": axis ${axis} has extents ${printShape([known])} and ${printShape([extent])}`,
          )
        }
        axes[axis] = extent
      })
    }
    const shape = so.map((axis) => {
      const extent = own(axes, axis)
      if (extent === undefined)
        throw usageError('graph.matmul', `"${subscripts}": axis ${axis} of the result is in neither operand`)
      return extent
    })
    const dtype = resultType(subscripts, this.at(a).dtype, this.at(b).dtype, result)
    return { dtype, shape, subscripts: { a: sa, b: sb, out: so } }
  }

  /** The same elements under another shape. Both must be row-major and of equal size. */
  view(input: GraphTensor, dims: string): GraphTensor {
    const from = this.at(input)
    const shape = concerning({ path: [dims] }, () => parseShape(dims))
    const about = { path: [dims] }
    if (!sameExtent(multiplyExtents(from.shape), multiplyExtents(shape))) {
      throw usageError('graph.view', `"${printShape(from.shape)}" cannot be viewed as "${dims}": the sizes differ`, { about })
    }
    if (from.layout !== 'row')
      throw usageError('graph.view', `a value in layout ${from.layout} cannot be viewed as "${dims}"`, { about })
    const out = this.#value({ dtype: from.dtype, shape, layout: 'row' })
    this.#add(this.view, { kind: 'view', name: pending, input: input.value, out: out.value })
    return out
  }

  /** @throws usage `graph.tensor` for what is no tensor of this graph */
  at(handle: GraphTensor): GraphValue {
    const value = this.#made.has(handle) ? this.values[handle.value] : undefined
    if (value === undefined) {
      const what = handle === undefined ? 'undefined is no tensor' : 'the tensor is of another graph'
      throw usageError('graph.tensor', what, { hint: 'a graph works on its own inputs and weights, and on what its nodes give' })
    }
    return value
  }

  #value(value: GraphValue): GraphTensor {
    this.values.push(value)
    return this.adopt(this.values.length - 1)
  }

  #add(method: (...given: never[]) => unknown, node: GraphNode): void {
    this.nodes.push(node)
    this.written.push(writtenAt(method))
  }

  #bind(
    op: string,
    name: string,
    decl: TensorDecl,
    actual: GraphValue,
    dims: Record<string, Shape[number]>,
    types: Record<string, DTypeRef>,
  ): void {
    const wanted = decl.dims === '' ? [] : decl.dims.split(' ')
    if (wanted.length !== actual.shape.length) {
      throw usageError('graph.rank', `${op}: ${name} is "${decl.dims}", the value given is "${printShape(actual.shape)}"`, {
        hint: 'use view() to give it another shape',
      })
    }
    wanted.forEach((dim, i) => {
      const extent = actual.shape[i]
      if (extent === undefined) return
      const bound = own(dims, dim)
      if (bound !== undefined && !sameExtent(bound, extent)) {
        throw usageError(
          'graph.shape',
          `${op}: dimension ${dim} of ${name} is ${printShape([extent])}, but ${printShape([bound])} elsewhere`,
        )
      }
      dims[dim] = extent
    })
    const layout = decl.layout?.name ?? 'row'
    if (layout !== actual.layout)
      throw usageError('graph.layout', `${op}: ${name} must be in layout ${layout}, the value given is in ${actual.layout}`)
    const ref = dtypeRef(decl.type)
    if (typeof ref === 'string') {
      if (ref !== actual.dtype)
        throw usageError('graph.dtype', `${op}: ${name} must be ${ref}, the value given is ${JSON.stringify(actual.dtype)}`)
      return
    }
    const known = own(types, ref.param)
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(actual.dtype)) {
      throw usageError(
        'graph.dtype',
        `${op}: storage type ${ref.param} of ${name} is ${JSON.stringify(actual.dtype)}, but ${JSON.stringify(known)} elsewhere`,
      )
    }
    types[ref.param] = actual.dtype
  }
}

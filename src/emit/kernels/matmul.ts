/**
 * A matmul kernel as CUDA source: a struct of slots, and the main loop of a device header that takes them. Plain matrices of one type use the loops
 * that are specialised and tuned for tensor cores; int8 in any order uses its own loops. Everything else (other axis orders and types, batches of
 * floats, several matmuls, computed operands) uses the loops of matmul_products.cuh.
 */
import type { Expr } from '../../ir/expr.js'
import type { MatrixOrder } from '../../ir/matrix_order.js'
import { matricesOf } from '../../ir/matrix_order.js'
import { factorParam, factorsOf, type MatmulFactor, type MatmulKernel, sumsIntegers } from '../../ir/product.js'
import { mapPart } from '../../schedule/map.js'
import { onlyPass } from '../../schedule/mapped.js'
import type { TileChoice } from '../../schedule/tiles.js'
import type { TunedTile } from '../../schedule/tuning/tuned_tiles.js'
import { capitalise } from '../launch/conditions.js'
import { offsetText, type Scope, tensorOf } from '../print/expression.js'
import { createNames, type Names, storageText } from '../print/names.js'
import { commonTensors } from '../product/computed_factor.js'
import { epilogueBody } from '../product/epilogue.js'
import { factorsBody } from '../product/factors.js'
import { indexTexts, noting, placed, vec } from '../product/frame.js'
import { partsBody } from '../product/parts.js'
import { declareNames, type TemplateInstance, type TemplateText, type Tiles, templateFile, tileCondition } from './template.js'

/** The file of an instance. */
export function emitMatmul(instance: TemplateInstance, kernel: MatmulKernel, tiles: Tiles): string {
  const { epilogue } = kernel
  const mapped = { ...mapPart({ kernel: epilogue, types: instance.types, dims: {} }), vec }
  const { program } = mapped
  // The loop passes every element, including those outside of an interval.
  if (program.kind !== 'elementwise' || program.interval !== undefined)
    throw new Error(`internal: ${kernel.name} has no elementwise epilogue`)
  const names = declareNames(kernel, createNames(mapped))
  const used = { dims: new Set<string>(), attrs: new Set<string>(), indices: new Set<string>(), tensors: new Set<string>() }
  const scope: Scope = { names: noting(names, used.tensors), used, tensors: epilogue.tensors, fixed: {}, elements: new Map() }
  const body = epilogueBody(
    program,
    kernel,
    { ...scope, names: inFrame(scope, kernel, onlyPass(program).loop.index) },
    instance.types,
  )
  // The launcher has every tensor; those that it names need not become members of the slots.
  const launcher: Scope = { ...scope, names, tensors: kernel.tensors }
  const { include, launch, slots } = mainLoop(instance, kernel, launcher, tiles.tuned)
  const more = slots === undefined ? '' : slots({ ...launcher, names: scope.names })
  return templateFile(
    instance,
    { names, used },
    {
      comment: `${instance.key}: matmul main loop of native/device/${include}, epilogue over chunks of ${vec} columns`,
      include,
      slots: { name: 'Epilogue', comment: commentOf(kernel), body: body + more },
      launch,
      extents: [...kernel.batch, kernel.m, kernel.n].map(names.dim),
    },
    tiles,
  )
}

const commentOf = ({ products, ...kernel }: MatmulKernel): string => {
  const computed = factorsOf({ ...kernel, products }).some(({ prologue }) => prologue !== undefined)
  const what = products.length === 1 ? 'The epilogue of the product.' : 'The epilogue of the products.'
  return computed ? `${what.slice(0, -1)}, and how factors are computed.` : what
}

interface MainLoop extends Pick<TemplateText, 'include' | 'launch'> {
  /** Members of the slots' struct other than those of the epilogue. */
  readonly slots?: (scope: Scope) => string
}

/** The main loop for the types, orders and number of the operands, with its call. */
function mainLoop(instance: TemplateInstance, kernel: MatmulKernel, scope: Scope, tuned: readonly TunedTile[]): MainLoop {
  const plain =
    kernel.products.length === 1 &&
    kernel.partials === undefined &&
    factorsOf(kernel).every(({ prologue }) => prologue === undefined)
  if (plain && isMatrices(kernel)) return matrices(kernel, scope, tuned)
  if (plain && sumsIntegers(kernel)) return int8Matrices(instance, kernel, scope) ?? products(instance, kernel, scope)
  return products(instance, kernel, scope)
}

/** True if a right operand may be read before earlier launches are complete; the program decides at each launch. */
const isConstant = ({ tensors }: MatmulKernel, { tensor }: Pick<MatmulFactor, 'tensor'>): string =>
  `arguments.is_constant(${tensors.findIndex(({ name }) => name === tensor)})`

const constantB = (kernel: MatmulKernel): string => isConstant(kernel, kernel.products[0].b)

/** True if all right operands may be read before earlier launches are complete. Concerns those that are not computed. */
function constantRights(kernel: MatmulKernel): string {
  const rights = kernel.products.map(({ b }) => b)
  if (rights.some(({ prologue }) => prologue !== undefined)) return 'false'
  return [...new Set(rights.map((right) => isConstant(kernel, right)))].join(' && ')
}

/** True if what a main loop may read early is constant: right operands, and tensors of parts that all rows of the left one share. */
function constants(kernel: MatmulKernel, types: TemplateInstance['types']): string {
  const rights = constantRights(kernel)
  return rights === 'false'
    ? rights
    : [rights, ...commonTensors(kernel, types).map((tensor) => isConstant(kernel, { tensor }))].join(' && ')
}

/** True if there is one matmul of two row-major matrices `m k` and `n k` of one type. */
function isMatrices(kernel: MatmulKernel): boolean {
  const { batch, m, n, k, products: sums } = kernel
  const [a, b] = [kernel.a, sums[0].b].map((factor) => factorParam(kernel, factor))
  if (a === undefined || b === undefined || batch.length > 0) return false
  const rowMajor = [a, b].every(({ layout }) => layout.name === 'row')
  return rowMajor && a.dims.join() === [m, k].join() && b.dims.join() === [n, k].join() && sameType(a.dtype, b.dtype)
}

const sameType = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

function matrices(kernel: MatmulKernel, scope: Scope, tuned: readonly TunedTile[]): MainLoop {
  const { names } = scope
  const { a, products: sums } = kernel
  const { b } = sums[0]
  const [m, n, k] = [names.dim(kernel.m), names.dim(kernel.n), names.dim(kernel.k)]
  const type = storageText(tensorOf(a.tensor, scope), names)
  const given = (key: string): string =>
    `launch, error, "${key}", ${m}, ${n}, ${k}, ${names.tensor(a.tensor)}, ${names.tensor(b.tensor)}`
  const measured = tuned.flatMap((tile) => [
    `// ${capitalise(tile.reason)}.`,
    `if (${tileCondition(tile, { length: n, depth: k, rows: m })}) measured = ${choiceText(tile.choice)};`,
  ])
  return {
    include: 'matmul.cuh',
    launch: (slots, { key, choice }) => {
      if (choice !== undefined) {
        return [`return heddle::launch_matmul_as<${type}>(${choiceText(choice)}, ${given(key)}, ${slots}, ${constantB(kernel)});`]
      }
      const call = (last: string) =>
        `return heddle::launch_matmul<${type}>(${given(key)}, ${slots}, ${constantB(kernel)}${last});`
      return measured.length === 0 ? [call('')] : ['heddle::MatmulChoice measured;', ...measured, call(', measured')]
    },
  }
}

/** The main loop of int8 matrices with their own orders; undefined if the order of an operand is not supported. */
function int8Matrices(instance: TemplateInstance, kernel: MatmulKernel, scope: Scope): MainLoop | undefined {
  const { names } = scope
  const { batch, a, products: sums } = kernel
  const { b } = sums[0]
  const [m, n, k] = [names.dim(kernel.m), names.dim(kernel.n), names.dim(kernel.k)]
  const parts = [a, b].flatMap((factor, i) => {
    const tensor = tensorOf(factor.tensor, scope)
    const row = i === 0 ? kernel.m : kernel.n
    if (!batch.every((axis) => tensor.dims.includes(axis))) return []
    const found = matricesOf(tensor, { batch, row, column: kernel.k })
    if (found === undefined) return []
    const at = (indices: readonly Expr[]): string => offsetText(tensor.name, indices, scope)
    const next = batch.length === 0 ? '0' : at(found.nextAt)
    return [{ order: orderTypes[found.order], given: `${names.tensor(tensor.name)}, ${next}, ${at(found.pitchAt)}` }]
  })
  if (parts.length < 2) return undefined
  const count = batch.length === 0 ? '1' : batch.map(names.dim).join(' * ')
  const given = `launch, error, "${instance.key}", ${count}, ${m}, ${n}, ${k}, ${parts.map((part) => part.given).join(', ')}`
  const types = parts.map(({ order }) => `heddle::${order}`).join(', ')
  return {
    include: 'matmul_int8.cuh',
    launch: (slots) => [`return heddle::launch_matmul_int8<${types}>(${given}, ${slots}, ${constantB(kernel)});`],
  }
}

/** The main loop that reads its operands through the slots. */
function products(instance: TemplateInstance, kernel: MatmulKernel, scope: Scope): MainLoop {
  const { names } = scope
  const [m, n, k] = [kernel.m, kernel.n, kernel.k].map(names.dim)
  const count = kernel.batch.length === 0 ? '1' : kernel.batch.map(names.dim).join(' * ')
  return {
    include: 'matmul_products.cuh',
    slots: (inside) => factorsBody(kernel, inside, instance.types) + partsBody(kernel, inside, instance.types),
    launch: (slots, { key }) => [
      `return heddle::launch_matmul_products(launch, error, "${key}", ${count}, ${m}, ${n}, ${k}, ${slots}, ${constants(kernel, instance.types)});`,
    ],
  }
}

/** A tile as the type in native/device/matmul_choice.cuh. */
function choiceText(choice: TileChoice): string {
  if (choice.kind !== 'matmul') throw new Error(`internal: a matmul has no tile ${choice.kind}`)
  return `{heddle::MatmulTile::${choice.tile}, ${choice.split}}`
}

/** Names of the orders in native/device/int8_order.cuh. */
const orderTypes: Readonly<Record<MatrixOrder, string>> = {
  row: 'RowOrder',
  col32: 'Col32Order',
  col4_4r2_8c: 'Col4Order',
  col32_2r_4r4: 'Col32TwoRowOrder',
}

/** Names with which an epilogue is called: its row, which counts through all matrices, and the first of its columns. */
function inFrame({ names, used }: Scope, { epilogue, batch, m }: MatmulKernel, column: string): Names {
  const framed = placed(names, indexTexts(epilogue, [...batch, m], 'row', names), used)
  return { ...framed, first: (name) => (name === column ? 'column' : names.first(name)) }
}

/**
 * A matmul kernel as CUDA text: its epilogue is an elementwise pass over chunks of a row that the main loop hands over in
 * registers. What the pass reads besides the product is loaded by functions of its own, so that the main loop can have these
 * loads under way before it ends, and those of weights even before it begins.
 */
import { usageError } from '../errors.js'
import { dtypeInfo } from '../ir/dtype.js'
import type { Expr } from '../ir/expr.js'
import { resolveDType } from '../ir/instance.js'
import type { TensorParam } from '../ir/kernel.js'
import { proveLayout } from '../ir/layout_proof.js'
import { type MatrixOrder, matricesOf } from '../ir/matrix_order.js'
import type { MatmulKernel } from '../ir/template.js'
import { mapKernel } from '../schedule/map.js'
import { type Pass, type PassRow, statementsOf } from '../schedule/passes.js'
import type { TileChoice } from '../schedule/tiles.js'
import type { TunedTile } from '../schedule/tuned_tiles.js'
import { expressionText, offsetText, type Scope, tensorOf } from './expression.js'
import { bodyWriter, lines, onlyPass } from './kernel.js'
import { capitalise } from './launcher.js'
import { guardedText } from './loads.js'
import { createNames, type Names, scalarText, storageText } from './names.js'
import { writePass } from './pass.js'
import { declareNames, type TemplateInstance, type TemplateText, type Tiles, templateFile, tileCondition } from './template.js'

/** Columns an epilogue takes at a time: what native/device/matmul.cuh hands over. */
const vec = 8

type Loaded = Extract<PassRow, { kind: 'loaded' }>

/** The file of an instance. */
export function emitMatmul(instance: TemplateInstance, kernel: MatmulKernel, tiles: Tiles): string {
  const { epilogue } = kernel
  const mapped = { ...mapKernel({ kernel: epilogue, types: instance.types, dims: {} }), vec }
  const { program } = mapped
  if (program.kind !== 'elementwise') throw new Error(`internal: ${kernel.name} has no elementwise epilogue`)
  const pass = onlyPass(program)
  const names = inFrame(declareNames(kernel, createNames(mapped)), kernel, pass.loop.index)
  const used: Scope['used'] = { dims: new Set(), attrs: new Set(), indices: new Set() }
  const scope: Scope = { names, used, tensors: epilogue.tensors, fixed: {}, elements: new Map() }
  const body = epilogueBody(pass, kernel, scope, instance.types)
  const { include, launch } = mainLoop(instance, kernel, { ...scope, tensors: kernel.tensors }, tiles.tuned)
  return templateFile(
    instance,
    { ...scope, tensors: kernel.tensors },
    {
      comment: `${instance.key}: matmul main loop of native/device/${include}, epilogue over chunks of ${vec} columns`,
      include,
      slots: { name: 'Epilogue', comment: 'What becomes of the product.', body },
      launch,
      extents: [...kernel.batch, kernel.m, kernel.n].map(names.dim),
    },
    tiles,
  )
}

/** The main loop for the operands' types and orders, and its call. */
function mainLoop(
  instance: TemplateInstance,
  kernel: MatmulKernel,
  scope: Scope,
  tuned: readonly TunedTile[],
): Pick<TemplateText, 'include' | 'launch'> {
  const { names } = scope
  const { batch } = kernel
  // Whether b may be read before earlier launches are complete is for the program to say.
  const constantB = `arguments.is_constant(${kernel.tensors.findIndex(({ name }) => name === kernel.b)})`
  const [m, n, k] = [names.dim(kernel.m), names.dim(kernel.n), names.dim(kernel.k)]
  const operands = [kernel.a, kernel.b].map((name) => tensorOf(name, scope))
  const rows = operands.every(({ layout }) => layout.name === 'row')
  if (rows && batch.length === 0) {
    const [a] = operands
    const type = a === undefined ? '' : storageText(a, names)
    const given = (key: string): string =>
      `launch, error, "${key}", ${m}, ${n}, ${k}, ${names.tensor(kernel.a)}, ${names.tensor(kernel.b)}`
    const measured = tuned.flatMap((tile) => [
      `// ${capitalise(tile.reason)}.`,
      `if (${tileCondition(tile, { length: n, depth: k, rows: m })}) measured = ${choiceText(tile.choice)};`,
    ])
    return {
      include: 'matmul.cuh',
      launch: (slots, { key, choice }) => {
        if (choice !== undefined) {
          return [`return heddle::launch_matmul_as<${type}>(${choiceText(choice)}, ${given(key)}, ${slots}, ${constantB});`]
        }
        const call = (last: string) => `return heddle::launch_matmul<${type}>(${given(key)}, ${slots}, ${constantB}${last});`
        return measured.length === 0 ? [call('')] : ['heddle::MatmulChoice measured;', ...measured, call(', measured')]
      },
    }
  }
  const parts = operands.map((tensor, i) => {
    const row = i === 0 ? kernel.m : kernel.n
    const found = matricesOf(tensor, { batch, row, column: kernel.k })
    if (found === undefined) {
      throw usageError(
        'emit.matmul',
        `${instance.key}: the layout ${tensor.layout.name} of ${tensor.name} is none that matmuls load`,
        {
          hint: 'operands are row-major, COL32, COL4_4R2_8C or COL32_2R_4R4, one matrix behind the other',
        },
      )
    }
    const at = (indices: readonly Expr[]): string => offsetText(tensor.name, indices, scope)
    const next = batch.length === 0 ? '0' : at(found.nextAt)
    return { order: orderTypes[found.order], given: `${names.tensor(tensor.name)}, ${next}, ${at(found.pitchAt)}` }
  })
  const matrices = batch.length === 0 ? '1' : batch.map(names.dim).join(' * ')
  const given = `launch, error, "${instance.key}", ${matrices}, ${m}, ${n}, ${k}, ${parts.map((part) => part.given).join(', ')}`
  const types = parts.map(({ order }) => `heddle::${order}`).join(', ')
  return {
    include: 'matmul_int8.cuh',
    launch: (slots) => [`return heddle::launch_matmul_int8<${types}>(${given}, ${slots}, ${constantB});`],
  }
}

/** A tile as native/device/matmul_choice.cuh has it. */
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

/** The names an epilogue is called with: its row, which counts through all matrices, and the first of its columns. */
function inFrame(names: Names, { epilogue }: MatmulKernel, column: string): Names {
  const at = (row: string): string | undefined => {
    const axis = epilogue.rows.findIndex(({ index }) => index === row)
    if (axis < 0) return undefined
    const below = epilogue.rows.slice(axis + 1).map(({ dim }) => names.dim(dim))
    const whole = below.length === 0 ? 'row' : `row / (${below.join(' * ')})`
    return epilogue.rows.length === 1
      ? 'row'
      : axis === 0
        ? `(${whole})`
        : `(${whole} % ${names.dim(epilogue.rows[axis]?.dim ?? '')})`
  }
  return {
    ...names,
    value: (name) => at(name) ?? names.value(name),
    first: (name) => (name === column ? 'column' : names.first(name)),
  }
}

/** The members of the epilogue's struct that are functions. */
function epilogueBody(pass: Pass, { accumulator }: MatmulKernel, scope: Scope, types: TemplateInstance['types']): string {
  const { names, elements } = scope
  const loaded = pass.rows.filter((row) => row.kind === 'loaded')
  const operands = loaded.filter(({ load }) => load.tensor !== accumulator)
  if (operands.length === loaded.length) throw new Error('internal: the epilogue does not read the product')
  for (const row of loaded) {
    elements.set(row.name, row.load.tensor === accumulator ? 'product[i]' : `operands.${names.value(row.name)}[i]`)
  }
  const fixed = operands.filter(({ load, guard }) => guard === undefined && tensorOf(load.tensor, scope).constant === true)
  const inner = bodyWriter(2)
  const rest: Pass = { ...pass, rows: pass.rows.filter((row) => row.kind !== 'loaded') }
  const whole = { covers: () => true, condition: '' }
  writePass(rest, { ...scope, writer: inner, walk: 'single', starts: [], soon: new Map(), whole })

  const writer = bodyWriter()
  const write = (comment: string, head: string, body: readonly string[]): void => {
    writer.writeLine(`/// ${comment}`)
    writer.write(`${head} `).block(() => {
      for (const line of body) writer.writeLine(line)
    })
  }
  const inline = '__device__ __forceinline__'
  // Parameters that nothing reads have no name, so that no compiler complains about them.
  const place = operands.length === 0 ? 'int64_t, int, int' : 'int64_t row, int column, int valid'
  writer.writeLine(`static constexpr int VEC = ${vec};`)
  writer.writeLine('/// What is read besides the product.')
  writer.write('struct Loaded ').inlineBlock(() => {
    for (const row of operands) {
      writer.writeLine(`heddle::Chunk<${storageText(tensorOf(row.load.tensor, scope), names)}, VEC> ${names.value(row.name)};`)
    }
  })
  writer.write(';').newLine()
  write('Whether all chunks are full and aligned.', 'bool whole_chunks() const', [`return ${wholeText(pass, operands, scope)};`])
  const column = fixed.length === 0 ? 'int' : 'int column'
  write(
    'Brings what no launch writes near.',
    `${inline} void prefetch(${column}) const`,
    fixed.map(
      ({ load, loop }) =>
        `heddle::prefetch(${names.tensor(load.tensor)}, ${placeOf(load.tensor, load.indices, loop.index, scope)});`,
    ),
  )
  writer.writeLine('/// Starts reading for columns [column, column + valid) of a row, of which there are at most VEC.')
  writer.writeLine('template <bool WHOLE>')
  writer.write(`${inline} Loaded load(${place}) const `).block(() => {
    writer.writeLine('Loaded operands;')
    for (const row of operands) {
      const { load, loop, name } = row
      const offset = placeOf(load.tensor, load.indices, loop.index, scope)
      const text = `heddle::load_chunk<VEC, WHOLE>(${names.tensor(load.tensor)}, ${offset}, valid)`
      writer.writeLine(`operands.${names.value(name)} = ${guardedText(row, text, scope)};`)
    }
    writer.writeLine('return operands;')
  })
  const given = operands.length === 0 ? 'const Loaded&' : 'const Loaded& operands'
  const sum = scalarText[dtypeInfo[resolveDType(tensorOf(accumulator, scope).dtype, types)].scalar]
  writer.writeLine('/// Computes and stores these columns from the product.')
  writer.writeLine('template <bool WHOLE>')
  writer.write(`${inline} void finish(int64_t row, int column, int valid, const ${sum} (&product)[VEC], ${given}) const `)
  return `${lines(writer).trimEnd()} {\n${lines(inner)}  }\n`
}

/** Offset of the column the epilogue stands at. */
function placeOf(tensor: string, indices: readonly Expr[], index: string, scope: Scope): string {
  const value = (name: string): string => (name === index ? 'column' : scope.names.value(name))
  return offsetText(tensor, indices, { ...scope, names: { ...scope.names, value } })
}

/** The condition that chunks are full and aligned: rows of the product are whole chunks, and so are those of every tensor. */
function wholeText(pass: Pass, operands: readonly Loaded[], scope: Scope): string {
  const { names, tensors } = scope
  const length = pass.loop.length
  const touched = [...operands.map(({ load }) => load.tensor), ...statementsOf(pass, 'loopStore').map(({ tensor }) => tensor)]
  const params = tensors.filter(({ name }) => touched.includes(name))
  const columns = length.kind === 'dim' ? length.name : undefined
  if (!params.every((param) => columns !== undefined && inChunks(param, columns))) return 'false'
  return [
    `${expressionText(length, scope)} % VEC == 0`,
    ...params.map(({ name }) => `${names.tensor(name)}.aligned(0, 16)`),
  ].join(' && ')
}

/** Whether chunks that start at multiples of their size lie whole and aligned in a tensor whose last dimension is a multiple of it. */
function inChunks({ layout, dims }: TensorParam, columns: string): boolean {
  if (dims.at(-1) !== columns) return false
  if (layout.name === 'row') return true
  const { contiguousRun, alignedRun } = proveLayout(layout)
  return (contiguousRun === 'all' || contiguousRun >= vec) && alignedRun >= vec
}

/**
 * Reductions of groups of a matmul's columns as CUDA source: the elements of a chunk are computed in registers for each reduction, and combined by
 * the lanes that hold the group. A reduction may read the results of those before it.
 */
import type CodeBlockWriter from 'code-block-writer'
import { equalExprs } from '../../fuse/space/positions.js'
import { call, dim, index as indexVar } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import type { AttrParam, Kernel, StmtOf, TensorParam } from '../../ir/kernel.js'
import { rowMajor } from '../../ir/layout.js'
import type { MatmulKernel, ReducedRows } from '../../ir/product.js'
import { rewrite } from '../../ir/walk.js'
import { mapPart } from '../../schedule/map.js'
import { type MappedKernel, onlyPass } from '../../schedule/mapped.js'
import type { Pass } from '../../schedule/normalise/passes.js'
import { bodyWriter, lines } from '../kernels/frame.js'
import { writePass } from '../kernels/steps.js'
import type { TemplateInstance } from '../kernels/template.js'
import type { PassContext } from '../print/context.js'
import { expressionText, monoidText, offsetText, type Scope } from '../print/expression.js'
import { type Names, scalarText } from '../print/names.js'
import { noOwn } from '../print/user_monoids.js'
import { inWholeChunks, productText, sumText } from './epilogue.js'
import { indexTexts, placed, vec } from './frame.js'

type Reduce = StmtOf<'reduce'>

/** Columns of a group, in the source. */
const widthText = 'WIDTH'

/** Beginning of the name of an attribute that stands for the result of an earlier reduction of the group. */
const isResult = 'result '

interface Site {
  readonly kernel: MatmulKernel
  readonly reduced: ReducedRows
  readonly scope: Scope
  /** Names of a row, its indices, the group and its width. */
  readonly framed: Names
  readonly types: TemplateInstance['types']
}

/** Members of the slots' struct that reduce and keep groups; the epilogue itself stores nothing. */
export function groupsBody(kernel: MatmulKernel, reduced: ReducedRows, scope: Scope, types: TemplateInstance['types']): string {
  const { names } = scope
  const site = { kernel, reduced, scope, framed: framedNames(kernel, reduced, scope), types }
  const writer = bodyWriter(2)
  const columns = expressionText(dim(kernel.n), scope)
  const lanes = names.fresh('lanes')
  writer.writeLine('if (valid <= 0) return;')
  writer.writeLine(`[[maybe_unused]] constexpr int ${widthText} = ${vec} * LANES;`)
  writer.writeLine(`const heddle::GroupLanes<LANES> ${lanes}(column, ${columns});`)
  for (const stmt of reduced.partials.body) {
    if (stmt.kind === 'reduce') writeReduction(writer, stmt, lanes, site)
    else if (stmt.kind === 'let')
      writer.writeLine(
        `const ${scalarText[stmt.type]} ${names.value(stmt.name)} = ${expressionText(stmt.value, { ...scope, names: site.framed })};`,
      )
    else if (stmt.kind === 'store') {
      const own = { ...scope, tensors: reduced.partials.tensors, names: site.framed }
      const offset = offsetText(stmt.tensor, stmt.indices, own)
      writer.writeLine(`${lanes}.keep(${names.tensor(stmt.tensor)}, ${offset}, ${expressionText(stmt.value, own)});`)
    } else throw new Error(`internal: ${kernel.name} has a ${stmt.kind} for each group`)
  }
  return frameText(kernel, columns, { ...scope, tensors: kernel.epilogue.tensors }, types, lines(writer))
}

function frameText(kernel: MatmulKernel, columns: string, scope: Scope, types: TemplateInstance['types'], body: string): string {
  const count = kernel.products.length === 1 ? '' : `[${kernel.products.length}]`
  const product = `const ${sumText(kernel, types, scope)} (&product)${count}[VEC]`
  const unnamed = product.replace('(&product)', '(&)')
  const writer = bodyWriter()
  const inline = '__device__ __forceinline__'
  writer.writeLine(`static constexpr int VEC = ${vec};`)
  writer.writeLine('static constexpr bool PARTS = true;')
  writer.writeLine('struct Loaded {};')
  writer.writeLine('/// Whether all chunks are full.')
  writer.writeLine(`bool whole_chunks() const { return ${columns} % VEC == 0; }`)
  writer.writeLine(`${inline} void prefetch(int) const {}`)
  writer.writeLine('template <bool WHOLE>')
  writer.writeLine(`${inline} Loaded load(int64_t, int, int) const { return {}; }`)
  writer.writeLine('template <bool WHOLE>')
  writer.writeLine(`${inline} void finish(int64_t, int, int, ${unnamed}, const Loaded&) const {}`)
  writer.writeLine(`${inline} void keep_parts(int64_t row, int column, int valid, ${product}) const {`)
  writer.writeLine('  keep_groups<4>(row, column, valid, product);')
  writer.writeLine('}')
  writer.writeLine('/// Reduces the group of columns that these lanes hold together.')
  writer.writeLine('template <int LANES>')
  writer.write(`${inline} void keep_groups(int64_t row, int column, int valid, ${product}) const {`)
  return `${lines(writer)}${body}  }\n`
}

function framedNames({ batch, m }: MatmulKernel, { partials, width }: ReducedRows, { names, used }: Scope): Names {
  const rows = partials.rows.slice(0, -1)
  const group = partials.rows.at(-1)?.index ?? ''
  const texts = new Map([
    ...indexTexts({ rows }, [...batch, m], 'row', names),
    [group, { text: `(column / ${widthText})`, dims: [] }] as const,
  ])
  return { ...placed(names, texts, used), dim: (name) => (name === width ? widthText : names.dim(name)) }
}

/** Writes the elements of a reduction, and their combination. */
function writeReduction(writer: CodeBlockWriter, stmt: Reduce, lanes: string, site: Site): void {
  const { reduced, scope } = site
  const { names } = scope
  const type = scalarText[stmt.value.type]
  const [values, kept] = [names.fresh(`values_of_${stmt.name}`), names.fresh('kept')]
  writer.writeLine(`${type} ${values}[VEC];`)
  writer.inlineBlock(() => {
    writer.writeLine(`const heddle::KeptChunk<VEC, ${type}> ${kept}{${values}};`)
    writeElements(
      writer,
      mapPart({ kernel: elementsOf(site.kernel, reduced, stmt, kept), types: site.types, dims: {} }),
      kept,
      site,
    )
  })
  writer.newLine()
  const monoid = monoidText(stmt.monoid, stmt.value.type)
  writer.writeLine(
    `const ${scalarText[stmt.type]} ${names.value(stmt.name)} = ${lanes}.template reduce<${monoid}>(valid, ${values});`,
  )
}

/** Writes the pass that computes the elements of a chunk into registers. */
function writeElements(writer: CodeBlockWriter, mapped: MappedKernel, kept: string, { kernel, scope, framed }: Site): void {
  const { program, instance } = mapped
  if (program.kind !== 'elementwise')
    throw new Error(`internal: ${kernel.name} reduces elements that are not computed one by one`)
  const pass = inWholeChunks(onlyPass(program))
  const names: Names = {
    ...framed,
    tensor: (name) => (name === kept ? name : scope.names.tensor(name)),
    first: (name) => (name === pass.loop.index ? 'column' : scope.names.first(name)),
    attr: (name) => (name.startsWith(isResult) ? scope.names.value(name.slice(isResult.length)) : scope.names.attr(name)),
  }
  const context: PassContext = {
    ...scope,
    ...{ tensors: instance.kernel.tensors, elements: new Map(), shared: new Map(), names, writer },
    ...{ walk: 'single', ownName: noOwn, widths: [vec], mayBeEmpty: true },
  }
  const accumulators = kernel.products.map(({ accumulator }) => accumulator)
  const isProduct = (row: Pass['rows'][number]) => row.kind === 'loaded' && accumulators.includes(row.load.tensor)
  for (const row of pass.rows)
    if (row.kind === 'loaded' && isProduct(row)) context.elements.set(row.name, productText(kernel, row.load.tensor, 'i'))
  for (const step of program.steps)
    if (step.kind === 'let')
      writer.writeLine(`const ${scalarText[step.type]} ${names.value(step.name)} = ${expressionText(step.value, context)};`)
  writePass({ ...pass, rows: pass.rows.filter((row) => !isProduct(row)) }, context)
}

/** Program that computes the elements of a reduction: one result over the columns of the matmul. Earlier results are attributes of it. */
function elementsOf({ n }: MatmulKernel, { partials, width }: ReducedRows, stmt: Reduce, kept: string): Kernel {
  const rows = partials.rows.slice(0, -1)
  const place = call('add', call('mul', indexVar(partials.rows.at(-1)?.index ?? ''), dim(width)), indexVar(stmt.index))
  const column = `column ${stmt.index}`
  const results = new Map<string, AttrParam>()
  const value = rewrite(stmt.value, (node): Expr => {
    if (equalExprs(node, place)) return indexVar(column)
    if (node.kind !== 'local' || node.type === 'bool') return node
    const attr = { name: `${isResult}${node.name}`, type: node.type }
    results.set(attr.name, { ...attr, default: 0 })
    return { kind: 'attr', ...attr }
  })
  const axes = [...rows.map((row) => row.dim), n]
  const dtype = stmt.value.type === 'i32' ? 'i32' : 'f32'
  const result: TensorParam = { name: kept, access: 'out', dtype, dims: axes, layout: rowMajor(axes) }
  const at = rows.map((row) => indexVar(row.index))
  return {
    ...partials,
    rows,
    attrs: [...partials.attrs, ...results.values()],
    tensors: [...partials.tensors.filter(({ access }) => access === 'in'), result],
    body: [{ kind: 'storeRow', tensor: kept, rows: at, length: dim(n), index: column, value }],
  }
}

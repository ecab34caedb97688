/** Launcher of an instance as C++ source: reads and checks the arguments, selects the variant, launches it. */
import type CodeBlockWriter from 'code-block-writer'
import type { Expr } from '../../ir/expr.js'
import { getOwn } from '../../ir/get_own.js'
import { givenDims } from '../../ir/kernel.js'
import { extentOf, isMerged } from '../../ir/row_axis.js'
import type { Walk } from '../../loop/ir.js'
import { launchedVersion, walksOf } from '../../loop/kernel_loops.js'
import { sizeOf } from '../../schedule/access/access.js'
import { multiplesOf } from '../../schedule/access/multiples.js'
import { oneRun } from '../../schedule/access/one_run.js'
import {
  chunksApart,
  extentIn,
  isProduct,
  type MappedKernel,
  onlyPass,
  type RowProgram,
  stepsOf,
  type Variant,
} from '../../schedule/mapped.js'
import { statementsOf } from '../../schedule/normalise/passes.js'
import { keptRows } from '../../schedule/rows/resident_rows.js'
import { bodyWriter, functionName, lines } from '../kernels/frame.js'
import type { Parameters } from '../kernels/kernel.js'
import { wholeText } from '../print/apart.js'
import { expressionText, type Scope, wideText } from '../print/expression.js'
import { argumentText, createNames, scalarText, storageText } from '../print/names.js'
import { capitalise, conditionText, extentText, productText, toCount } from './conditions.js'
import { writeColumnLaunch, writeTotalsLaunch } from './divided.js'
import { writeElements, writeGenericElements, writeRun, writeTiles } from './elements.js'
import { workArguments, writeSlots } from './slots.js'

/**
 * C++ type of a variant's team (native/device/team.cuh, row_block.cuh). Rows whose scalars a team searches for have the block of these searches, whose shared
 * memory their reductions use, too.
 */
function teamText({ team, chunks }: Variant, mapped: MappedKernel): string {
  const apart = chunksApart(team, chunks)
  const searches = stepsOf(mapped).some(({ kind }) => kind === 'team')
  switch (team.kind) {
    case 'thread':
      return `heddle::ThreadTeam<${team.rowsPerBlock}>`
    case 'warp':
      return `heddle::WarpTeam<${team.lanes}, ${team.rowsPerBlock}>`
    case 'block':
      if (searches) return `heddle::BlockTeam<${team.lanes}>`
      return `heddle::RowBlock<${[team.lanes, ...(apart === 1 ? [] : [apart])].join(', ')}>`
  }
}

/** Body of the launcher, for kernels with the given parameters. */
export function launcherBody(mapped: MappedKernel, parameters: Parameters): string {
  const { kernel, dims: fixed } = mapped.instance
  const names = createNames(mapped)
  const used: Scope['used'] = {
    dims: new Set(parameters.dims),
    attrs: new Set(parameters.attrs.map((attr) => attr.name)),
    indices: new Set(),
  }
  const scope: Scope = { names, used, tensors: kernel.tensors, fixed, elements: new Map() }
  const actions = bodyWriter()
  kernel.tensors.forEach((tensor, i) => {
    if (!parameters.tensors.includes(tensor)) return
    const elements = wideText(sizeOf(tensor, fixed), scope, toCount)
    const handle = `arguments.${argumentText(tensor)}<${storageText(tensor, names)}>(${i}, "${tensor.name}", ${elements})`
    actions.writeLine(`const auto ${names.tensor(tensor.name)} = ${handle};`)
    const before = kernel.tensors.findIndex(({ name }) => name === tensor.updates)
    if (before >= 0) {
      const tensors = `${i}, "${tensor.name}", ${before}, "${tensor.updates}"`
      actions.writeLine(`heddle::check_update(arguments, launch, error, "${mapped.key}", ${tensors});`)
    }
  })
  writeLaunch(mapped, parameters, scope, actions)

  // Accesses rely on facts, so a launcher checks them for every caller.
  const multipleLines = [...multiplesOf(kernel)].flatMap(([dim, divisor]) => {
    if (!givenDims(kernel).includes(dim) || getOwn(fixed, dim) !== undefined) return []
    used.dims.add(dim)
    return [`arguments.at_most(${names.dim(dim)} % ${divisor}, 0, "elements of ${dim} beyond a multiple of ${divisor}");`]
  })

  // Written last, because the source above determines the values that are read.
  const values = bodyWriter()
  const computed = Object.entries(kernel.computed ?? {}).flatMap(([dim, extent]) =>
    used.dims.has(dim) && getOwn(fixed, dim) === undefined
      ? [`const int64_t ${names.dim(dim)} = ${wideText(extent, scope)};`]
      : [],
  )
  // Groups that are rows have been found to be short enough.
  const limits =
    mapped.program.kind !== 'columns'
      ? []
      : Object.keys(kernel.computed ?? {}).flatMap((dim) =>
          used.dims.has(dim) && getOwn(fixed, dim) === undefined
            ? [`arguments.at_most(${names.dim(dim)}, INT32_MAX, "places of merged axes");`]
            : [],
        )
  const given = givenDims(kernel)
  const counts = [kernel.tensors, given, kernel.attrs].map((list) => list.length).join(', ')
  values.writeLine(`heddle::Arguments arguments(launch, error, {"${mapped.key}", ${counts}});`)
  given.forEach((dim, i) => {
    const known = getOwn(fixed, dim)
    const declare = used.dims.has(dim) ? `const int64_t ${names.dim(dim)} = ` : ''
    values.writeLine(
      known === undefined ? `${declare}arguments.dim(${i}, "${dim}");` : `arguments.fixed_dim(${i}, "${dim}", ${known});`,
    )
  })
  for (const line of [...computed, ...limits, ...multipleLines]) values.writeLine(line)
  kernel.attrs.forEach(({ name, type }, i) => {
    const declare = used.attrs.has(name) ? `const ${scalarText[type]} ${names.attr(name)} = ` : ''
    values.writeLine(`${declare}arguments.${type}_attr(${i}, "${name}");`)
  })
  return lines(values) + lines(actions)
}

function writeLaunch(mapped: MappedKernel, parameters: Parameters, scope: Scope, writer: CodeBlockWriter): void {
  const { program, key } = mapped
  const { names } = scope
  const argumentsWith = (extent: (dim: string) => string): string =>
    [
      ...parameters.dims.map((dim) => `static_cast<int>(${extent(dim)})`),
      ...parameters.attrs.map((attr) => names.attr(attr.name)),
      ...parameters.tensors.map((tensor) => names.tensor(tensor.name)),
    ].join(', ')
  const args = argumentsWith((dim) => names.dim(dim))
  const extents = mapped.axes.map((axis) => extentText(axis, mapped, scope))
  for (const extent of mergedExtents(mapped))
    writer.writeLine(`arguments.at_most((${wideText(extent, scope, toCount)}).value, INT32_MAX, "places of merged axes");`)
  if (program.kind === 'elementwise' && program.staging !== undefined) {
    writeTiles(mapped, program, program.staging, args, scope, writer)
    return
  }
  if (program.kind === 'elementwise' && mapped.generic === true) {
    writeGenericElements(mapped, program, args, extents, scope, writer)
    return
  }
  const run = oneRun(mapped)
  if (program.kind === 'elementwise' && run !== undefined) {
    writeRun(mapped, program, run, { args: argumentsWith, extents }, scope, writer)
    return
  }
  if (program.kind === 'elementwise') {
    const { threads } = program
    const chunks = `heddle::chunks_of<VEC>(static_cast<int>(${expressionText(onlyPass(program).loop.length, scope)}))`
    const kernel = functionName(mapped, 'single')
    writeElements(mapped, { extents, chunks, name: `"${key}"`, threads: `${threads}`, kernel, args }, scope, writer)
    return
  }
  if (program.kind === 'columns') {
    writeColumnLaunch(mapped, program, args, extents, scope, writer)
    return
  }
  if (program.kind === 'totals') {
    writeTotalsLaunch(mapped, program, args, extents, scope, writer)
    return
  }
  writeRowLaunch(mapped, program, args, extents, scope, writer)
}

/** Extents of merged axes, which may exceed the range of an index. */
function mergedExtents(mapped: MappedKernel): readonly Expr[] {
  const loops = mapped.program.kind === 'elementwise' ? [onlyPass(mapped.program).loop.length] : []
  const axes = mapped.axes.filter(isMerged).map((axis) => extentOf(axis, extentIn(mapped)))
  return [...axes, ...loops.filter(isProduct)]
}

/** Launches a team per row, by the variant for their number and length. */
function writeRowLaunch(
  mapped: MappedKernel,
  program: RowProgram,
  args: string,
  extents: readonly string[],
  scope: Scope,
  writer: CodeBlockWriter,
): void {
  const sorts = program.kept.flatMap((step) => (step.kind === 'pass' ? statementsOf(step.pass, 'argsort') : []))
  const bounds = sorts.map(({ most, loop }) => `${expressionText(loop.length, scope)}, ${most}`)
  for (const bound of new Set(bounds)) writer.writeLine(`arguments.at_most(${bound}, "elements of a row that is sorted");`)
  for (const step of program.kept)
    if (step.kind === 'foldState')
      writer.writeLine(
        `arguments.at_most(${expressionText(step.width, scope)}, ${step.most}, "elements of a row that is carried");`,
      )
  for (const { length, most, what } of keptRows(program.kept))
    writer.writeLine(`arguments.at_most(${expressionText(length, scope)}, ${most}, "${what}");`)
  const counts = writeSlots(mapped, extents, scope, writer)
  writer.writeLine(`const int64_t rows = arguments.work(${productText(counts)}, 1);`)
  writer.writeLine('if (arguments.status != HEDDLE_OK || rows == 0) return arguments.status;')
  writer.write('const auto run = [&](auto team, const char* name, auto kernel) ').inlineBlock(() => {
    const given = `${workArguments(mapped, 'rows')}, ${args}`
    writer.writeLine(`return heddle::launch_rows(team, launch, error, name, rows, kernel, ${given});`)
  })
  writer.write(';').newLine()
  writeChoice(mapped, program, scope, writer)
}

/** Declares which version of rows runs, if the launcher chooses it. @returns the variable, by walk */
function writeVersions(mapped: MappedKernel, scope: Scope, writer: CodeBlockWriter): ReadonlyMap<Walk, string> {
  const known = new Map<string, string>()
  return new Map(
    walksOf(mapped).flatMap(([walk]) => {
      const version = launchedVersion(mapped, walk)
      if (version === undefined) return []
      const test = wholeText(version, scope)
      const name = known.get(test) ?? (known.size === 0 ? 'whole' : scope.names.fresh('whole'))
      if (!known.has(test)) writer.writeLine(`const bool ${name} = ${test};`)
      known.set(test, name)
      return [[walk, name] as const]
    }),
  )
}

function writeChoice(mapped: MappedKernel, program: RowProgram, scope: Scope, writer: CodeBlockWriter): void {
  const lengths = program.lengths?.map((e) => `int64_t{${expressionText(e, scope)}}`) ?? []
  if (program.variants.some(({ limit }) => (limit.length ?? limit.tuned) !== undefined)) {
    writer.writeLine(`const int64_t length = heddle::longest(${lengths.length === 0 ? '0' : lengths.join(', ')});`)
  }
  const versions = writeVersions(mapped, scope, writer)
  for (const variant of program.variants) {
    writer.writeLine(`// ${capitalise(variant.reason)}.`)
    const given = [
      teamText(variant, mapped),
      ...(variant.chunks === undefined ? [] : [variant.chunks]),
      ...(mapped.generic === true ? [variant.vec ?? mapped.vec] : []),
    ]
    const walk = variant.chunks === undefined ? 'reread' : 'kept'
    const of = (...last: readonly string[]): string => `${functionName(mapped, walk)}<${[...given, ...last].join(', ')}>`
    const whole = versions.get(walk)
    const kernel = whole === undefined ? of() : `${whole} ? ${of('true')} : ${of('false')}`
    writer.writeLine(
      `${conditionText(variant.limit)}return run(${teamText(variant, mapped)}{}, "${mapped.key}_${variant.name}", ${kernel});`,
    )
  }
}

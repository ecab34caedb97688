/**
 * Placement of the loads of rows: with the pass that needs them, all before the pass, or before the first pass. Prefetching a row costs registers
 * and hides the latency of DRAM after a reduction.
 */
import { mark } from '../ir/trace.js'
import type { Pass, PassRow } from '../schedule/passes.js'
import { contains } from '../schedule/rewrite.js'
import type { PassContext } from './context.js'
import { expressionText, operandText, type Scope, startOf, tensorOf } from './expression.js'
import { storageText } from './names.js'
import { type ChunkAccess, chunkOffset, declareStart } from './offsets.js'
import { meets } from './stages.js'

export type LoadedRow = PassRow & { readonly kind: 'loaded' }

const loadAccess = ({ load, run, loop }: LoadedRow): ChunkAccess => ({
  tensor: load.tensor,
  indices: load.indices,
  run,
  index: loop.index,
})

/** Template arguments of a chunk access: its width, and whether it needs no checks. */
export const widthText = (access: ChunkAccess, { walk, whole }: PassContext): string =>
  walk === 'single' && whole === undefined ? 'VEC' : `VEC, ${whole?.covers(access) === true ? 'WHOLE' : 'false'}`

/** True if another row of the kernel reads other elements. */
function differs({ load, loop }: LoadedRow, scope: PassContext): boolean {
  const start = startOf(load.tensor, load.indices, loop.index, scope)
  return start !== undefined && contains(start, (e) => ['index', 'local', 'load'].includes(e.kind))
}

/**
 * Rows to load before the pass. Those that differ from row to row come from DRAM: the team issues all their loads before it needs the first. Rows
 * that are the same for every row (a weight) are cached, and would only occupy registers.
 */
export function earlyRows(pass: Pass, context: PassContext): ReadonlySet<PassRow> {
  if (context.walk !== 'kept') return new Set()
  return new Set(pass.rows.filter((row) => row.kind === 'loaded' && (row.keep || differs(row, context))))
}

/** Loads a lane's chunks of a row into an array. */
export function rowLines(
  row: LoadedRow,
  length: string,
  { name, chunks }: { readonly name: string; readonly chunks: string },
  context: PassContext,
): string[] {
  const { names, starts } = context
  const { tensor } = row.load
  const access = loadAccess(row)
  const element = names.value(row.loop.index)
  const place = `[&](int ${element}) -> int64_t { return ${chunkOffset(access, element, starts, context)}; }`
  const load = `heddle::load_row<${widthText(access, context)}>(team, ${names.tensor(tensor)}, ${length}, ${name}, ${place});${mark(row.load)}`
  const chunk = `heddle::Chunk<${storageText(tensorOf(tensor, context), names)}, VEC> ${name}[${chunks}]${mark(row.load)}`
  return row.guard === undefined ? [`${chunk};`, load] : [`${chunk} = {};`, `if (${operandText(row.guard, context)}) ${load}`]
}

/** Source of a chunk load that reads nothing if a guard does not hold. */
export function guardedText({ load, guard }: Pick<LoadedRow, 'load' | 'guard'>, text: string, scope: Scope): string {
  if (guard === undefined) return text
  return `${expressionText(guard, scope)} ? ${text} : heddle::Chunk<${storageText(tensorOf(load.tensor, scope), scope.names)}, VEC>{}`
}

/**
 * Prefetches for later passes, if a lane has one chunk: rows that are the same for every row, which would otherwise be loaded only after a
 * reduction. Their starts and lengths are known before the first pass.
 */
export function soonLines(passes: readonly Pass[], ready: ReadonlySet<string>, context: PassContext): string[] {
  if (context.walk !== 'kept') return []
  return passes.slice(1).flatMap((pass) => {
    const known = !contains(pass.loop.length, (e) => e.kind === 'local' && !ready.has(e.name))
    if (!known || meets(pass)) return []
    return pass.rows.flatMap((row) => {
      if (row.kind !== 'loaded' || row.keep || differs(row, context)) return []
      const name = context.names.fresh(`soon_${context.names.value(row.name)}`)
      context.soon.set(row, name)
      declareStart(loadAccess(row), context.starts, context, context.writer)
      const [declare = '', load = ''] = rowLines(row, operandText(pass.loop.length, context), { name, chunks: '1' }, context)
      return [declare, `if constexpr (CHUNKS == 1) ${load}`]
    })
  })
}

/** The chunk of a row that is loaded where it is needed, as seen by the pass that needs it. */
export function chunkLine(row: LoadedRow, first: string, context: PassContext): string {
  const access = loadAccess(row)
  const offset = chunkOffset(access, first, context.starts, context)
  const text = `heddle::load_chunk<${widthText(access, context)}>(${context.names.tensor(row.load.tensor)}, ${offset}, valid)`
  const load = guardedText(row, text, context)
  const soon = context.soon.get(row)
  return `const auto ${context.names.value(row.name)} = ${soon === undefined ? load : `CHUNKS == 1 ? ${soon}[0] : ${load}`};${mark(row.load)}`
}

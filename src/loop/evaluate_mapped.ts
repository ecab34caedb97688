/**
 * Evaluation of a mapped kernel by its loops, in each way in which threads walk over its rows: of all its launches, and of the one in place of them.
 * `heddle check` and tests compare the results with those of the body.
 */
import { emptyEnv, evaluateExpr, type HostTensor } from '../ir/evaluate.js'
import type { Numbers } from '../ir/evaluate_expr.js'
import type { Kernel } from '../ir/kernel.js'
import { type MappedKernel, onlyPass, suitsSizes } from '../schedule/mapped.js'
import { isHostExpr } from '../schedule/normalise/host_expr.js'
import { type Case, evaluateByLoops } from './evaluate_kernel.js'
import type { Team } from './evaluate_lane.js'
import { eachLoop, type Loop, type Walk } from './ir.js'
import { frameOf, walksOf } from './kernel_loops.js'
import { loopPasses, loopsOf } from './pipeline.js'

/** Outputs by one way of walking, after one pass. */
export interface Evaluation {
  readonly walk: Walk
  readonly pass: string
  readonly outputs: Readonly<Record<string, HostTensor>>
}

/** Team of an evaluation; the number of chunks in registers follows from the sizes. */
export type SmallTeam = Omit<Team, 'chunks'>

/**
 * Results of the last launch of a kernel after its last pass, in each way of walking. Empty if it has constructs in loops of their own, which are
 * not evaluated.
 * @throws internal errors of loops that are wrong
 */
export function evaluateMapped(mapped: MappedKernel, given: Case, passes: typeof loopPasses = loopPasses): readonly Evaluation[] {
  const { split } = mapped
  const tensors = { ...given.tensors }
  const early: Record<string, HostTensor> = {}
  for (const launch of split?.before ?? []) {
    const [made] = lastOf(launch, { ...given, tensors }, passes)
    if (made === undefined) return []
    Object.assign(tensors, made.outputs)
    for (const [name, tensor] of Object.entries(made.outputs))
      if (split?.whole.kernel.tensors.some((each) => each.name === name)) early[name] = tensor
  }
  const columns = split?.columns === undefined ? [] : ofColumns(split.columns.launches, given, passes)
  const inRows = split?.inRows === undefined ? [] : lastOf(split.inRows.mapped, given, passes)
  const inRow = split?.inRow === undefined ? [] : lastOf(split.inRow.mapped, given, passes)
  // Spans of rows that are no whole chunks are right too, though the launcher does not take them.
  const suited = (split?.fixed ?? []).filter(({ mapped: each, dims }) => suitsSizes({ mapped: each, dims }, given.dims))
  const fixed = suited.flatMap((each) => lastOf(each.mapped, given, passes))
  const last = lastOf(mapped, { ...given, tensors }, passes).map((made) => ({ ...made, outputs: { ...early, ...made.outputs } }))
  return [...last, ...inRows, ...inRow, ...fixed, ...columns]
}

/** Results of the last of several launches in order. */
function ofColumns(launches: readonly MappedKernel[], given: Case, passes: typeof loopPasses): readonly Evaluation[] {
  const tensors = { ...given.tensors }
  for (const launch of launches.slice(0, -1)) Object.assign(tensors, lastOf(launch, { ...given, tensors }, passes)[0]?.outputs)
  return launches.slice(-1).flatMap((last) => lastOf(last, { ...given, tensors }, passes))
}

/** Results of one launch after its last pass. */
function lastOf(mapped: MappedKernel, given: Case, passes: typeof loopPasses): readonly Evaluation[] {
  const found = new Map<Walk, Evaluation>()
  for (const each of evaluatePasses(mapped, given, teamOf(mapped, given), passes, 'last')) found.set(each.walk, each)
  return [...found.values()]
}

/** A team that has several rounds of chunks on small sizes, and tiles of several chunks. */
function teamOf({ instance, program, vec }: MappedKernel, given: Case): SmallTeam {
  const team = { lanes: 4, slots: 3, vec }
  if (program.kind !== 'elementwise' || program.staging === undefined) return team
  const dims = dimsOf(instance.kernel, given.dims)
  const width = Number(evaluateExpr(onlyPass(program).loop.length, emptyEnv({ ...dims, ...instance.dims })))
  // Tiles of runs have all columns.
  return { ...team, tile: { rows: 16, columns: 16, isRun: width <= 16 } }
}

/** Results of one launch after each pass, or after the last. @param team with `slots` for column programs alone */
export function evaluatePasses(
  mapped: MappedKernel,
  { tensors, dims: given, attrs }: Case,
  { slots = 1, ...team }: SmallTeam,
  passes: typeof loopPasses,
  which: 'each' | 'last',
): readonly Evaluation[] {
  const { kernel } = mapped.instance
  const dims = dimsOf(kernel, given)
  const shaped = Object.fromEntries(
    kernel.tensors.flatMap(({ name, dims: of }) => {
      const tensor = tensors[name]
      return tensor === undefined ? [] : [[name, { data: tensor.data, shape: of.map((dim) => dims[dim] ?? Number.NaN) }]]
    }),
  )
  const most = Math.max(1, ...Object.values(shaped).map(({ data }) => data.length), ...Object.values(dims))
  return walksOf(mapped).flatMap(([walk, program]) => {
    const seen: { readonly pass: string; readonly loops: readonly Loop[] }[] = []
    loopsOf(program, { ...frameOf(mapped, walk), widths: [team.vec] }, passes, (pass, loops) => void seen.push({ pass, loops }))
    const longest = longestLoop(seen[0]?.loops ?? [], { dims, attrs: attrs ?? {}, most })
    const chunks = Math.max(1, Math.ceil(longest / (team.lanes * team.vec)))
    const all = { ...team, chunks, ...(walk === 'columns' ? { slots } : {}) }
    return (which === 'last' ? seen.slice(-1) : seen).flatMap(({ pass, loops }) =>
      hasCalls(loops)
        ? []
        : [{ walk, pass, outputs: evaluateByLoops(mapped, loops, { tensors: shaped, dims, ...(attrs && { attrs }) }, all) }],
    )
  })
}

/** Dimensions of a kernel with those that are computed from others. */
function dimsOf({ computed = {} }: Kernel, dims: Numbers): Numbers {
  const all: Record<string, number> = { ...dims }
  for (const [name, extent] of Object.entries(computed)) all[name] = Number(evaluateExpr(extent, emptyEnv(all)))
  return all
}

/** Longest row that lanes share; `most` if only the row knows its length. */
function longestLoop(
  loops: readonly Loop[],
  { dims, attrs, most }: { readonly dims: Numbers; readonly attrs: Numbers; readonly most: number },
): number {
  let longest = 1
  eachLoop(loops, (loop) => {
    if (loop.kind !== 'for' || loop.owner !== 'lane') return
    const length = isHostExpr(loop.length) ? Number(evaluateExpr(loop.length, { ...emptyEnv(dims), attrs })) : most
    longest = Math.max(longest, length)
  })
  return longest
}

function hasCalls(loops: readonly Loop[]): boolean {
  let found = false
  eachLoop(loops, (loop) => {
    found ||= loop.kind === 'call' && loop.stmt.kind !== 'team'
  })
  return found
}

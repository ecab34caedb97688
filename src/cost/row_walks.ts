/** Walks of a row program, by the variant that the launcher takes for the number of rows and their length. */
import { teamOf } from '../ir/constructs/team_call.js'
import { accepts, type MappedKernel, type RowProgram, type Team, type Variant } from '../schedule/mapped.js'
import { rowForm } from './chunk_forms.js'
import { teamInstructions } from './combining.js'
import { countedLoop, iterations } from './extents.js'
import { passWalk, type RowStep, scalarWalk } from './pass_walks.js'
import type { Sizes } from './sizes.js'
import { blocksOf, type Counted, loopInstructions, product, type Walk, type Walks } from './walk.js'

export function rowWalks(mapped: MappedKernel, program: RowProgram, outer: readonly Counted[], sizes: Sizes): Walks {
  const rows = product(outer)
  const length = Math.max(0, ...(program.lengths ?? []).map((each) => iterations(each, sizes)))
  const { team, chunks, vec = mapped.vec } = variantFor(program, rows, length)
  const isKept = chunks !== undefined
  const lanes = lanesOf(team)
  const reversed = [...outer].reverse()
  // A thread with a row of its own moves it alone, whatever its length.
  const form = team.kind === 'thread' ? 'packs' : rowForm(mapped, isKept ? 'kept' : 'reread', length, vec)
  const walks = (isKept ? program.kept : program.reread).flatMap((step): readonly Walk[] => {
    if (step.kind !== 'pass') return rowSteps(step, outer, lanes, sizes)
    const loop = countedLoop(step.pass.loop, sizes)
    const [order, serial] = team.kind === 'thread' ? [reversed, [loop.index]] : [[loop, ...reversed], []]
    return [passWalk(step.pass, { outer, loop, order, vec, serial, perChunk: loopInstructions, form })]
  })
  const reductions = walks.filter(({ isAwaited }) => isAwaited).length
  const joining: Walk = {
    axes: new Set(),
    perChunk: 0,
    loops: [...outer, { index: '(lane)', count: lanes }],
    order: [],
    vec: 1,
    serial: [],
    reads: [],
    values: [],
    stores: [],
    extra: lanes > 1 ? teamInstructions * reductions : 0,
    isAwaited: false,
  }
  const keeps = program.kept.some((step) => step.kind === 'pass' && step.pass.rows.some(({ keep }) => keep))
  const blocks = blocksOf(rows, team.kind === 'block' ? 1 : team.rowsPerBlock)
  return {
    walks: [...walks, joining],
    blocks,
    threads: threadsOf(team),
    unrolled: chunks ?? 2,
    isAgain: !isKept,
    rereads: !isKept && keeps,
  }
}

/** The first variant without measured conditions that accepts the rows. */
function variantFor({ variants }: RowProgram, rows: number, length: number): Variant {
  const found = variants.find(({ limit }) => accepts(limit, rows, length)) ?? variants.at(-1)
  if (found === undefined) throw new Error('internal: a row program without variants')
  return found
}

/** Statements of a row, and the loops of steps that walk over it for themselves. */
function rowSteps(step: RowStep, outer: readonly Counted[], lanes: number, sizes: Sizes): readonly Walk[] {
  const axes = new Set(outer.map(({ index }) => index))
  const order = [...outer].reverse()
  if (step.kind === 'team') {
    const { work } = teamOf(step)
    const loop = countedLoop(step.loop, sizes)
    const walk = {
      axes,
      perChunk: loopInstructions,
      loops: [...outer, loop],
      order: lanes === 1 ? order : [loop, ...order],
      vec: 1,
      serial: lanes === 1 ? [loop.index] : [],
      reads: [],
      stores: [],
      extra: work.instructions,
    }
    return Array.from({ length: work.walks }, (): Walk => ({ ...walk, values: Object.values(step.elements), isAwaited: true }))
  }
  if (step.kind === 'foldState') {
    const steps: Counted = { index: step.index, count: iterations(step.length, sizes) }
    const width: Counted = { index: step.column, count: iterations(step.width, sizes) }
    const walk = {
      axes,
      perChunk: loopInstructions,
      loops: [...outer, steps, width],
      order: [width, ...order],
      vec: 1,
      serial: [steps.index],
      reads: [],
    }
    const stores = step.stores.map(({ tensor, indices }) => ({ tensor, indices, vec: 1 }))
    return [{ ...walk, values: [...step.starts, ...step.values], stores, extra: 0, isAwaited: true }]
  }
  return step.kind === 'meet' ? [] : [scalarWalk(step, outer, order, lanes)]
}

const lanesOf = (team: Team): number => (team.kind === 'thread' ? 1 : team.lanes)

const threadsOf = (team: Team): number =>
  team.kind === 'block' ? team.lanes : team.kind === 'warp' ? team.lanes * team.rowsPerBlock : team.rowsPerBlock

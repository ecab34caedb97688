/**
 * Notes on parts of a kernel that a schedule computes slowly, with their cost. They report uncoalesced reads, one block for the whole kernel, and a
 * block for each row that may be short. They also report a row value that is recomputed wherever it is read, a reduction that every row repeats,
 * and a sum that is a matmul. Notes do not change the schedule; `heddle gen` and `heddle inspect` print them at the line of the op.
 */
import type { Expr } from '../../ir/expr.js'
import type { Instance } from '../../ir/instance.js'
import { slowIntrinsics } from '../../ir/intrinsics.js'
import type { StmtOf } from '../../ir/kernel.js'
import { printExpr } from '../../ir/print.js'
import { type FixedSizes, isInGroups, type MappedKernel, scheduledLaunch } from '../mapped.js'
import { isHostExpr } from '../normalise/host_expr.js'
import type { Loop } from '../normalise/normal.js'
import type { Step } from '../normalise/passes.js'
import { contains } from '../normalise/rewrite.js'
import { isShared, readsElsewhere } from '../rows/shared_rows.js'
import { matmulMessages } from './matmuls.js'
import { repeatedMessages } from './repeated.js'
import { stridedMessages } from './strided.js'

export interface Note {
  readonly kind: 'strided' | 'one block' | 'block a row' | 'recomputed' | 'matmul'
  /** The finding, its cost, and the code to write instead. */
  readonly message: string
}

/** Multiprocessors of an H200. A block occupies one of them. */
const multiprocessors = 132
/** Elements that one block computes in about the time of a launch. */
const fewElements = 8192

/**
 * Notes of one instance; those of earlier launches come first. Rows that several launches compute where they are long have the notes of the one launch
 * of shorter ones. A grouped matmul has none: its main loop takes the place of the program.
 */
export function notesOf(mapped: MappedKernel): readonly Note[] {
  if (mapped.grouped !== undefined) return []
  const rows = scheduledLaunch(mapped)
  if (rows !== mapped) return notesOfLaunch(rows).filter(({ kind }) => kind !== 'one block')
  return [...(mapped.split?.before ?? []), mapped].flatMap(notesOfLaunch)
}

function notesOfLaunch(mapped: MappedKernel): readonly Note[] {
  return [
    ...stridedMessages(usual(mapped)).map((message): Note => ({ kind: 'strided', message })),
    ...oneBlockNotes(mapped),
    ...blockNotes(mapped),
    ...recomputedNotes(mapped.instance),
    ...repeatedMessages(mapped).map((message): Note => ({ kind: 'recomputed', message })),
    ...matmulMessages(mapped.instance.kernel).map((message): Note => ({ kind: 'matmul', message })),
  ]
}

/** The launch for the extents that facts state. */
function usual(mapped: MappedKernel): MappedKernel {
  const stated = mapped.instance.kernel.facts?.dims ?? {}
  const isStated = ({ dims }: FixedSizes): boolean => Object.entries(dims).every(([dim, extent]) => stated[dim]?.equal === extent)
  return mapped.split?.fixed?.find((each) => isInGroups(each.mapped) && isStated(each))?.mapped ?? mapped
}

/** The loop of a pass, or of a team scalar. */
const loopOf = (step: Step): readonly Loop[] =>
  step.kind === 'pass' ? [step.pass.loop] : step.kind === 'team' ? [step.loop] : []

/** Notes on kernels that one block computes. */
function oneBlockNotes({ program, axes }: MappedKernel): Note[] {
  if (program.kind !== 'rows' || axes.length > 0) return []
  const loops = program.kept.flatMap(loopOf)
  const long = loops.find(({ length }) => length.kind !== 'const' || Number(length.value) > fewElements)
  if (long === undefined) return []
  const message =
    `there is one row, of ${printExpr(long.length)} elements, and one block computes it: one of the ${multiprocessors} multiprocessors ` +
    'of an H200 is busy; split the op: one op that returns only scalars of reductions that depend on no other reduction, which are divided over blocks, and one op that reads these scalars'
  return [{ kind: 'one block', message }]
}

/** Notes on kernels with one block per row, where there are many rows and none is known to be long. */
function blockNotes({ program, axes }: MappedKernel): Note[] {
  if (program.kind !== 'rows' || axes.length === 0 || program.lengths !== undefined) return []
  const [only, ...others] = program.variants
  if (only?.team.kind !== 'block' || others.length > 0) return []
  const loops = program.kept.flatMap(loopOf)
  const own = loops.find(({ length }) => !isEither(length))
  if (own === undefined) return []
  const length = printExpr(own.length)
  const message =
    `only the row knows how long ${length} is, so a block of ${only.team.lanes} threads computes each row, however short; ` +
    `if no row is longer than 128, for example, write minimum(128, ${length}): the lanes of a warp, or one thread, then compute a row`
  return [{ kind: 'block a row', message }]
}

/** True if a length is one of several lengths that are known before the kernel runs. */
const isEither = (length: Expr): boolean =>
  isHostExpr(length) || (length.kind === 'call' && length.fn === 'select' && length.args.slice(1).every(isEither))

/** Notes on rows whose elements are read at other indices than their own, and recomputed there. */
function recomputedNotes({ kernel }: Instance): Note[] {
  const { body } = kernel
  return body.flatMap((s): Note[] => {
    if ((s.kind !== 'row' && s.kind !== 'scan') || !body.some((other) => readsElsewhere(other, s))) return []
    if (s.kind === 'row' && isShared(s, body, undefined)) return []
    const cost = costOf(s)
    if (cost === undefined) return []
    const message =
      `${s.name} is read at another index than that of a loop over it, and recomputed there: ${cost} for every such element; ` +
      `read it at the index of its loop, or make it an output of a separate op`
    return [{ kind: 'recomputed', message }]
  })
}

/** Cost of an element in words; undefined if it is small. */
function costOf(s: StmtOf<'row'> | StmtOf<'scan'>): string | undefined {
  if (s.kind === 'scan') return `a ${s.monoid} of up to ${printExpr(s.length)} elements`
  let cost: string | undefined
  contains(s.value, (node) => {
    if (node.kind === 'fold') cost = `a ${node.monoid} of ${printExpr(node.length)} elements`
    else if (node.kind === 'call' && slowIntrinsics.has(node.fn)) cost ??= `${node.fn} of ${printExpr(node.args[0] ?? node)}`
    return false
  })
  return cost
}

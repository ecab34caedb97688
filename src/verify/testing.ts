/**
 * Checks of an author's own ops, graphs and programs from a test file: the exports of `heddle/testing`.
 *
 *     import { check } from 'heddle/testing'
 *     it('normalises rows', async () => expect(await check(rmsNorm)).toMatchObject({ failed: 0 }))
 *
 * A subject is compiled from its declaration below `specs/` and checked against its body on sizes that exercise tails: one element, lengths on
 * both sides of a vector, of a warp and of a block, extents that differ from each other, and buffers that start between vectors.
 *
 * @module heddle/testing
 */
import { resolve } from 'node:path'
import { findingError, usageError } from '../errors.js'
import type { DType } from '../ir/dtype.js'
import { kernelName } from '../ir/op_name.js'
import type { GraphDecl } from '../lang/graph.js'
import type { ProgramDecl } from '../lang/program/program.js'
import type { Op, Tensors } from '../lang/types.js'
import type { DeviceName } from '../runtime/device.js'
import { type CheckReport, checkProject } from './check/check.js'

export { HeddleError } from '../errors.js'
export { type RunOptions, runOp } from '../lang/run.js'
export type { CheckGroup, CheckReport } from './check/check.js'
export { type Comparison, compare } from './compare.js'
export type { CheckResult } from './conformance.js'
export { type OpClass, type Tolerance, type ToleranceQuery, tolerance } from './tolerance.js'

export interface CheckOptions {
  /** Checks a graph or program under this plan only; by default under each plan that the project has for it. */
  readonly plan?: string | undefined
  /** Device to run on; by default the GPU if there is one, else the CPU device. */
  readonly device?: DeviceName | undefined
  /** Storage types; by default all declared ones. */
  readonly dtypes?: readonly DType[] | undefined
  /** The project whose `specs/` declares the subject: a folder, by default the current one. */
  readonly root?: string | undefined
  /** Every size that `heddle selftest` tries, which takes minutes. */
  readonly thorough?: boolean | undefined
  readonly signal?: AbortSignal | undefined
}

type AnyOp = Pick<Op<Tensors, Tensors, Readonly<Record<string, number>>>, 'name' | 'inputs' | 'outputs' | 'attrs'> & {
  readonly body: unknown
}

/**
 * Checks an op against its own body, or a graph or a program under its plans against its nodes, on a device.
 * @returns passed and failed results, with the first differing element and both numbers; it does not throw for failures
 * @throws usage `check.selection` for a subject that no spec module of the project declares, and for an unknown plan; errors of the front
 * end; finding `check.untried` if a missing fact prevents all tests; environment for a missing device, addon or compiler; the signal's reason
 */
export async function check(subject: AnyOp | GraphDecl | ProgramDecl, options: CheckOptions = {}): Promise<CheckReport> {
  const { root = process.cwd(), plan, device, dtypes, thorough, signal } = options
  const common = { root: resolve(root), device, dtypes, thorough, signal }
  if (!isOp(subject)) return tried(await checkProject({ ...common, names: [subject.name], plan }))
  if (plan !== undefined) throw usageError('check.selection', `${subject.name} is an op, which no plan is for`)
  const name = kernelName(subject.name)
  return tried(await checkProject({ ...common, names: [name], bodies: { [name]: subject as Op } }))
}

/** Returns the report; throws if nothing was tried, so that such a test does not pass. */
function tried(report: CheckReport): CheckReport {
  const reason = report.groups.find((group) => group.untried !== undefined)?.untried
  if (report.passed > 0 || report.failed > 0 || reason === undefined) return report
  throw findingError('check.untried', reason)
}

const isOp = (subject: AnyOp | GraphDecl | ProgramDecl): subject is AnyOp => 'body' in subject

/** Runs described ops on a device and compares stored values with their float64 reference. */
import type { AnyOp, Device } from '../../src/runtime/api/index.js'
import { drawCases, type OpCase, statedDims } from './data.js'
import type { DType, OpDesc } from './describe.js'
import { type Held, runOp } from './evaluate.js'
import type { DeviceKind } from './house.js'
import { judge, together, type Verdict } from './judge.js'
import { exportName, layoutModule, printOp } from './print.js'
import { isRefusal, Project, type Refusal } from './project.js'
import { decode, encode } from './storage.js'

/** An op with the seed of its cases. */
export interface Subject {
  readonly op: OpDesc
  readonly seed: number
}

export interface Failure extends Subject {
  /** `wrong`, `fault` of a call, or a code that is not a refusal. */
  readonly kind: string
  readonly message: string
}

export interface Report {
  readonly ran: number
  readonly refused: readonly (Refusal & { readonly family: string })[]
  readonly failures: readonly Failure[]
  readonly verdict: Verdict
}

/** Calls of each op. */
const casesOfEach = 3

export async function runOps(kind: DeviceKind, subjects: readonly Subject[]): Promise<Report> {
  const modules = new Map(subjects.map(({ op }) => [op.name, printOp(op)]))
  const project = new Project({ modules, shared: new Map([['layouts', layoutModule]]) })
  const subjectOf = new Map(subjects.map((subject) => [subject.op.name, subject]))
  try {
    const device = await project.open(kind)
    const failures: Failure[] = []
    const verdicts: Verdict[] = []
    for (const name of project.kept) {
      const subject = subjectOf.get(name)
      if (subject === undefined || device === undefined) continue
      const declared = (await project.load(name))[exportName(name)] as AnyOp
      const { verdict, failure } = await runSubject(device, declared, subject)
      verdicts.push(verdict)
      if (failure !== undefined) failures.push(failure)
    }
    await device?.close()
    const all = project.refused.flatMap((each) => {
      const subject = subjectOf.get(each.name)
      return subject === undefined ? [] : [{ ...each, subject }]
    })
    return {
      ran: project.kept.length,
      refused: all.filter(({ code }) => isRefusal(code)).map(({ subject, ...each }) => ({ ...each, family: subject.op.family })),
      failures: [
        ...all.filter(({ code }) => !isRefusal(code)).map(({ subject, code, message }) => ({ ...subject, kind: code, message })),
        ...failures,
      ],
      verdict: together(verdicts),
    }
  } finally {
    project.remove()
  }
}

/** Calls an op with its cases, up to the first that is wrong. */
async function runSubject(
  device: Device,
  declared: AnyOp,
  subject: Subject,
): Promise<{ readonly verdict: Verdict; readonly failure?: Failure }> {
  const verdicts: Verdict[] = []
  for (const drawn of drawCases(subject.op, subject.seed, casesOfEach)) {
    const where = JSON.stringify(drawn.dims)
    const expected = runOp(subject.op, drawn.inputs, drawn.dims)
    try {
      const stored = await callOp(device, declared, subject.op, drawn)
      const verdict = together([...expected].map(([name, held]) => judge(name, held, stored.get(name) ?? [])))
      verdicts.push(verdict)
      if (verdict.wrong === 0) continue
      const message = `${verdict.wrong} of ${verdict.elements} elements at ${where}: ${verdict.first}`
      return { verdict: together(verdicts), failure: { ...subject, kind: 'wrong', message } }
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      return { verdict: together(verdicts), failure: { ...subject, kind: 'fault', message: `at ${where}: ${message}` } }
    }
  }
  return { verdict: together(verdicts) }
}

/** A tensor in the form in which the host passes it. */
export const hostTensor = ({ dtype, shape, values }: Held) => ({
  dtype,
  shape,
  data: encode(
    dtype,
    values.map(({ v }) => v),
  ),
})

/** The numbers of tensors that a device gave back. */
export const numbersOf = (results: object): ReadonlyMap<string, readonly number[]> =>
  new Map(
    Object.entries(results as Readonly<Record<string, { readonly dtype: DType; readonly data: ArrayLike<number | bigint> }>>).map(
      ([name, { dtype, data }]) => [name, decode(dtype, data)],
    ),
  )

async function callOp(
  device: Device,
  declared: AnyOp,
  op: OpDesc,
  { dims, inputs }: OpCase,
): Promise<ReadonlyMap<string, readonly number[]>> {
  const given = Object.fromEntries([...inputs].map(([name, held]) => [name, hostTensor(held)]))
  const attrs = Object.fromEntries(op.attrs.map(({ name, given: value }) => [name, value]))
  const dtype = op.param === undefined ? {} : { dtype: { T: op.param } }
  // The declaration was printed from the same description, which its type does not say.
  return numbersOf(await device.call(declared, given as never, { attrs, dims: statedDims(op, dims), ...dtype } as never))
}

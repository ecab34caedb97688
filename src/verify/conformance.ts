/**
 * Runs one case of one kernel on a device and compares it with the op's body run by Node. All buffers of a case lie in one
 * block of device memory with guard bands between them; outputs are poisoned. After the run the guards and the inputs
 * must be unchanged, and every output element must have been written. An output that updates an input is that input's buffer:
 * it starts from the input, and elements that are not replaced must stay equal to the last bit.
 */
import { setImmediate } from 'node:timers/promises'
import type { KernelEntry } from '../emit/manifest/manifest.js'
import { type DType, isFloat8 } from '../ir/dtype.js'
import { storedNumber } from '../ir/store.js'
import type { Layouts } from '../runtime/layouts.js'
import type { KernelSource } from '../runtime/library.js'
import type { NativeDevice } from '../runtime/native.js'
import { roundTo } from '../runtime/numbers.js'
import { isOfLink } from '../runtime/remote/failures.js'
import { findTrespass, initialBlock, load, type Placed, place } from './block.js'
import { drawnSize, inputsOf, type KernelCase } from './cases.js'
import { type Comparison, compare, nearer } from './compare.js'
import { filling } from './filling.js'
import { expected as expectedFrom, inSingle, type Oracle, rung, strayedError, type Tensors, unrounded } from './oracle.js'
import { locatingReads } from './reads.js'
import { ruleOf } from './rules.js'
import { type Tolerance, tolerance, unitRoundoff, withNaiveError } from './tolerance.js'

/** Context of a device run, in addition to the case. */
export interface Subject extends Oracle {
  readonly device: NativeDevice
  readonly library: KernelSource
  readonly layouts: Layouts
}

export interface CheckResult {
  readonly name: string
  readonly passed: boolean
  /** The difference, or the worst error of a passed case. */
  readonly detail: string
  /** Elements not judged of a case that passed, with the reason. */
  readonly note?: string
}

/** The first element of an update that the oracle leaves unchanged and the run did not. */
function findChanged(stored: ArrayLike<number>, before: ArrayLike<number> | undefined, expected: ArrayLike<number>) {
  if (before === undefined) return undefined
  const at = Array.from(expected).findIndex((value, i) => value === before[i] && stored[i] !== before[i])
  return at < 0 ? undefined : at
}

/** The tolerance of an output in a case: some are exact on small integers. */
function toleranceOf({ entry, dims, draw }: KernelCase, { name, dtype }: KernelEntry['buffers'][number]): Tolerance {
  const result = ruleOf(entry).results[name]
  if (result === undefined) throw new Error(`internal: ${entry.key} has no output ${name}`)
  const opClass = result.integers && draw === 'integer' ? 'exact' : result.class
  const { rounded, scale, roots } = result
  const grown = rounded && { ...rounded, rms: rounded.rms * drawnSize[draw] ** rounded.degree }
  return tolerance({ dtype, class: opClass, length: result.length(dims), scale, roots, rounded: grown })
}

/** Values beyond the storage type's range are stored as infinities, or as its largest number; the others are left in double precision. */
export const saturated = (dtype: DType, expected: ArrayLike<number>): ArrayLike<number> => {
  const stored = roundTo(dtype, expected)
  return new Float64Array(expected).map((value, i) =>
    Number.isFinite(stored[i]) ? (isFloat8(dtype) ? storedNumber(dtype, value) : value) : (stored[i] ?? value),
  )
}

/** Expected values in storage: correctly rounded for an exact comparison, else saturated. */
const expectedAs = (dtype: DType, expected: ArrayLike<number>, { absolute, relative }: Tolerance): ArrayLike<number> =>
  absolute === 0 && relative === 0 ? roundTo(dtype, expected) : saturated(dtype, expected)

/** Placement of a case's buffers, and their block before the run. */
function memoryOf({ layouts }: Subject, { entry, dims, shift }: KernelCase, inputs: Tensors, poison?: number) {
  const { placed, bytes } = place(entry, dims, shift, layouts)
  return { placed, before: initialBlock(placed, bytes, inputs, layouts, poison) }
}

/** Runs the case's kernel over a block and returns the block afterwards. Rejects with the device's error. */
async function runOnDevice(
  subject: Subject,
  test: KernelCase,
  placed: readonly Placed[],
  block: Uint8Array,
): Promise<Uint8Array> {
  const { entry, dims, attrs } = test
  await subject.library.ensure([entry.key])
  const buffer = subject.device.allocate(block.byteLength)
  const whole = { buffer, offset: 0, bytes: block.byteLength }
  const program = subject.device.program([
    {
      kind: 'kernel',
      label: test.name,
      library: subject.library.of(entry.key),
      key: entry.key,
      buffers: placed.map(({ offset, bytes }) => ({ buffer, offset, bytes })),
      dims: entry.dims.map((name) => dims[name] ?? 1),
      attrs: entry.attrs.map((attr) => attrs[attr.name] ?? attr.default),
    },
  ])
  try {
    const [after] = await program.run([{ to: whole, data: block }], [whole])
    return after ?? new Uint8Array()
  } finally {
    program.release()
    buffer.release()
  }
}

/**
 * The memory after a run, unchecked. It equals the memory that `runCase` saw if the runs were identical to the last bit. Rejects with the
 * device's error.
 */
export async function memoryAfter(subject: Subject, given: KernelCase): Promise<Uint8Array> {
  const test = filling(given, (attempt, inputs) => expectedFrom(subject, attempt, inputs))
  const { placed, before } = memoryOf(subject, test, inputsOf(test))
  return runOnDevice(subject, test, placed, before)
}

/** A case with all inputs of its run, and the values that it is compared with. */
export interface PreparedCase {
  /** The case, with its final attributes. */
  readonly test: KernelCase
  readonly inputs: Tensors
  readonly expected: Tensors
  readonly placed: readonly Placed[]
  readonly before: Uint8Array
  /** Allowed values of each output in logical order, the likeliest first, and their tolerance. */
  readonly wanted: ReadonlyMap<string, { readonly values: readonly ArrayLike<number>[]; readonly bound: Tolerance }>
}

/** @throws usage `verify.oracle` when the subject has neither body nor IR of the op; finding `evaluate.bounds` where its body reads outside of a tensor */
export const prepareCase = (subject: Subject, given: KernelCase): PreparedCase =>
  locatingReads(given.entry.facts, () => prepared(subject, given))

function prepared(subject: Subject, given: KernelCase): PreparedCase {
  const test = filling(given, (attempt, inputs) => expectedFrom(subject, attempt, inputs))
  const inputs = inputsOf(test)
  const expected = expectedFrom(subject, test, inputs)
  const right = [expected, ...unrounded(subject, test, inputs)]
  const outputs = test.entry.buffers.filter(({ access }) => access === 'out')
  const wanted = new Map(
    outputs.map((buffer) => {
      const bound = toleranceOf(test, buffer)
      return [buffer.name, { bound, values: right.map((each) => expectedAs(buffer.dtype, each[buffer.name]?.data ?? [], bound)) }]
    }),
  )
  return { test, inputs, expected, wanted, ...memoryOf(subject, test, inputs) }
}

/**
 * Runs a case and compares. A kernel that faults is a failed case, not an error. `onBlock` sees the memory after the run.
 * @throws usage `verify.oracle` when the subject has neither body nor IR of the op
 */
export const runCase = async (subject: Subject, given: KernelCase, onBlock?: (block: Uint8Array) => void): Promise<CheckResult> =>
  runPrepared(subject, prepareCase(subject, given), onBlock)

/** Cases that are sent together to a device of another machine: an answer takes as long as the link, whatever the kernel takes. */
const togetherElsewhere = 16

/** Runs cases in sequence. The next ones are prepared while the device runs, which takes as long. */
export async function runCases(
  subject: Subject,
  cases: Iterable<KernelCase>,
  signal: AbortSignal | undefined,
): Promise<CheckResult[]> {
  const results: CheckResult[] = []
  let running: readonly Promise<CheckResult>[] = []
  let next: PreparedCase[] = []
  const together = subject.device.sendLibrary === undefined ? 1 : togetherElsewhere
  const startNext = async (): Promise<void> => {
    results.push(...(await Promise.all(running)))
    running = next.map((prepared) => runPrepared(subject, prepared))
    next = []
    // An error is thrown where the runs are awaited.
    for (const run of running) run.catch(() => undefined)
    // Lets the runs start.
    await setImmediate()
  }
  try {
    for (const test of cases) {
      signal?.throwIfAborted()
      next.push(prepareCase(subject, test))
      if (next.length === together) await startNext()
    }
    await startNext()
    return [...results, ...(await Promise.all(running))]
  } finally {
    // The caller may close the device, so all work on it must have finished.
    await Promise.allSettled(running)
  }
}

async function runPrepared(
  subject: Subject,
  prepared: PreparedCase,
  onBlock?: (block: Uint8Array) => void,
): Promise<CheckResult> {
  const { test, inputs, expected, placed, before } = prepared
  const { name } = test
  const failed = (detail: string): CheckResult => ({ name, passed: false, detail })
  const outputs = placed.filter(({ buffer }) => buffer.access === 'out')
  let after: Uint8Array
  let unwritten: string | undefined
  try {
    after = await runOnDevice(subject, test, placed, before)
    unwritten = await findUnwritten(subject, prepared, outputs)
  } catch (error) {
    if (isOfLink(error)) throw error
    return failed(error instanceof Error ? error.message : String(error))
  }
  onBlock?.(after)
  const trespass = findTrespass(before, after, outputs, placed)
  if (trespass !== undefined) return failed(trespass)
  if (unwritten !== undefined) return failed(unwritten)
  const details: string[] = []
  for (const output of outputs) {
    const { name: tensor } = output.buffer
    const stored = load(output, after, subject.layouts)
    const result = compareResult(subject, prepared, output.buffer, stored)
    if (!result.passed) return failed(`${rung(subject, test, inputs, expected)}: ${tensor}: ${result.summary}`)
    const changed = findChanged(stored, inputs[output.buffer.updates ?? '']?.data, expected[tensor]?.data ?? [])
    if (changed !== undefined) return failed(`${tensor}: element ${changed}, which is not replaced, changed`)
    details.push(`${tensor}: ${result.summary}`)
  }
  return { name, passed: true, detail: details.join('; ') }
}

/** Compares an output with each of its allowed values, and else element by element with the float32 result of the case. */
function compareResult(
  subject: Subject,
  { test, inputs, expected, wanted }: PreparedCase,
  { name, dtype }: Placed['buffer'],
  stored: ArrayLike<number>,
): Comparison {
  const { values, bound } = wanted.get(name) ?? missing(name)
  const results = values.map((each) => compare(stored, each, bound, 'equals'))
  const [first = missing(name)] = results
  const passing = results.find(({ passed }) => passed)
  if (passing !== undefined) return passing
  const [double = missing(name)] = values
  const single = inSingle(subject, test, inputs, expected)?.[name]?.data
  if (single !== undefined) {
    const either = compare(stored, nearer(stored, double, expectedAs(dtype, single, bound)), bound, 'equals')
    if (either.passed) return either
  }
  // A difference of one integer step is not a float32 error.
  if (unitRoundoff[dtype] === 0) return first
  const error = strayedError(subject, test, inputs, expected)?.[name]
  if (error === undefined) return first
  const wider = compare(stored, double, (i) => withNaiveError(bound, error[i] ?? 0), 'equals')
  return wider.passed ? wider : first
}

/**
 * Finds unwritten elements of outputs. They are poisoned with NaN; if a body itself yields NaN, a second run over zeros shows whether the element was
 * written.
 * @returns a description of the first unwritten element
 */
async function findUnwritten(
  subject: Subject,
  { test, inputs, expected }: PreparedCase,
  outputs: readonly Placed[],
): Promise<string | undefined> {
  const nans = outputs.flatMap(({ buffer }) => {
    const at = Array.from(expected[buffer.name]?.data ?? [], Number.isNaN)
    return at.includes(true) ? [[buffer.name, at] as const] : []
  })
  if (nans.length === 0) return undefined
  const { placed, before } = memoryOf(subject, test, inputs, 0)
  const after = await runOnDevice(subject, test, placed, before)
  for (const [name, nan] of nans) {
    const stored = load(placed.find(({ buffer }) => buffer.name === name) ?? missing(name), after, subject.layouts)
    const at = nan.findIndex((isExpected, i) => isExpected && !Number.isNaN(stored[i]))
    if (at >= 0) return `${name}: element ${at} is ${stored[at]}, expected NaN`
  }
  return undefined
}

const missing = (tensor: string): never => {
  throw new Error(`internal: output ${tensor} has no expected values`)
}

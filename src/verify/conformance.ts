/**
 * Runs one case of one kernel on a device and compares it with the op's body run by Node. All buffers of a case lie in one
 * block of device memory with guard bands between them; outputs are poisoned. After the run the guards and the inputs
 * must be as they were, and every output element must have been written. An output that updates an input is that input's buffer:
 * it starts from the input, and what is not replaced must be as it was to the last bit.
 */
import { setImmediate } from 'node:timers/promises'
import type { KernelEntry } from '../emit/manifest.js'
import { type DType, isFloat8 } from '../ir/dtype.js'
import { storedNumber } from '../ir/store.js'
import type { Layouts } from '../runtime/layouts.js'
import type { KernelSource } from '../runtime/library.js'
import type { NativeDevice } from '../runtime/native.js'
import { findTrespass, initialBlock, load, type Placed, place } from './block.js'
import { drawnSize, inputsOf, type KernelCase } from './cases.js'
import { type Comparison, compare, nearer } from './compare.js'
import { filling } from './filling.js'
import { expected as expectedFrom, inSingle, type Oracle, rung, strayedError, type Tensors, unrounded } from './oracle.js'
import { locatingReads } from './reads.js'
import { ruleOf } from './rules.js'
import { roundTo } from './storage.js'
import { type Tolerance, tolerance, unitRoundoff, withNaiveError } from './tolerance.js'

/** What a device run needs besides the case. */
export interface Subject extends Oracle {
  readonly device: NativeDevice
  readonly library: KernelSource
  readonly layouts: Layouts
}

export interface CheckResult {
  readonly name: string
  readonly passed: boolean
  /** What differs, or the worst error when it passed. */
  readonly detail: string
  /** Elements not judged of a case that passed, with the reason. */
  readonly note?: string
}

/** The first element of an update that the oracle leaves as it was and the run did not. */
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

/** Expected values of an exact comparison are what a correctly rounded store leaves. */
const expectedAs = (dtype: DType, expected: ArrayLike<number>, { absolute, relative }: Tolerance): ArrayLike<number> =>
  absolute === 0 && relative === 0 ? roundTo(dtype, expected) : saturated(dtype, expected)

/** Where the buffers of a case lie, and their block before the run. */
function memoryOf({ layouts }: Subject, { entry, dims, shift }: KernelCase, inputs: Tensors, poison?: number) {
  const { placed, bytes } = place(entry, dims, shift, layouts)
  return { placed, before: initialBlock(placed, bytes, inputs, layouts, poison) }
}

/** Runs the case's kernel over a block and returns the block afterwards. Rejects with what the device rejects with. */
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
 * The memory after a run, unchecked: equal to what `runCase` saw where the run was the same to the last bit. Rejects with what the
 * device rejects with.
 */
export async function memoryAfter(subject: Subject, given: KernelCase): Promise<Uint8Array> {
  const test = filling(given, (attempt, inputs) => expectedFrom(subject, attempt, inputs))
  const { placed, before } = memoryOf(subject, test, inputsOf(test))
  return runOnDevice(subject, test, placed, before)
}

/** A case with everything its run starts from and is held against. */
export interface PreparedCase {
  /** With the attributes it is run with. */
  readonly test: KernelCase
  readonly inputs: Tensors
  readonly expected: Tensors
  readonly placed: readonly Placed[]
  readonly before: Uint8Array
  /** Of each output: what it may be, in logical order, the likeliest first, and how far it may be from that. */
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

/** Runs cases one after the other. The device is at one while the next is prepared, which takes as long. */
export async function runCases(
  subject: Subject,
  cases: Iterable<KernelCase>,
  signal: AbortSignal | undefined,
): Promise<CheckResult[]> {
  const results: CheckResult[] = []
  let running: Promise<CheckResult> | undefined
  try {
    for (const test of cases) {
      signal?.throwIfAborted()
      const next = prepareCase(subject, test)
      if (running !== undefined) results.push(await running)
      running = runPrepared(subject, next)
      // Lets it begin.
      await setImmediate()
    }
    return running === undefined ? results : [...results, await running]
  } finally {
    // Nothing runs on a device that the caller closes.
    await Promise.allSettled([running])
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
    const result = held(subject, prepared, output.buffer, stored)
    if (!result.passed) return failed(`${rung(subject, test, inputs, expected)}: ${tensor}: ${result.summary}`)
    const changed = findChanged(stored, inputs[output.buffer.updates ?? '']?.data, expected[tensor]?.data ?? [])
    if (changed !== undefined) return failed(`${tensor}: element ${changed}, which is not replaced, changed`)
    details.push(`${tensor}: ${result.summary}`)
  }
  return { name, passed: true, detail: details.join('; ') }
}

/** An output against what it may be: each of its values, or element by element what float32 makes of the case. */
function held(
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
  // A step of an integer is no error of float32.
  if (unitRoundoff[dtype] === 0) return first
  const error = strayedError(subject, test, inputs, expected)?.[name]
  if (error === undefined) return first
  const wider = compare(stored, double, (i) => withNaiveError(bound, error[i] ?? 0), 'equals')
  return wider.passed ? wider : first
}

/**
 * Outputs are poisoned with NaN. Where a body gives NaN itself, a second run over zeros tells whether it was written.
 * @returns the first element that was not
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

/**
 * Measures a matmul with every algorithm that the device's library offers for it. Each is first compared with the library's default algorithm, and
 * refused if it differs by more than two correct results may. Then all are timed interleaved, and the fastest ones again.
 */
import { dtypeInfo } from '../../ir/dtype.js'
import { decode } from '../../runtime/buffer.js'
import type { NativeAlgorithm, NativeDevice, NativeMatmul, NativeProgram } from '../../runtime/native.js'
import { matmulName } from '../../runtime/tuned_matmuls.js'
import type { TunedMatmul } from '../../schedule/tuning/library.js'
import { compare } from '../../verify/compare.js'
import { betweenResults, type Tolerance, tolerance, withStoredPart } from '../../verify/tolerance.js'
import { cacheOf, rotationOf } from '../rotation.js'
import { type Summary, summarise } from '../statistics.js'
import { type Operands, openOperands, operandBytes } from './operands.js'
import { chosen, leaders } from './select.js'

export interface LibraryBench {
  readonly device: NativeDevice
  /** Timed replays of each algorithm. */
  readonly repeats: number
  /** Largest number of algorithms per matmul. */
  readonly most?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** A library matmul and its uses. */
export interface LibraryMatmul {
  readonly matmul: NativeMatmul
  /** Labels of the steps that run this matmul. */
  readonly used: readonly string[]
}

export interface LibraryResult {
  /** Name of the matmul in a tuning file. */
  readonly matmul: string
  readonly extents: NativeMatmul['extents']
  readonly used: readonly string[]
  /** Algorithms that the library offers. */
  readonly offered: number
  /** Microseconds of the library's first algorithm; undefined if the library does not support the matmul. */
  readonly first: Summary | undefined
  /** Microseconds of the fastest algorithm (possibly the first), from the second timing. */
  readonly best: Summary | undefined
  readonly refused: readonly { readonly algorithm: string; readonly detail: string }[]
  /** Selected algorithm; undefined if none is faster than the first. */
  readonly kept: TunedMatmul | undefined
}

const rounds = 5
const warmup = 1

/** Parts of an algorithm's configuration in words: `id 66, tile 20, stages 36, split 1, swizzle 0, custom 0, cluster 2`. */
export const configText = ({ id, tile, stages, split, swizzle, custom, cluster }: NativeAlgorithm): string =>
  Object.entries({ id, tile, stages, split, swizzle, custom, cluster })
    .map(([name, value]) => `${name} ${value}`)
    .join(', ')

/** @throws environment `device.memory`; the signal's reason */
export async function measureMatmul(bench: LibraryBench, { matmul, used }: LibraryMatmul): Promise<LibraryResult> {
  const { device, signal } = bench
  signal?.throwIfAborted()
  const sets = rotationOf(operandBytes(matmul), cacheOf(device.info())).passes
  const operands = await openOperands(device, matmul, sets)
  try {
    const [step] = operands.steps()
    if (step === undefined) throw new Error('internal: a matmul without operands')
    const offered = await device.algorithms(step, bench.most)
    const about = { matmul: matmulName(matmul), extents: matmul.extents, used, offered: offered.length }
    if (offered.length === 0) return { ...about, first: undefined, best: undefined, refused: [], kept: undefined }
    const { accepted, refused } = await examine(device, operands, matmul, offered)
    const [, ...heat] = await timeAll(bench, operands, accepted, sets)
    const final = leaders(heat).flatMap((i) => accepted[i] ?? [])
    const [first, ...times] = await timeAll(bench, operands, final, sets)
    if (first === undefined) throw new Error('internal: the first algorithm has no time')
    const at = chosen(first, times)
    const algorithm = at === undefined ? undefined : final[at]
    const time = at === undefined ? undefined : times[at]
    if (algorithm === undefined || time === undefined) return { ...about, first, best: first, refused, kept: undefined }
    return { ...about, first, best: time, refused, kept: entryOf(device, about.matmul, algorithm, first, time) }
  } finally {
    operands.release()
  }
}

/** Rounds to three digits, as in a tuning file. */
const rounded = (value: number): number => Number(value.toPrecision(3))

function entryOf(device: NativeDevice, matmul: string, algorithm: NativeAlgorithm, first: Summary, time: Summary): TunedMatmul {
  const { name, matmulVersion } = device.info()
  return {
    device: name,
    library: matmulVersion,
    matmul,
    algorithm: Buffer.from(algorithm.bytes).toString('hex'),
    config: configText(algorithm),
    measured: { first: rounded(first.median), algorithm: rounded(time.median) },
  }
}

/** Separates algorithms whose results agree with the first one's from the others. */
async function examine(device: NativeDevice, operands: Operands, matmul: NativeMatmul, offered: readonly NativeAlgorithm[]) {
  const { out, initial, bias } = operands
  const elements = comparedElements(matmul)
  const result = async (algorithm?: Uint8Array): Promise<ArrayLike<number>> => {
    const program = device.program(operands.steps(algorithm).slice(0, 1))
    try {
      const [bytes = new Uint8Array()] = await program.run([initial], [out.slice])
      return Float64Array.from(decode(out.dtype, elementsOf(bytes, dtypeInfo[out.dtype].bytes, elements)))
    } finally {
      program.release()
    }
  }
  const expected = await result()
  const [, , , k] = matmul.extents
  const bound = tolerance({ dtype: out.dtype, class: out.dtype === 'i32' ? 'exact' : 'matmul', length: k })
  const allowed = (i: number): Tolerance =>
    betweenResults(bias === 0 ? bound : withStoredPart(bound, out.dtype, Math.abs(expected[i] ?? 0) + bias))
  const accepted: NativeAlgorithm[] = []
  const refused: { algorithm: string; detail: string }[] = []
  for (const algorithm of offered) {
    const detail = await result(algorithm.bytes).then(
      (found) => {
        const { passed, summary } = compare(found, expected, allowed)
        return passed ? undefined : summary
      },
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    )
    if (detail === undefined) accepted.push(algorithm)
    else refused.push({ algorithm: configText(algorithm), detail })
  }
  return { accepted, refused }
}

/** Largest number of compared elements; in a larger result they are evenly spread. */
const mostCompared = 1 << 17

/** Elements of a result, one after the other: only these are decoded, since a large result is mostly not compared. */
function elementsOf(result: Uint8Array, size: number, offsets: Float64Array): Uint8Array {
  const taken = new Uint8Array(offsets.length * size)
  for (let i = 0; i < offsets.length; i++) {
    const at = (offsets[i] ?? 0) * size
    for (let byte = 0; byte < size; byte++) taken[i * size + byte] = result[at + byte] ?? 0
  }
  return taken
}

/** Offsets of the compared elements of a result: only those that the matmul writes, since there may be padding between its rows. */
function comparedElements({ extents: [batch, m, n], strides: [, , [ofBatch, ofRow, ofColumn]] }: NativeMatmul): Float64Array {
  const count = batch * m * n
  // An odd stride visits every column of a matrix with an even row length.
  const stride = count <= mostCompared ? 1 : Math.ceil(count / mostCompared) | 1
  return Float64Array.from({ length: Math.ceil(count / stride) }, (_, i) => {
    const element = i * stride
    return Math.floor(element / (m * n)) * ofBatch + (Math.floor(element / n) % m) * ofRow + (element % n) * ofColumn
  })
}

/** Microseconds of the library's first algorithm, followed by those of the given ones, over all sets in turn. */
async function timeAll(
  { device, repeats, signal }: LibraryBench,
  operands: Operands,
  algorithms: readonly NativeAlgorithm[],
  sets: number,
): Promise<Summary[]> {
  const turns: { readonly program: NativeProgram; readonly samples: number[] }[] = []
  try {
    for (const bytes of [undefined, ...algorithms.map((algorithm) => algorithm.bytes)]) {
      const program = device.program(operands.steps(bytes))
      turns.push({ program, samples: [] })
      await program.run([], [])
      await program.capture()
    }
    const perRound = Math.ceil(repeats / rounds)
    for (let round = 0; round * perRound < repeats; round++) {
      signal?.throwIfAborted()
      for (const { program, samples } of round % 2 === 0 ? turns : turns.toReversed())
        samples.push(...(await program.time(perRound, warmup)))
    }
    return turns.map(({ samples }) => summarise(samples.map((milliseconds) => (1000 * milliseconds) / sets)))
  } finally {
    for (const { program } of turns) program.release()
  }
}

/**
 * Peers of a suite: commands of the author that time the same work in another framework. A command gets a request as JSON on stdin and prints a
 * line of JSON per shape and type. A peer that fails is a line in the result, because heddle's own times are valid without it.
 */
import { execa } from 'execa'
import { z } from 'zod'
import type { SuiteType } from '../../lang/suite.js'
import { summarise } from '../statistics.js'
import { type Dims, type SuiteCell, shapeText } from './result.js'

const line = z.object({
  dtype: z.enum(['f32', 'f16', 'bf16']),
  dims: z.record(z.string(), z.number()),
  milliseconds: z.array(z.number().positive()).min(1).optional(),
  error: z.string().optional(),
})

export interface PeerRequest {
  readonly subject: string
  readonly device: string
  readonly repeats: number
  readonly cells: readonly { readonly dtype: SuiteType; readonly dims: Dims }[]
}

export interface PeerOutcome {
  readonly cells: readonly SuiteCell[]
  /** Reason for missing cells. */
  readonly problem: string | undefined
}

/** @throws the signal's reason when it fires; nothing else */
export async function timePeer(
  name: string,
  [file, ...args]: readonly [string, ...string[]],
  request: PeerRequest,
  { root, signal }: { readonly root: string; readonly signal: AbortSignal },
): Promise<PeerOutcome> {
  const child = execa(file, args, { cwd: root, reject: false, input: JSON.stringify(request), cancelSignal: signal })
  const { exitCode, stdout, stderr, originalMessage } = await child
  signal.throwIfAborted()
  const lines = stdout.split('\n').flatMap((text) => parsed(text) ?? [])
  const cells = request.cells.flatMap(({ dtype, dims }): SuiteCell[] => {
    const own = lines.find((each) => each.dtype === dtype && shapeText(sorted(each.dims)) === shapeText(sorted(dims)))
    if (own?.milliseconds === undefined) return []
    const samples = own.milliseconds
    return [{ plan: name, peer: true, dtype, dims, samples, milliseconds: summarise(samples), profile: [] }]
  })
  const missing = request.cells.length - cells.length
  const said = lines.find(({ error }) => error !== undefined)?.error ?? lastLine(stderr)
  if (exitCode !== 0) return { cells, problem: said ?? originalMessage ?? `${file} ended with exit code ${exitCode}` }
  if (missing === 0) return { cells, problem: undefined }
  return { cells, problem: `${said ?? 'it printed no times'} (${missing} of ${request.cells.length} missing)` }
}

const sorted = (dims: Dims): Dims => Object.fromEntries(Object.entries(dims).sort(([a], [b]) => (a < b ? -1 : 1)))

/** A line of times; undefined for other output, because libraries print too. */
function parsed(text: string): z.infer<typeof line> | undefined {
  try {
    return line.parse(JSON.parse(text))
  } catch {
    return undefined
  }
}

const lastLine = (text: string): string | undefined => text.trimEnd().split('\n').at(-1) || undefined

/** `build.json`: outputs and inputs of a build. Written next to the kernel library, read by `doctor`, `inspect` and the next build. */
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { usageError } from '../errors.js'

const digest = z.string().regex(/^[0-9a-f]{64}$/)

export const buildReportSchema = z.strictObject({
  version: z.literal(1),
  target: z.enum(['simt', 'cuda']),
  compiler: z.strictObject({ path: z.string(), version: z.string() }),
  /** sha256 of the manifest the library was built from. */
  manifest: digest,
  /** Digests of the kernels' sources, by instance key. */
  digests: z.array(z.strictObject({ key: z.string(), digest })).optional(),
  /** GPU architecture it was compiled for; absent for all of them. */
  architecture: z.string().optional(),
  /** True if the kernels have line information. */
  lineInfo: z.boolean().optional(),
  /** True if it was packed to run elsewhere, where another compiler does not make it stale. */
  travels: z.literal(true).optional(),
  /** Hash of all link inputs: equal keys need no link. */
  key: digest,
  library: z.strictObject({ file: z.string(), bytes: z.number().int(), digest }),
  objects: z.array(z.strictObject({ source: z.string(), key: digest })),
  /** One entry per kernel and architecture; empty on simt. */
  kernels: z.array(
    z.strictObject({
      kernel: z.string(),
      arch: z.string(),
      registers: z.number().int(),
      spillStoreBytes: z.number().int(),
      spillLoadBytes: z.number().int(),
      stackBytes: z.number().int(),
      sharedBytes: z.number().int(),
      source: z.string(),
    }),
  ),
})

export type BuildReport = z.infer<typeof buildReportSchema>

/** Report of the last build, or undefined if there was none. @throws usage `build.report` if the file is not a report */
export async function readBuildReport(path: string): Promise<BuildReport | undefined> {
  const text = await readFile(path, 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  const parsed = z.string().transform(parseJson).pipe(buildReportSchema).safeParse(text)
  if (!parsed.success) {
    throw usageError('build.report', `${path} is not a build report`, { hint: 'run `heddle clean`, then build again' })
  }
  return parsed.data
}

function parseJson(text: string, context: z.RefinementCtx): unknown {
  try {
    return JSON.parse(text)
  } catch {
    context.addIssue('not JSON')
    return z.NEVER
  }
}

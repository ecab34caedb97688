/** Options and inputs that all exports share: the search path, the folder to write, and summaries. */
import { resolve as resolvePath } from 'node:path'
import { environmentError, usageError } from '../errors.js'
import { keysOf, type Lowered } from '../export/index.js'
import { expectListed } from '../output_listed.js'
import { installation, searchManifests, type Target } from '../toolchain/index.js'
import type { CliContext } from './context.js'
import type { dtypes } from './pipeline.js'
import { searchPath } from './search_path.js'

export interface ExportOptions {
  readonly plan: string
  readonly dtype: (typeof dtypes)[number]
  readonly out: string
  readonly target: Target
  /** Sizes of fixed dimensions. */
  readonly dims?: Readonly<Record<string, number>> | undefined
  /** Configuration of a program. */
  readonly config?: Readonly<Record<string, unknown>> | undefined
  /** Attributes of a graph or a kernel. */
  readonly attrs?: Readonly<Record<string, unknown>> | undefined
  /** A model folder: its configuration, sizes and weights. */
  readonly model?: string | undefined
  /** File that `heddle calibrate` wrote for the model, for a plan that needs scales. */
  readonly scales?: string | undefined
  /** Folder of the spec modules; default `specs`. */
  readonly specs?: string | undefined
  /** Folder of the project's generated source; default `generated`. */
  readonly generated?: string | undefined
}

/**
 * Kernels, declarations and layouts of the search path.
 * @throws environment `portable.export`; usage `output.folder`, `manifest.*`, `specs.*`
 */
export async function sourcesOf(options: Pick<ExportOptions, 'out' | 'specs' | 'generated'>, { root }: CliContext) {
  if (installation(root).portable) {
    const hint = 'use the npm package'
    throw environmentError('portable.export', 'the portable bundle has no sources to export', { hint })
  }
  const [out, place] = [resolvePath(root, options.out), { root, specs: options.specs }]
  await expectListed(out, place)
  const own = options.generated === undefined ? undefined : resolvePath(root, options.generated)
  const searched = await searchManifests(root, { own })
  const declarations = await searchPath(root, options.specs)
  return { out, place, searched, declarations, layouts: await declarations.layouts() }
}

export const kernelsOf = (programs: readonly Lowered[]): number =>
  new Set(programs.flatMap(({ steps }) => steps.flatMap(keysOf))).size

export const summary = ({ name, plan, dims, steps, left }: Lowered): string =>
  `${name} under ${plan}: ${steps.length} steps; sizes of a run: ${dims.join(', ') || 'none'}${leftOut(left)}`

/** Note on plans for few rows that an export does not hold. */
export const leftOut = (plans: readonly string[]): string =>
  plans.length === 0 ? '' : `; without ${plans.join(', ')} for few rows: fix the number of rows by --dims to export those`

export function numbersOf(given: Readonly<Record<string, unknown>> = {}): Readonly<Record<string, number>> {
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => {
      if (typeof value === 'number' && Number.isFinite(value)) return [name, value]
      throw usageError('export.attrs', `attribute ${name}: expected a number, got ${JSON.stringify(value)}`)
    }),
  )
}

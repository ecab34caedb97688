/** `heddle export A B --dtype f32,f16 --library NAME`: several programs, or one in several storage types, as one library of one runtime. */
import { basename } from 'node:path'
import { HeddleError, usageError } from '../errors.js'
import { hasDim, type Lowered, libraryOf, lower, type ResolveOptions, resolve, writeExport } from '../export/index.js'
import type { CliContext } from './context.js'
import { type ExportOptions, kernelsOf, numbersOf, sourcesOf, summary } from './export_sources.js'

export interface ExportLibraryOptions extends Omit<ExportOptions, 'dtype'> {
  /** Name of the library; default: its only program's, or its folder's. */
  readonly library?: string | undefined
}

export interface ExportLibraryResult {
  readonly name: string
  readonly out: string
  /** Programs with their prefixes in C, the dimensions of their runs, and their fixed ones. */
  readonly programs: readonly (Pick<Lowered, 'name' | 'plan' | 'dtype' | 'dims' | 'fixed'> & {
    readonly prefix: string
    readonly steps: number
  })[]
  readonly kernels: number
  /** The library's own files, below `out`. */
  readonly files: readonly string[]
}

type DTypes = readonly ExportOptions['dtype'][]

/** @throws as `runExport`; usage `export.model`, `export.name` */
export async function runExportLibrary(
  names: readonly string[],
  dtypes: DTypes,
  options: ExportLibraryOptions,
  context: CliContext,
): Promise<ExportLibraryResult> {
  if (options.model !== undefined)
    throw usageError('export.model', 'the weights of a model belong to one program in one storage type', {
      hint: 'export one program per folder with --model, and leave --library out',
    })
  const { out, place, searched, declarations, layouts } = await sourcesOf(options, context)
  const { manifest } = searched
  const { plan, target, dims = {} } = options
  const unused = new Set(Object.keys(dims))
  const programs: Lowered[] = []
  for (const name of new Set(names)) {
    const { config, attrs } = namedOf(name, names, options)
    for (const dtype of dtypes) {
      const resolved = resolveFirst(name, plan.split(','), { dtype, manifest, declarations, config, attrs: numbersOf(attrs) })
      const own = Object.entries(dims).filter(([dim]) => hasDim(resolved.compiled, dim))
      for (const [dim] of own) unused.delete(dim)
      programs.push(lower({ ...resolved, manifest, layouts, dtype, dims: Object.fromEntries(own) }))
    }
  }
  const [nowhere] = unused
  if (nowhere !== undefined) throw usageError('export.dims', `none of ${names.join(', ')} has a dimension ${nowhere}`)
  const only = new Set(names).size === 1 ? names[0] : undefined
  const library = libraryOf(options.library ?? only ?? basename(out), programs)
  const { files, changed } = await writeExport(library, { out, searched, target, place })
  for (const lowered of programs) context.log(`${summary(lowered)}, ${lowered.dtype}\n`)
  context.log(`${library.name}: ${programs.length} programs; ${changed.length} files written or removed\n`)
  return {
    ...{ name: library.name, out, files },
    programs: library.programs.map(({ lowered: { name, plan, dtype, dims, fixed, steps }, names: { program } }) => ({
      ...{ name, plan, dtype, dims, fixed, prefix: program, steps: steps.length },
    })),
    kernels: kernelsOf(programs),
  }
}

/** A program under the first of some plans that covers one of its graphs. @throws as `resolve`: the error of the last plan */
function resolveFirst(name: string, plans: readonly string[], options: Omit<ResolveOptions, 'plan'>): ReturnType<typeof resolve> {
  const [plan = 'unfused', ...others] = plans
  try {
    return resolve(name, { ...options, plan })
  } catch (error) {
    if (others.length === 0 || !(error instanceof HeddleError) || error.code !== 'plan.model') throw error
    return resolveFirst(name, others, options)
  }
}

type ByName = Readonly<Record<string, unknown>>

const isRecord = (value: unknown): value is ByName => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Configuration and attributes of one program: as given for one name, by name for several. @throws usage `export.attrs`, `export.config` */
function namedOf(name: string, names: readonly string[], options: ExportLibraryOptions): Pick<ExportOptions, 'config' | 'attrs'> {
  if (new Set(names).size === 1) return options
  const of = (key: 'config' | 'attrs'): ByName | undefined => {
    const given = options[key] ?? {}
    const stray = Object.keys(given).find((each) => !names.includes(each) || !isRecord(given[each]))
    if (stray !== undefined)
      throw usageError(`export.${key}`, `--${key} of several programs: expected objects by name, got ${stray}`, {
        hint: `write them by name, such as --${key} '{ "${name}": { ... } }'`,
      })
    const own = given[name]
    return isRecord(own) ? own : undefined
  }
  return { config: of('config'), attrs: of('attrs') }
}

/**
 * Generates the files of `generated/` from kernels: one file per instance, the registry and the manifest. Pure and byte-reproducible: the same
 * kernels give the same source, whatever the machine, the time or the order they come in.
 */
import { createHash } from 'node:crypto'
import { usageError } from '../errors.js'
import { dtypeInfo } from '../ir/dtype.js'
import { allInstances, type Instance, resolveDType } from '../ir/instance.js'
import type { Kernel } from '../ir/kernel.js'
import type { TemplateKernel } from '../ir/template.js'
import type { Schedule } from '../lang/plan.js'
import { type Memo, noMemo } from '../memo.js'
import { variantLines } from '../schedule/describe.js'
import { mapKernel } from '../schedule/map.js'
import { type MappedKernel, wholeOf } from '../schedule/mapped.js'
import { chooseTemplateForms } from '../schedule/normalise/forms.js'
import { type Note, notesOf } from '../schedule/notes/notes.js'
import { choiceName } from '../schedule/tuning/choice.js'
import { type TunedTile, tunedTiles } from '../schedule/tuning/tuned_tiles.js'
import { refuseUnknown, sizeName, type Tuning } from '../schedule/tuning/tuning.js'
import { emitAttention } from './attention/attention_kernel.js'
import { emitDecodeAttention } from './attention/decode_attention_kernel.js'
import { textsOf, type Written } from './instances.js'
import { emitGrouped } from './kernels/grouped.js'
import { hasOwnWidths, headersOfMapped } from './kernels/headers.js'
import { kernelTexts, type Parameters } from './kernels/kernel.js'
import { partTexts, splitBody } from './kernels/leading_launches.js'
import { emitMatmul } from './kernels/matmul.js'
import { emitReduced } from './kernels/reduced_matmul.js'
import { type TemplateInstance, type TileLaunch, templateInstances } from './kernels/template.js'
import { launcherBody } from './launch/launcher.js'
import { manifestFacts } from './manifest/facts.js'
import type { PlannedGraphs } from './manifest/graphs.js'
import { jsonText } from './manifest/json.js'
import { layoutForms } from './manifest/layout_forms.js'
import { type KernelEntry, manifestSchema } from './manifest/manifest.js'
import { registryText } from './manifest/registry.js'
import { createNames } from './print/names.js'
import { placeText, render } from './templates.js'

/** Files by path relative to `generated/`. */
export type GeneratedFiles = ReadonlyMap<string, string>

export interface GenerateOptions {
  /** Cache of sources of earlier runs; none by default. */
  readonly kept?: Memo
  /** Called with the notes of each instance. */
  readonly see?: (kernel: Kernel | TemplateKernel, notes: readonly Note[]) => void
}

/**
 * All files for all instances of the given kernels.
 * @throws usage `emit.duplicate` when two kernels have one name; `tuning.*` when the tuning file does not fit the kernels
 */
export function generate(
  kernels: readonly Kernel[],
  plans: PlannedGraphs = {},
  templates: readonly TemplateKernel[] = [],
  tuning?: Tuning,
  schedules: Readonly<Record<string, Schedule>> = {},
  { kept = noMemo, see = () => undefined }: GenerateOptions = {},
): GeneratedFiles {
  const instances = kernels.flatMap(allInstances)
  const ofTemplates = templates.flatMap(templateInstances)
  if (tuning !== undefined) refuseUnknown(tuning, [...instances, ...ofTemplates])
  return generateInstances(instances, plans, ofTemplates, tuning, schedules, { kept, see })
}

/** All files for the given instances. @throws usage `emit.duplicate` if two instances have one key; `tuning.choice`, `tuning.order` */
export function generateInstances(
  instances: readonly Instance[],
  plans: PlannedGraphs = {},
  templates: readonly TemplateInstance[] = [],
  tuning?: Tuning,
  schedules: Readonly<Record<string, Schedule>> = {},
  { kept = noMemo, see = () => undefined }: GenerateOptions = {},
): GeneratedFiles {
  const how = { tuning, schedules, kept }
  const written = [
    ...textsOf(instances, how, (instance, measured, schedule) => {
      const mapped = mapKernel(instance, measured, schedule)
      const facts = manifestFacts(wholeOf(mapped).kernel)
      return { key: mapped.key, variants: variantLines(mapped), text: emitInstance(mapped), notes: notesOf(mapped), facts }
    }),
    ...textsOf(templates, how, (template, measured) => {
      const tiles = tunedTiles(template.kernel, template.types, measured)
      const text = emitTemplate(template, { tuning: measured })
      const facts = manifestFacts(chooseTemplateForms(template.kernel, template.types))
      return { key: template.key, variants: tileLines(template, tiles), tiles, text, facts }
    }),
  ].sort((a, b) => (a.key < b.key ? -1 : 1))
  for (const { kernel, notes = [] } of written) see(kernel, notes)
  const twin = written.find(({ key }, i) => key === written[i + 1]?.key)
  if (twin !== undefined) {
    const { file, line } = twin.kernel.source
    throw usageError('emit.duplicate', `two kernels are called ${twin.key}; one is at ${file}:${line}`, {
      hint: 'rename one of the ops',
    })
  }
  const files = new Map<string, string>(written.map(({ key, text }) => [cudaPath(key), text]))
  const entries = written.map(manifestEntry)
  const layouts = layoutForms(written.map(({ kernel }) => kernel))
  const named = Object.keys(layouts).length === 0 ? {} : { layouts }
  const manifest = manifestSchema.parse({ version: 1, kernels: entries, plans, ...named, matmuls: tuning?.matmuls })
  files.set('registry.cpp', registryText(entries))
  files.set('manifest.json', `${jsonText(manifest)}\n`)
  return files
}

/** CUDA source of one instance. The kernels are those of `mapped`; `launchers` may choose among them in several ways, under their own keys. */
export function emitInstance(mapped: MappedKernel, launchers: readonly MappedKernel[] = [mapped]): string {
  if (mapped.grouped !== undefined) return emitGrouped(mapped, mapped.grouped)
  const { vec } = mapped
  const instance = wholeOf(mapped)
  const { kernel, types } = instance
  const names = createNames(mapped)
  const { text, parameters } = kernelTexts(mapped)
  const fixed = Object.entries(instance.dims).map(([dim, extent]) => `${dim} = ${extent}`)
  const choices = [...Object.entries(types).map(([param, dtype]) => `${param} = ${dtype}`), ...fixed]
  return render('file', {
    op: kernel.name,
    specialisation: choices.length === 0 ? '' : ` with ${choices.join(', ')}`,
    source: placeText(kernel.source),
    schedule: launchers.flatMap(variantLines).map((v) => `${v.name}: ${v.schedule}`),
    types: Object.entries(types).map(([param, dtype]) => ({ name: names.type(param), type: dtypeInfo[dtype].cuda })),
    // If kernels take the width as an argument, a constant of that name would be unused.
    vec: hasOwnWidths(mapped) ? '' : vec,
    headers: headersOfMapped(mapped),
    parts: partTexts(mapped),
    kernels: text,
    launcher: launchers.map((each) => launcherText(each, parameters)).join('\n'),
  })
}

/** The exported launcher of a mapped kernel. For the last of several launches, it follows the function that launches this one alone. */
function launcherText(mapped: MappedKernel, parameters: Parameters): string {
  const { key, split } = mapped
  const body = launcherBody(mapped, parameters)
  if (split === undefined) return render('launcher', { key, body })
  const last = `last_of_${key}`
  return `${render('last', { name: last, body })}\n${render('launcher', { key, body: splitBody(mapped, split, last) })}`
}

/** CUDA source of one template instance: measured tiles first, then the rules; or the given launchers. */
export function emitTemplate(
  given: TemplateInstance,
  { tuning, launches }: { readonly tuning?: Tuning | undefined; readonly launches?: readonly TileLaunch[] },
): string {
  const { types } = given
  const kernel = chooseTemplateForms(given.kernel, types)
  const instance = { ...given, kernel }
  const tiles = { tuned: tunedTiles(kernel, types, tuning), ...(launches === undefined ? {} : { launches }) }
  switch (kernel.kind) {
    case 'matmul':
      return kernel.reduced === undefined ? emitMatmul(instance, kernel, tiles) : emitReduced(instance, kernel, kernel.reduced)
    case 'attention':
      return emitAttention(instance, kernel, tiles)
    case 'decode attention':
      return emitDecodeAttention(instance, kernel)
  }
}

/** One line per measured tile, as variantLines() has for the variants of a row program. */
const tileLines = ({ key }: TemplateInstance, tiles: readonly TunedTile[]): Written['variants'] =>
  tiles.map(({ choice, length, depth, fromRows, toRows, architecture, reason }) => {
    const rows = toRows === undefined ? `from ${fromRows} rows on` : `${fromRows} to ${toRows} rows`
    return {
      name: key,
      schedule: choiceName(choice),
      when: `on ${architecture} for ${sizeName({ length, depth })}, ${rows}: ${reason}`,
    }
  })

export const cudaPath = (key: string): string => `cuda/${key}.cu`

export function manifestEntry({ kernel, types, dims, key, variants, tiles = [], text, facts }: Written): KernelEntry {
  return {
    key,
    op: kernel.name,
    types: { ...types },
    fixedDims: { ...dims },
    file: cudaPath(key),
    digest: createHash('sha256').update(text).digest('hex'),
    buffers: kernel.tensors.map(({ name, access, dtype, dims: extents, layout, updates, constant }) => ({
      name,
      access,
      dtype: resolveDType(dtype, types),
      dims: [...extents],
      layout: layout.name,
      ...(updates === undefined ? {} : { updates }),
      ...(constant === undefined ? {} : { constant }),
    })),
    dims: [...kernel.dims],
    attrs: kernel.attrs.map((attr) => ({ name: attr.name, type: attr.type, default: attr.default })),
    facts: facts ?? manifestFacts(kernel),
    ...(tiles.length === 0 ? {} : { measured: tiles.map(measuredFor) }),
    variants: variants.map(({ name, schedule, when }) => ({ kernel: name, schedule, when })),
  }
}

const measuredFor = ({ architecture, length, depth, fromRows, toRows }: TunedTile) => ({
  architecture,
  length,
  ...(depth === undefined ? {} : { depth }),
  fromRows,
  ...(toRows === undefined ? {} : { toRows }),
})

/**
 * Template kernels as CUDA source: a struct with the compiled slots, and a launcher that checks the arguments and passes the slots to the main loop
 * of a device header. No algorithm is written here, only types, names and slots.
 */
import { type DType, dtypeInfo } from '../../ir/dtype.js'
import { allTypes, instanceKey } from '../../ir/instance.js'
import { givenDims } from '../../ir/kernel.js'
import type { TemplateKernel } from '../../ir/template.js'
import { isUpdating } from '../../ir/update.js'
import { sizeOf } from '../../schedule/access/access.js'
import type { TileChoice } from '../../schedule/tiles.js'
import type { TunedTile } from '../../schedule/tuning/tuned_tiles.js'
import { runsOn } from '../launch/conditions.js'
import { type Scope, type Used, wideText } from '../print/expression.js'
import { argumentText, handleText, type Names, scalarText, storageText } from '../print/names.js'
import { scalarHeaders } from '../print/scalar_headers.js'
import { placeText, render } from '../templates.js'
import { bodyWriter, lines } from './frame.js'

/** One specialisation of a template kernel. */
export interface TemplateInstance {
  readonly kernel: TemplateKernel
  readonly types: Readonly<Record<string, DType>>
  readonly key: string
}

/** Every combination of the storage types that a template kernel declares. */
export const templateInstances = (kernel: TemplateKernel): TemplateInstance[] =>
  allTypes(kernel).map((types) => ({ kernel, types, key: instanceKey(kernel.name, types) }))

/** One way to launch a template kernel: by the rules and measurements, or always with one tile. */
export interface TileLaunch {
  readonly key: string
  readonly choice?: TileChoice
  /** Size of heads for which a tile of attention is compiled. */
  readonly length?: number
}

/** Choice of tiles in the launchers of a file. */
export interface Tiles {
  /** Measured tiles, which precede the rules. */
  readonly tuned: readonly TunedTile[]
  /** Launchers of the file; by default the kernel's own. */
  readonly launches?: readonly TileLaunch[]
  /** Set if the launcher is a function of the file, which the launcher of the whole runs. */
  readonly part?: { readonly name: string; readonly whole: string }
}

/** Parts that each kind of template supplies. */
export interface TemplateText {
  readonly comment: string
  /** The device header with the main loop. */
  readonly include: string
  /** Other headers. */
  readonly also?: readonly string[]
  /** Source after the struct, in its namespace. */
  readonly beside?: string
  /** The struct of slots, with the kernel's parameters that it uses as members. */
  readonly slots: { readonly name: string; readonly comment: string; readonly body: string }
  /** Statements that launch, given the source that makes the slots; `launch` gives the key and the tile. */
  readonly launch: (slots: string, launch: TileLaunch) => readonly string[]
  /** Extents that must not be zero for there to be work, as source. */
  readonly extents: readonly string[]
}

/** Names, with those that the source of the slots has used, tensors included. */
export interface Noted extends Pick<Scope, 'names'> {
  readonly used: Used & { readonly tensors: Set<string> }
}

/** The whole file of an instance. `noted` has recorded every expression of the slots, so that it knows the parameters they use. */
export function templateFile(instance: TemplateInstance, noted: Noted, text: TemplateText, tiles: Tiles): string {
  const { kernel, types, key } = instance
  const { names, used } = noted
  const dims = kernel.dims.filter((name) => used.dims.has(name))
  const attrs = kernel.attrs.filter((attr) => used.attrs.has(attr.name))
  const tensors = kernel.tensors.filter(({ name }) => used.tensors.has(name))
  const members = [
    ...dims.map((name) => `int ${names.dim(name)}`),
    ...attrs.map((attr) => `${scalarText[attr.type]} ${names.attr(attr.name)}`),
    ...tensors.map((tensor) => `${handleText(tensor, names)} ${names.tensor(tensor.name)}`),
  ]
  const values = [
    ...dims.map((name) => `static_cast<int>(${names.dim(name)})`),
    ...attrs.map((attr) => names.attr(attr.name)),
    ...tensors.map((tensor) => names.tensor(tensor.name)),
  ]
  const choices = Object.entries(types).map(([param, dtype]) => `${param} = ${dtype}`)
  return render('template', {
    name: kernel.name,
    specialisation: choices.length === 0 ? '' : ` with ${choices.join(', ')}`,
    source: placeText(kernel.source),
    comment: text.comment,
    headers: [...new Set([text.include, ...(text.also ?? []), ...scalarHeaders(kernel)])],
    updates: isUpdating(kernel),
    tuned: tiles.tuned.length > 0,
    space: spaceOf(key),
    types: Object.entries(types).map(([param, dtype]) => ({ name: names.type(param), type: dtypeInfo[dtype].cuda })),
    slots: render('slots', { ...text.slots, members }) + (text.beside === undefined ? '' : `\n${text.beside}`),
    launcher: (tiles.launches ?? [{ key }])
      .map((launch) => {
        const lines = text.launch(`${text.slots.name}{${values.join(', ')}}`, launch)
        const body = launcherText(instance, launch.key, names, { ...text, dims }, lines)
        if (tiles.part === undefined) return render('launcher', { key: launch.key, body })
        return `${render('last', { name: tiles.part.name, body })}\n${tiles.part.whole}`
      })
      .join('\n'),
  })
}

/** C++ namespace of an instance's types: its own, since a kernel library holds many. */
const spaceOf = (key: string): string => `slots_of_${key}`

function launcherText(
  { kernel, key: instance }: TemplateInstance,
  key: string,
  names: Names,
  { extents, dims: slots }: Pick<TemplateText, 'extents'> & { readonly dims: readonly string[] },
  statements: readonly string[],
): string {
  const writer = bodyWriter()
  const given = givenDims(kernel)
  const counts = [kernel.tensors, given, kernel.attrs].map((list) => list.length).join(', ')
  writer.writeLine(`using namespace ${spaceOf(instance)};`)
  writer.writeLine(`heddle::Arguments arguments(launch, error, {"${key}", ${counts}});`)
  given.forEach((dim, i) => {
    writer.writeLine(`const int64_t ${names.dim(dim)} = arguments.dim(${i}, "${dim}");`)
  })
  kernel.attrs.forEach(({ name, type }, i) => {
    writer.writeLine(`const ${scalarText[type]} ${names.attr(name)} = arguments.${type}_attr(${i}, "${name}");`)
  })
  const launcher: Scope = {
    names,
    used: { dims: new Set(), attrs: new Set(), indices: new Set() },
    tensors: kernel.tensors,
    fixed: {},
    elements: new Map(),
  }
  const read = new Set([...slots, ...kernel.tensors.flatMap(({ dims }) => dims)])
  if (kernel.kind === 'matmul')
    for (const [dim, extent] of Object.entries(kernel.computed ?? {}))
      if (read.has(dim)) writer.writeLine(`const int64_t ${names.dim(dim)} = ${wideText(extent, launcher)};`)
  kernel.tensors.forEach((tensor, i) => {
    const elements = wideText(sizeOf(tensor, {}), launcher, (operand) => `heddle::Count(${operand})`)
    const handle = `arguments.${argumentText(tensor)}<${storageText(tensor, names)}>(${i}, "${tensor.name}", ${elements})`
    writer.writeLine(`const auto ${names.tensor(tensor.name)} = ${handle};`)
    const before = kernel.tensors.findIndex(({ name }) => name === tensor.updates)
    if (before < 0) return
    const tensors = `${i}, "${tensor.name}", ${before}, "${tensor.updates}"`
    writer.writeLine(`heddle::check_update(arguments, launch, error, "${key}", ${tensors});`)
  })
  const empty = extents.map((extent) => `${extent} == 0`).join(' || ')
  writer.writeLine(`if (arguments.status != HEDDLE_OK || ${empty}) return arguments.status;`)
  for (const statement of statements) writer.writeLine(statement)
  return lines(writer)
}

/** Condition under which a measured tile is used; the arguments name the measured sizes. */
export function tileCondition(
  { length, depth, fromRows, toRows, architecture }: TunedTile,
  name: { readonly length: string; readonly depth?: string; readonly rows: string },
): string {
  const tests = [
    `${name.length} == ${length}`,
    ...(depth === undefined || name.depth === undefined ? [] : [`${name.depth} == ${depth}`]),
    ...(fromRows === 1 ? [] : [`${name.rows} >= ${fromRows}`]),
    ...(toRows === undefined ? [] : [`${name.rows} <= ${toRows}`]),
    // Last, since it queries the device.
    runsOn(architecture),
  ]
  return tests.join(' && ')
}

/** Names for a template's source, in which its own parameters take precedence. */
export function declareNames(kernel: TemplateKernel, names: Names): Names {
  for (const tensor of kernel.tensors) names.tensor(tensor.name)
  for (const dim of kernel.dims) names.dim(dim)
  return names
}

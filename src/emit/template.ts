/**
 * Template kernels as CUDA text: a struct with the compiled slots, and a launcher that checks the arguments and hands the slots to
 * the main loop of a device header. No algorithm is written here, only types, names and slots.
 */
import { type DType, dtypeInfo } from '../ir/dtype.js'
import { allTypes, instanceKey } from '../ir/instance.js'
import type { TemplateKernel } from '../ir/template.js'
import { isUpdating } from '../ir/update.js'
import { sizeOf } from '../schedule/access.js'
import { type Scope, wideText } from './expression.js'
import { bodyWriter, lines } from './kernel.js'
import { type Names, scalarText, storageText } from './names.js'
import { render } from './templates.js'

/** One specialisation of a template kernel. */
export interface TemplateInstance {
  readonly kernel: TemplateKernel
  readonly types: Readonly<Record<string, DType>>
  readonly key: string
}

/** Every combination of the storage types a template kernel declares. */
export const templateInstances = (kernel: TemplateKernel): TemplateInstance[] =>
  allTypes(kernel).map((types) => ({ kernel, types, key: instanceKey(kernel.name, types) }))

/** What each kind of template supplies. */
export interface TemplateText {
  readonly comment: string
  /** The device header with the main loop. */
  readonly include: string
  /** The struct of slots, with the kernel's parameters it uses as members. */
  readonly slots: { readonly name: string; readonly comment: string; readonly body: string }
  /** The call of the header's launch function, given the text that makes the slots. */
  readonly call: (slots: string) => string
  /** Extents of which none may be zero for there to be work, as text. */
  readonly extents: readonly string[]
}

/** The whole file of an instance. `scope` has seen every expression of the slots, so that it knows the parameters they use. */
export function templateFile(instance: TemplateInstance, scope: Scope, text: TemplateText): string {
  const { kernel, types, key } = instance
  const { names, used } = scope
  const dims = kernel.dims.filter((name) => used.dims.has(name))
  const attrs = kernel.attrs.filter((attr) => used.attrs.has(attr.name))
  const tensors = kernel.tensors.filter((tensor) => usesTensor(text.slots.body, names.tensor(tensor.name)))
  const members = [
    ...dims.map((name) => `int ${names.dim(name)}`),
    ...attrs.map((attr) => `${scalarText[attr.type]} ${names.attr(attr.name)}`),
    ...tensors.map((t) => `heddle::${t.access === 'in' ? 'In' : 'Out'}<${storageText(t, names)}> ${names.tensor(t.name)}`),
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
    source: `${kernel.source.file}:${kernel.source.line}`,
    comment: text.comment,
    include: text.include,
    updates: isUpdating(kernel),
    space: spaceOf(key),
    types: Object.entries(types).map(([param, dtype]) => ({ name: names.type(param), type: dtypeInfo[dtype].cuda })),
    slots: render('slots', { ...text.slots, members }),
    launcher: render('launcher', { key, body: launcherText(instance, scope, text, `${text.slots.name}{${values.join(', ')}}`) }),
  })
}

/** The C++ namespace of an instance's types: its own, since a kernel library holds many. */
const spaceOf = (key: string): string => `slots_of_${key}`

/** Whether a struct's code, comments apart, mentions a tensor. */
const usesTensor = (body: string, name: string): boolean => new RegExp(`\\b${name}\\b`).test(body.replace(/\/\/.*$/gm, ''))

function launcherText({ kernel, key }: TemplateInstance, scope: Scope, text: TemplateText, slots: string): string {
  const { names } = scope
  const writer = bodyWriter()
  const counts = [kernel.tensors, kernel.dims, kernel.attrs].map((list) => list.length).join(', ')
  writer.writeLine(`using namespace ${spaceOf(key)};`)
  writer.writeLine(`heddle::Arguments arguments(launch, error, {"${key}", ${counts}});`)
  kernel.dims.forEach((dim, i) => {
    writer.writeLine(`const int64_t ${names.dim(dim)} = arguments.dim(${i}, "${dim}");`)
  })
  kernel.attrs.forEach(({ name, type }, i) => {
    writer.writeLine(`const ${scalarText[type]} ${names.attr(name)} = arguments.${type}_attr(${i}, "${name}");`)
  })
  const launcher: Scope = { ...scope, used: { dims: new Set(), attrs: new Set(), indices: new Set() } }
  kernel.tensors.forEach((tensor, i) => {
    const elements = wideText(sizeOf(tensor, {}), launcher, (operand) => `heddle::Count(${operand})`)
    const handle = `arguments.${tensor.access}<${storageText(tensor, names)}>(${i}, "${tensor.name}", ${elements})`
    writer.writeLine(`const auto ${names.tensor(tensor.name)} = ${handle};`)
    const before = kernel.tensors.findIndex(({ name }) => name === tensor.updates)
    if (before < 0) return
    const tensors = `${i}, "${tensor.name}", ${before}, "${tensor.updates}"`
    writer.writeLine(`heddle::check_update(arguments, launch, error, "${key}", ${tensors});`)
  })
  const empty = text.extents.map((extent) => `${extent} == 0`).join(' || ')
  writer.writeLine(`if (arguments.status != HEDDLE_OK || ${empty}) return arguments.status;`)
  writer.writeLine(`return ${text.call(slots)};`)
  return lines(writer)
}

/** Names for a template's text, where its own parameters come first. */
export function declareNames(kernel: TemplateKernel, names: Names): Names {
  for (const tensor of kernel.tensors) names.tensor(tensor.name)
  for (const dim of kernel.dims) names.dim(dim)
  return names
}

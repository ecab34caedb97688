/**
 * From kernels to the text of `generated/`: one file an instance, the registry, the manifest and the bindings. Pure and
 * byte-reproducible: the same kernels give the same text, whatever the machine, the time or the order they come in.
 */
import { createHash } from 'node:crypto'
import { usageError } from '../errors.js'
import { dtypeInfo } from '../ir/dtype.js'
import { allInstances, type Instance, resolveDType } from '../ir/instance.js'
import type { Kernel } from '../ir/kernel.js'
import { variantLines } from '../schedule/describe.js'
import { mapKernel } from '../schedule/map.js'
import type { MappedKernel } from '../schedule/mapped.js'
import { bindingsText } from './bindings.js'
import type { PlannedGraphs } from './graphs.js'
import { kernelTexts } from './kernel.js'
import { launcherBody } from './launcher.js'
import { type KernelEntry, manifestSchema } from './manifest.js'
import { createNames } from './names.js'
import { render } from './templates.js'

/** Files by path relative to `generated/`. */
export type GeneratedFiles = ReadonlyMap<string, string>

/** Every file for all instances of the given kernels. @throws usage `emit.duplicate` when two kernels have one name */
export const generate = (kernels: readonly Kernel[], plans: PlannedGraphs = {}): GeneratedFiles =>
  generateInstances(kernels.flatMap(allInstances), plans)

/** Every file for the given instances. @throws usage `emit.duplicate` when two instances have one key */
export function generateInstances(instances: readonly Instance[], plans: PlannedGraphs = {}): GeneratedFiles {
  const mapped = instances.map(mapKernel).sort((a, b) => (a.key < b.key ? -1 : 1))
  const twin = mapped.find((m, i) => m.key === mapped[i + 1]?.key)
  if (twin !== undefined) {
    const { file, line } = twin.instance.kernel.source
    throw usageError('emit.duplicate', `two kernels are called ${twin.key}; one is at ${file}:${line}`, {
      hint: 'rename one of the ops',
    })
  }
  const files = new Map<string, string>()
  const entries = mapped.map((m): KernelEntry => {
    const text = emitInstance(m)
    files.set(cudaPath(m), text)
    return manifestEntry(m, text)
  })
  const manifest = manifestSchema.parse({ version: 1, kernels: entries, plans })
  files.set('registry.cpp', registryText(entries))
  files.set('manifest.json', `${JSON.stringify(manifest, null, 2)}\n`)
  files.set('bindings.ts', bindingsText(mapped.map((m) => m.instance.kernel)))
  return files
}

/** The CUDA text of one instance. */
export function emitInstance(mapped: MappedKernel): string {
  const { instance, key, vec } = mapped
  const { kernel, types } = instance
  const names = createNames(mapped)
  const { text, parameters } = kernelTexts(mapped)
  const fixed = Object.entries(instance.dims).map(([dim, extent]) => `${dim} = ${extent}`)
  const choices = [...Object.entries(types).map(([param, dtype]) => `${param} = ${dtype}`), ...fixed]
  return render('file', {
    op: kernel.name,
    specialisation: choices.length === 0 ? '' : ` with ${choices.join(', ')}`,
    source: `${kernel.source.file}:${kernel.source.line}`,
    schedule: variantLines(mapped).map((v) => `${v.name}: ${v.schedule}`),
    types: Object.entries(types).map(([param, dtype]) => ({ name: names.type(param), type: dtypeInfo[dtype].cuda })),
    vec,
    kernels: text,
    launcher: render('launcher', { key, body: launcherBody(mapped, parameters) }),
  })
}

const cudaPath = ({ key }: MappedKernel): string => `cuda/${key}.cu`

function manifestEntry(mapped: MappedKernel, text: string): KernelEntry {
  const { kernel, types, dims } = mapped.instance
  return {
    key: mapped.key,
    op: kernel.name,
    types: { ...types },
    fixedDims: { ...dims },
    file: cudaPath(mapped),
    digest: createHash('sha256').update(text).digest('hex'),
    buffers: kernel.tensors.map(({ name, access, dtype, dims: extents, layout }) => ({
      name,
      access,
      dtype: resolveDType(dtype, types),
      dims: [...extents],
      layout: layout.name,
    })),
    dims: [...kernel.dims],
    attrs: kernel.attrs.map((attr) => ({ name: attr.name, type: attr.type, default: attr.default })),
    variants: variantLines(mapped).map(({ name, schedule, when }) => ({ kernel: name, schedule, when })),
  }
}

const registryText = (entries: readonly KernelEntry[]): string =>
  render('registry', {
    kernels: entries.map(({ key, digest, buffers, dims, attrs }) => ({
      key,
      digest,
      buffers: buffers.length,
      dims: dims.length,
      attrs: attrs.length,
    })),
  })

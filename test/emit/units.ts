/** Many kernels in few translation units, so that a test of hundreds compiles headers a few times and not hundreds of times. */
import type { GeneratedFiles } from '../../src/emit/generate.js'
import { manifestSchema } from '../../src/emit/manifest/manifest.js'

/** The same files with `count` kernel files: each kernel's source in its own namespace, preceded by headers. */
export function inUnits(files: GeneratedFiles, count: number): GeneratedFiles {
  const manifest = manifestSchema.parse(JSON.parse(files.get('manifest.json') ?? ''))
  const sources = [...new Set(manifest.kernels.map(({ file }) => file))].sort()
  const unitOf = new Map(sources.map((source, at) => [source, `cuda/unit${at % count}.cu`]))
  const made = new Map([...files].filter(([path]) => !unitOf.has(path)))
  for (const unit of new Set(unitOf.values())) {
    const members = sources.filter((source) => unitOf.get(source) === unit)
    const headers = new Set<string>()
    const bodies = members.map((source, at) => {
      const lines = (files.get(source) ?? '').split('\n')
      for (const line of lines) if (line.startsWith('#include')) headers.add(line)
      return `namespace kernel${at} {\n${lines.filter((line) => !line.startsWith('#include')).join('\n')}\n}\n`
    })
    made.set(unit, `${[...headers].sort().join('\n')}\n\n${bodies.join('\n')}`)
  }
  const kernels = manifest.kernels.map((entry) => ({ ...entry, file: unitOf.get(entry.file) ?? entry.file }))
  return made.set('manifest.json', JSON.stringify({ ...manifest, kernels }))
}

/** Values of `heddle/std` and `heddle/specs` in a project that has the package installed, where both are declaration files. */
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { shippedOf } from '../../../src/frontend/cache/declared.js'
import { openProject } from '../../../src/frontend/project/project.js'
import { readModules } from '../../../src/frontend/read/cached.js'
import { readFileAlone, readProject, readShipped } from '../../../src/frontend/read/read.js'
import { printKernel } from '../../../src/ir/print.js'
import { structuralHash } from '../../../src/ir/structural_hash.js'

const home = fileURLToPath(new URL('../../..', import.meta.url))
let root = ''

const own = `import { op, tensor } from 'heddle'
import { geluErf } from 'heddle/specs/ops/activations.js'
import { toInt8 } from 'heddle/std'
const io = { dims: ['m'], types: { T: ['f32'] }, inputs: { x: tensor('T', 'm') } } as const
export const eight = op('eight', { ...io, outputs: { y: tensor('i8', 'm') }, body: ({ x }) => (m) => ({ y: toInt8(x(m)) }) })
export const warm = op('warm', { ...io, outputs: { y: tensor('T', 'm') }, body: ({ x }) => (m) => ({ y: geluErf(x(m)) }) })
`

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'heddle-installed-'))
  for (const folder of ['specs', 'node_modules']) await mkdir(join(root, folder))
  await symlink(home, join(root, 'node_modules/heddle'))
  await writeFile(join(root, 'package.json'), '{ "type": "module" }\n')
  await writeFile(join(root, 'specs/index.ts'), own)
})
afterAll(() => rm(root, { recursive: true }))

it('are those of the sources, for shipped ops and for those of the project, for every request', () => {
  const opened = openProject(root)
  const { kernels, diagnostics } = readProject(opened, ['specs'], {}, new Set(['eight', 'warm']))
  expect(diagnostics).toEqual([])
  expect(kernels.map((kernel) => printKernel(kernel))).toEqual([
    expect.stringContaining('maximum(minimum(round(x[m1]), 127.0), -127.0)'),
    expect.stringContaining('gelu(x[m1])'),
  ])
  expect(readFileAlone(openProject(root), join(root, 'specs/index.ts'))).toEqual([])
})

it('make shipped ops and layouts that equal those the package reads of its own, which are stored in it', () => {
  const { files, standard, diagnostics } = readModules(openProject(home), ['specs'])
  expect(diagnostics).toEqual([])
  const { kernels, layouts } = shippedOf(files, standard)
  const read = readShipped(openProject(root), home, new Set(kernels.map(({ name }) => name)))
  const byName = new Map(kernels.map((kernel) => [kernel.name, kernel]))
  for (const kernel of read.kernels) expect(printKernel(kernel)).toBe(printKernel(byName.get(kernel.name) ?? kernel))
  expect(structuralHash(read)).toBe(structuralHash({ kernels, layouts }))
})

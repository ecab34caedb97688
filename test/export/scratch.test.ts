import { join } from 'node:path'
import { expect, it } from 'vitest'
import { conversions, graphs, layouts, programs } from '../../specs/index.js'
import { lower, resolve, writeExport } from '../../src/export/index.js'
import { searchManifests } from '../../src/toolchain/index.js'

it('writes', async () => {
  const root = process.cwd()
  const searched = await searchManifests(root)
  const { manifest } = searched
  const declarations = { graphs, programs: Object.values(programs), conversions }
  const common = { dtype: 'f32', manifest, declarations } as const
  for (const [name, plan, config, dims] of [
    ['layer_norm', 'unfused', undefined, {}],
    ['bert', 'unfused', { layers: 2, head: 'tokens' }, { h: 2, d: 32, i: 128, v: 100, p: 64, c: 3 }],
    ['bert', 'best-encoder', { layers: 2, head: 'tokens' }, { h: 2, d: 64, i: 128, v: 100, p: 64, c: 3 }],
    ['llama_step', 'unfused', { layers: 2 }, {}],
    ['llama_step', 'best-llama', { layers: 2 }, {}],
  ] as const) {
    try {
    const found = resolve(name, { ...common, plan, config })
    const lowered = lower({ ...found, ...common, layouts: layouts as never, dims })
    console.log(name, plan, lowered.dims, lowered.fixed, lowered.steps.length, lowered.storages.length)
    const files = await writeExport(lowered, { out: join('/tmp/exp', `${name}-${plan}`), searched, target: 'simt' })
    console.log(files.length)
    } catch (e) { console.log(name, plan, e) }
  }
  expect(Object.keys(manifest.plans ?? {})).toBeDefined()
  console.log(Object.keys(manifest.plans ?? {}).join(' '))
}, 100000)

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { LongestFirst } from './test/longest_first.js'

/**
 * Tests are grouped by what they need, read from the file name: nothing (`x.test.ts`), the simt device (`x.simt.test.ts`), nvcc
 * (`x.nvcc.test.ts`), Chromium (`x.page.test.ts`); what plants faults into modules is a group of its own. The gpu group runs from the bundle: `heddle selftest`.
 * Results also go to `.heddle/vitest.json`.
 */
const source = (file: string): string => fileURLToPath(new URL(file, import.meta.url))
const alias = { 'heddle/std': source('./src/std/index.ts'), heddle: source('./src/index.ts') }
const groups = ['simt', 'nvcc']
/** Loads modules with faults planted into them, which no other test may see. */
const faulty = 'test/fuse/random_faults.test.ts'
const setups: Readonly<Record<string, string>> = { nvcc: 'test/toolchain/native_setup_cuda.ts' }
const minutes = 60_000

/**
 * The digest of the manifest that ships, as the built package has it: files with a process each would hold eight megabytes against the schema
 * in every one. The group `nothing` does.
 */
const shippedManifest = {
  name: 'shipped-manifest',
  load: (id: string): string | null => {
    if (id !== source('./src/emit/shipped.ts')) return null
    const digest = createHash('sha256')
      .update(readFileSync(source('./generated/manifest.json')))
      .digest('hex')
    return `export const shippedManifest = ${JSON.stringify(digest)}`
  },
}

export default defineConfig({
  resolve: { alias },
  test: {
    reporters: ['default', 'json'],
    // Oracles run in Node and kernels beside it, so that two files keep two cores busy.
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    outputFile: { json: '.heddle/vitest.json' },
    projects: [
      {
        extends: true,
        test: {
          name: 'nothing',
          // Modules stay from file to file, since the TypeScript compiler and all of src take seconds to load. What a module keeps is
          // found by content or by identity, and a test that sets a variable of the environment unsets it.
          isolate: false,
          include: ['test/**/*.test.ts'],
          exclude: [...groups, 'page'].map((group) => `test/**/*.${group}.test.ts`).concat(faulty),
          testTimeout: 4 * minutes,
          hookTimeout: 4 * minutes,
        },
      },
      {
        extends: true,
        test: { name: 'page', include: ['test/**/*.page.test.ts'], testTimeout: 2 * minutes, hookTimeout: 2 * minutes },
      },
      { extends: true, test: { name: 'faults', include: [faulty], testTimeout: 4 * minutes, hookTimeout: 4 * minutes } },
      // Kernel libraries and the addon read the environment once, when they are loaded: files that load them have a process each.
      ...groups.map((group) => ({
        extends: true as const,
        plugins: [shippedManifest],
        test: {
          name: group,
          isolate: true,
          include: [`test/**/*.${group}.test.ts`],
          globalSetup: setups[group] ?? 'test/toolchain/native_setup.ts',
          testTimeout: 10 * minutes,
          hookTimeout: 10 * minutes,
        },
      })),
    ],
  },
})

import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { LongestFirst } from './test/longest_first.js'
import { waitingFiles } from './test/waiting.js'

/**
 * Tests are grouped by what they need, read from the file name: nothing (`x.test.ts`), the simt device (`x.simt.test.ts`), nvcc
 * (`x.nvcc.test.ts`), Chromium (`x.page.test.ts`); what plants faults into modules is a group of its own. The gpu group runs from the bundle: `heddle selftest`.
 * Results also go to `.heddle/vitest.json`.
 */
const source = (file: string): string => fileURLToPath(new URL(file, import.meta.url))
const alias = { 'heddle/std': source('./src/std/index.ts'), heddle: source('./src/index.ts') }
const groups = ['simt', 'nvcc']
const onSimt = 'test/toolchain/native_setup.ts'
/** Loads modules with faults planted into them, which no other test may see. */
const faulty = 'test/fuse/random_faults.test.ts'
const minutes = 60_000

/**
 * Files of the simt group with a process each: those that set a variable of the environment, since kernel libraries and the addon read it once,
 * when they are loaded, and those that misuse the addon. To load all of src and to warm it up takes as long as a usual file's tests do, so that
 * the others share a process.
 */
const isAlone = (file: string): boolean =>
  /^test\/runtime\/addon/.test(file) ||
  /process\.env\.\w+ = |process\.env\[|stubEnv|unstubAllEnvs/.test(readFileSync(source(file), 'utf8'))
const alone = readdirSync(source('test'), { recursive: true, encoding: 'utf8' })
  .map((file) => `test/${file}`)
  .filter((file) => file.endsWith('.simt.test.ts') && isAlone(file))

const waiting = waitingFiles()

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
    // The compiler and the oracles make much that is soon forgotten: a fifth of their time goes into collecting it where there is little room.
    execArgv: ['--max-semi-space-size=64'],
    sequence: { sequencer: LongestFirst },
    outputFile: { json: '.heddle/vitest.json' },
    projects: [
      {
        extends: true,
        test: {
          name: 'nothing',
          // Modules stay from file to file, since the TypeScript compiler and all of src take seconds to load. Caches of
          // modules are keyed by content or identity, and a test that sets an environment variable unsets it.
          isolate: false,
          include: ['test/**/*.test.ts'],
          exclude: [...groups, 'page'].map((group) => `test/**/*.${group}.test.ts`).concat(faulty, waiting),
          testTimeout: 4 * minutes,
          hookTimeout: 4 * minutes,
        },
      },
      {
        extends: true,
        test: {
          name: 'page',
          include: ['test/**/*.page.test.ts'],
          exclude: [...waiting],
          testTimeout: 2 * minutes,
          hookTimeout: 2 * minutes,
        },
      },
      {
        extends: true,
        test: { name: 'faults', include: [faulty], exclude: [...waiting], testTimeout: 4 * minutes, hookTimeout: 4 * minutes },
      },
      ...[
        {
          name: 'simt',
          isolate: false,
          include: ['test/**/*.simt.test.ts'],
          exclude: [...alone, ...waiting],
          globalSetup: onSimt,
        },
        { name: 'simt-alone', isolate: true, include: alone, exclude: [...waiting], globalSetup: onSimt },
        {
          name: 'nvcc',
          isolate: true,
          include: ['test/**/*.nvcc.test.ts'],
          exclude: [...waiting],
          globalSetup: 'test/toolchain/native_setup_cuda.ts',
        },
      ].map((test) => ({
        extends: true as const,
        plugins: [shippedManifest],
        test: { ...test, testTimeout: 10 * minutes, hookTimeout: 10 * minutes },
      })),
    ],
  },
})

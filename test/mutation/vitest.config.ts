/** The tests that Stryker runs: those that need no compiler and could notice a fault in a pass, in the order in which they are likely to. */
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import base from '../../vitest.config.js'

/** Tests of single passes first, whole plans last. */
const order = [
  'schedule/',
  ...['columns', 'masks', 'softmax', 'graph_refusals', 'group_refusals', 'facts', 's', 't', 'r', 'cost'].map(
    (file) => `fuse/${file}`,
  ),
  'product/',
  'fuse/',
  'emit/',
  'ir/',
  ...['attention', 'packed', 'apply', 'auto'].map((file) => `fuse/${file}`),
]

class LikelyFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const fits = order.flatMap((start, at) => (moduleId.includes(`/test/${start}`) ? [{ at, length: start.length }] : []))
      return fits.sort((a, b) => b.length - a.length)[0]?.at ?? -1
    }
    return [...files].sort((a, b) => rank(a) - rank(b) || (a.moduleId < b.moduleId ? -1 : 1))
  }
}

export default defineConfig({
  resolve: { alias: base.resolve?.alias ?? {} },
  test: {
    // Mutants share no cache entries.
    env: { HEDDLE_KEPT: 'off' },
    include: ['fuse', 'schedule', 'ir', 'emit', 'product'].map((room) => `test/${room}/**/*.test.ts`),
    exclude: [
      'test/**/*.{simt,nvcc}.test.ts',
      // Thousands of graphs, and faults planted into modules, take minutes.
      'test/fuse/random_*.test.ts',
      // Tests of the cache between runs, which is off here.
      'test/fuse/cached_plans.test.ts',
      // They plan all shipped graphs while they load, or read separate specs.
      ...['fuse/tuned', 'fuse/parameters', 'ir/store', 'ir/update'].map((file) => `test/${file}.test.ts`),
    ],
    setupFiles: ['test/mutation/specs_once.ts'],
    // Modules are shared between files: a mutant runs in many, each of which would load the compiler again.
    isolate: false,
    sequence: { sequencer: LikelyFirst },
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
})

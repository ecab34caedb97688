/**
 * The order of test files without a known earlier run, as on a new machine: a project's longest first, so that none of them is left for the end,
 * when the other workers are idle. Vitest itself would sort by the files' sizes, and the longest-running files are small.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { byTurns } from './by_turns.js'
import { waitingFiles } from './waiting.js'

/** Those of every commit come before those that take turns. */
const always = [
  'test/conformance/ops.simt.test.ts',
  'test/conformance/fused.simt.test.ts',
  'test/fuzz/fuzz.simt.test.ts',
  'test/conformance/matmul.simt.test.ts',
  'test/conformance/order.simt.test.ts',
]

function rank({ moduleId }: TestSpecification): number {
  const places = [always, ...byTurns].map((files) => files.findIndex((file) => moduleId.endsWith(`/${file}`)))
  const found = places.filter((at) => at >= 0)
  return found.length === 0 ? Number.POSITIVE_INFINITY : Math.min(...found)
}

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const waiting = waitingFiles().length
    if (waiting > 0) console.log(`${waiting} files of tests wait for their turn: npm run test:all runs them`)
    const sorted = await super.sort(files)
    const projects = [...new Set(sorted.map(({ project }) => project.name))]
    // The sort is stable, and projects stay together: files of one share modules.
    return projects.flatMap((name) => {
      const own = sorted.filter(({ project }) => project.name === name)
      return own
        .map((file) => ({ file, at: rank(file) }))
        .sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0))
        .map(({ file }) => file)
    })
  }
}

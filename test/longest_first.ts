/**
 * The order in which files of tests run where no earlier run is known, as on a new machine: a project's longest first, so that none of them
 * is left for the end, when the other workers have nothing to do. Vitest itself would go by the files' sizes, and the longest are short.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Files and folders whose tests take about a minute or more, the longest first. */
const long: readonly string[] = [
  'test/conformance/fused',
  'test/fuse/attention_variants.simt',
  'test/verify/check_project',
  'test/conformance/ops',
  'test/conformance/order',
  'test/verify/quantised',
  'test/emit/attention',
  'test/verify/workshop',
  'test/cli/plan.test',
  'test/fuse/auto',
]

const rank = ({ moduleId }: TestSpecification): number => {
  const found = long.findIndex((part) => moduleId.includes(`/${part}`))
  return found < 0 ? long.length : found
}

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const projects = [...new Set(sorted.map(({ project }) => project.name))]
    // The sort is stable, and projects stay together: files of one share modules.
    return projects.flatMap((name) => sorted.filter(({ project }) => project.name === name).sort((a, b) => rank(a) - rank(b)))
  }
}

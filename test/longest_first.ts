/**
 * The order in which files of tests run where no earlier run is known, as on a new machine: a project's longest first, so that none of them
 * is left for the end, when the other workers have nothing to do. Vitest itself would go by the files' sizes, and the longest are short.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Files and folders whose tests take about a minute or more, the longest first. */
const long: readonly string[] = [
  'test/conformance/ops',
  'test/conformance/fused',
  'test/specs/sample.simt',
  'test/models/seq2seq.simt',
  'test/examples/examples',
  'test/verify/workshop',
  'test/fuse/attention_variants',
  'test/verify/asked/asked',
  'test/emit/decode_attention.simt',
  'test/conformance/order',
  'test/product/products.simt',
  'test/emit/random_graphs',
  'test/verify/check_program',
  'test/fuse/random_graphs',
  'test/emit/compile.nvcc',
  'test/toolchain/sass.nvcc',
  'test/docs/commands',
  'test/cli/tune.simt',
  'test/emit/attention.simt',
  'test/cli/search',
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

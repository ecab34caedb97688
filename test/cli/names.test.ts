/** Meaning of bare names, order of lists, and units of times. */
import { expect, it } from 'vitest'
import { findEntry } from '../../src/bench/target/subject.js'
import { describeTarget } from '../../src/bench/target/text.js'
import { describePlans, listText } from '../../src/cli/plan_text.js'
import type { KernelEntry } from '../../src/emit/manifest/manifest.js'
import type { DType } from '../../src/ir/dtype.js'
import { heddle } from './host.js'

const instances = (op: string, ...dtypes: readonly DType[]): readonly KernelEntry[] =>
  dtypes.map((dtype) => ({ key: `${op}__${dtype}`, op, types: { T: dtype }, fixedDims: {} }) as unknown as KernelEntry)

it('an op without a storage type is f32, f16 or bf16: the first that it has', () => {
  const kernels = [...instances('norm', 'bf16', 'f16', 'f32'), ...instances('half', 'bf16', 'f16')]
  const keyOf = (name: string, dtype?: DType) => findEntry({ kernels }, name, dtype)?.key
  expect([keyOf('norm'), keyOf('norm', 'f16'), keyOf('norm__bf16'), keyOf('norm__bf16', 'f16')]).toEqual([
    'norm__f32',
    'norm__f16',
    'norm__bf16',
    'norm__bf16',
  ])
  expect([keyOf('half'), keyOf('half', 'f32'), keyOf('none')]).toEqual(['half__f16', undefined, undefined])
})

it('a time and its range have one unit', () => {
  const line = (median: number, low: number, high: number) =>
    describeTarget({ plan: 'fused', milliseconds: { median, low, high, best: low, samples: 3 } })
  expect(line(0.07682, 0.07064, 0.08602)).toBe('fused: 76.82 us (70.64 to 86.02)')
  expect(line(197.988, 188.4, 213.1)).toMatch(/^fused: 198\.\d* ms \(188\.4\d* to 213\.1\d*\)$/)
})

it("the project's plans come first, and many graphs are shortened to the prefixes of their names", () => {
  const plan = (name: string, graph: string) => ({ name, graph, groups: [] })
  const ours = [plan('mine', 'block')]
  const shipped = Array.from({ length: 40 }, (_, i) => plan('best', `llama_layer_${i}`))
  const lines = listText(describePlans([...ours, ...shipped], ours))
    .trimEnd()
    .split('\n')
  expect(lines).toEqual([
    "the project's:",
    expect.stringMatching(/^ {2}mine +block +written groups$/),
    'shipped:',
    expect.stringMatching(/^ {2}unfused +any graph +one kernel per node/),
    expect.stringMatching(/^ {2}best +llama_\* \(40 graphs\) +written groups$/),
  ])
})

it('an architecture that kernels are not built for is refused before anything is built', async () => {
  const { exitCode, log } = await heddle(['build', '--target', 'cuda', '--architecture', 'sm_70'])
  expect([exitCode, log]).toEqual([
    2,
    expect.stringMatching(
      /^error\[toolchain\.architecture\]: .*sm_70\nhint: known: sm_80, sm_90, sm_86, sm_89, sm_100, sm_120\n$/,
    ),
  ])
})

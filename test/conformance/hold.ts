/** Checks kernels of the manifest against their definition: for ops, bodies that run, and for fused kernels, IR that is interpreted. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { readManifest } from '../../src/cli/pipeline.js'
import type { KernelEntry } from '../../src/emit/manifest/manifest.js'
import { casesOf, checkedElements, type KernelCase } from '../../src/verify/cases.js'
import { runCase } from '../../src/verify/conformance.js'
import { rowOf } from '../../src/verify/rules.js'
import { instancesInTurn, isTurnOf, turnOf } from '../turns.js'
import { type OpenSubject, openSubject, root } from './simt.js'

/** Cases that every kernel has more of; and those whose rows have one length, which may be a long one. */
const [least, few] = [20, 4]

/** Maximum number of elements of a buffer of a case; the larger one at every third commit of an op, and if there are few cases otherwise. */
interface Sizes {
  readonly usual: number
  readonly most: number
}

/** A grid has no more blocks in its second dimension. */
const mostBlocks = 65_535

/**
 * True for a case that takes minutes here and a moment on a GPU, where `heddle selftest` has it, as `npm run test:all` does: the blocks of a reduction of columns, which are up to 1,024
 * threads that meet several times, and more of them than a grid has in its second dimension. Rows of other kernels, which have such cases here, share blocks.
 */
const isLong = ({ entry, dims }: KernelCase): boolean => {
  const [row, { loops = [] }] = [rowOf(entry), entry.facts ?? {}]
  const reducesColumns = entry.buffers.some(({ access, dims: of }) =>
    access === 'out' ? false : of.at(-1) === row && of.some((dim) => dim !== row && loops.includes(dim)),
  )
  const storesRow = entry.buffers.some(({ access, dims: of }) => access === 'out' && of.includes(row))
  return reducesColumns && storesRow && !loops.includes(row) && Object.values(dims).some((extent) => extent > mostBlocks)
}

/** Rows that a schedule no longer spreads over blocks, as in `casesOf`. */
const unspread = 600

/** Of the cases of so many rows, one for each dimension that is swept, the first alone: each takes seconds here. `heddle selftest` has all of them. */
function withOneUnspread(cases: readonly KernelCase[]): readonly KernelCase[] {
  const first = cases.find(({ dims }) => Object.values(dims).includes(unspread))
  return cases.filter((test) => test === first || !Object.values(test.dims).includes(unspread))
}

/** Declares a test for every kernel that is chosen and whose turn it is. */
export async function holdKernels(chosen: (entry: KernelEntry) => boolean, { usual, most }: Sizes): Promise<void> {
  const { kernels } = await readManifest(root)
  const held = instancesInTurn(kernels.filter(chosen))
  let subject: OpenSubject
  beforeAll(async () => {
    subject = await openSubject(held.map(({ key }) => key))
  })
  afterAll(() => subject.device.close())

  it.each(held)('$key', async (entry) => {
    // `heddle selftest` tries every case of ops, and `heddle check --thorough` those of derived kernels too.
    const enough = Object.keys(entry.fixedDims).length > 0 ? few : least
    const sizes = [...(isTurnOf(entry.op) ? [] : [usual]), most, checkedElements.thorough]
    const short = (all: readonly KernelCase[]) =>
      turnOf() === undefined ? all : withOneUnspread(all.filter((test) => !isLong(test)))
    const drawn = sizes.map((size) => () => short(casesOf(entry, size, 'by turns')))
    const cases = drawn.reduce<ReturnType<typeof casesOf>>((found, draw) => (found.length > enough ? found : draw()), [])
    const failures: string[] = []
    for (const test of cases) {
      const result = await runCase(subject, test)
      if (!result.passed) failures.push(`${result.name}: ${result.detail}`)
    }
    expect(cases.length).toBeGreaterThan(enough)
    expect(failures.slice(0, 5), `${failures.length} of ${cases.length} cases`).toEqual([])
  })
}

import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readManifest } from '../../src/cli/pipeline.js'
import { type KernelSource, loadedKernels } from '../../src/runtime/library.js'
import { demandKernels, generatedFolder } from '../../src/toolchain/index.js'
import { casesOf } from '../../src/verify/cases.js'
import { memoryAfter, runCase } from '../../src/verify/conformance.js'
import { instancesInTurn, inTurn } from '../turns.js'
import { type OpenSubject, openSubject, optimise, root } from './simt.js'

const { kernels } = await readManifest(root)
const held = inTurn(instancesInTurn(kernels))
const orders = ['forward', 'reverse', 'shuffle'] as const

let subject: OpenSubject
let folder: string
/** The library of the kernels under test, as it was built. */
let built: string
let libraries: Map<string, KernelSource>

beforeAll(async () => {
  subject = await openSubject()
  const placed = held.map((entry) => ({ entry, folder: generatedFolder(root) }))
  built = (await demandKernels(placed, { target: 'simt', root, optimise })).library
  folder = mkdtempSync(join(tmpdir(), 'heddle-order-'))
  // A kernel library reads the order when it is loaded, so each order gets a separate copy.
  libraries = new Map(
    orders.map((order) => {
      const copy = join(folder, `${order}.so`)
      copyFileSync(built, copy)
      process.env.HEDDLE_SIMT_ORDER = order
      return [order, loadedKernels(subject.device.loadLibrary(copy))]
    }),
  )
  delete process.env.HEDDLE_SIMT_ORDER
})
afterAll(() => {
  subject.device.close()
  rmSync(folder, { recursive: true })
})

type Case = ReturnType<typeof casesOf>[number]

const instances = held.map(({ key }) => key)

/** The subject whose kernels run in an order. */
function inOrder(order: (typeof orders)[number]): OpenSubject {
  const library = libraries.get(order)
  if (library === undefined) throw new Error(`no library for ${order}`)
  return { ...subject, library }
}

/** Orders that must leave the same memory as forward order, including guard bands, if the results are right. */
async function agreeing(test: Case): Promise<string[]> {
  const blocks: Buffer[] = []
  const result = await runCase(inOrder('forward'), test, (block) => blocks.push(Buffer.from(block)))
  expect(result, test.name).toMatchObject({ passed: true })
  const same: string[] = ['forward']
  for (const order of ['reverse', 'shuffle'] as const) {
    if (blocks[0]?.equals(await memoryAfter(inOrder(order), test))) same.push(order)
  }
  return same
}

describe('the order of blocks and threads', () => {
  it.each(held)('changes no bit of $key', async (entry) => {
    const cases = casesOf(entry, 9000).filter(
      ({ draw, dims }) => draw === 'normal' && Object.values(dims).some((extent) => extent > 30),
    )
    // Instances of an op, which have the same schedules, take different sizes.
    const step = Math.max(1, Math.floor(cases.length / 6))
    const chosen = cases.filter((_, i) => i % step === instances.indexOf(entry.key) % step)
    expect(chosen.length).toBeGreaterThan(3)
    for (const test of chosen) expect(await agreeing(test), test.name).toEqual(orders)
  })
  it('is read by each copy of the library for itself', async () => {
    const copy = join(folder, 'sideways.so')
    copyFileSync(built, copy)
    process.env.HEDDLE_SIMT_ORDER = 'sideways'
    const library = loadedKernels(subject.device.loadLibrary(copy))
    const [test] = held.slice(0, 1).flatMap((entry) => casesOf(entry, 100))
    if (test === undefined) throw new Error('no case')
    const { passed, detail } = await runCase({ ...subject, library }, test)
    delete process.env.HEDDLE_SIMT_ORDER
    expect(passed).toBe(false)
    expect(detail).toContain("HEDDLE_SIMT_ORDER is 'sideways'")
  })
})

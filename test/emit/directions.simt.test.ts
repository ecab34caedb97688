/**
 * Every construct in every direction, on the simt device: equal to the evaluation of its body, and within 1.5 times the least bytes by the sectors that
 * the device counts, or noted. The table is a part of the guide of ops.
 */
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dtypeInfo } from '../../src/ir/dtype.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { mapKernel } from '../../src/schedule/map.js'
import { notesOf } from '../../src/schedule/notes/notes.js'
import { read } from '../frontend/refuse.js'
import { type Cell, type ConstructName, cells, constructs, type DirectionName, directions, specText } from './directions.js'
import { check, type Host, openKernels } from './host.js'
import { countSectors, type Sectors } from './sectors.js'

const guide = fileURLToPath(new URL('../../src/docs/guides/ops.md', import.meta.url))
const [begin, end] = ['<!-- directions -->', '<!-- /directions -->']
const sectorBytes = 32

let host: Host
let kernels: ReadonlyMap<string, Kernel>
const sectors = countSectors()
beforeAll(async () => {
  const specs = read(specText(cells))
  expect(specs.diagnostics.filter(({ code }) => code.startsWith('HED'))).toEqual([])
  kernels = new Map(specs.kernels.map((kernel) => [kernel.name, kernel]))
  host = await openKernels(specs.kernels)
})
afterAll(async () => {
  await host?.close()
  sectors.close()
})

type Dims = Readonly<Record<string, number>>

/** Extents of all dimensions of an op, those of lists and products included. */
function extents({ construct, direction }: Cell, [g, m, n]: readonly [number, number, number]): Dims {
  const k = construct === 'topK' ? 3 : 16
  const dims = directions[direction].rank === 3 ? { g, m: m / g, n } : { m, n }
  return { ...dims, k, p: direction === 'apart' ? g * n : (m * n) / (directions[direction].rank === 3 ? g : 1) }
}

/** Runs a cell. @returns differences from the evaluation of its body, none if it is right */
async function run(cell: Cell, dims: Dims): Promise<string> {
  const kernel = kernelOf(cell)
  // Repeated values: rankings and histograms have equal elements.
  const inputs = { x: (i: number): number => ((i * 7) % 61) / 4 - 3 }
  const subject = {
    kernel,
    class: cell.construct === 'argmax' && !cell.isElement ? 'exact' : 'reduction',
    inputs,
    extents: () => dims,
  } as const
  return check(host, subject, host.entry(cell.name), dims.m ?? 1, dims.n ?? 1)
}

function kernelOf({ name }: Cell): Kernel {
  const kernel = kernels.get(name)
  if (kernel === undefined) throw new Error(`no kernel ${name}`)
  return kernel
}

/** Sectors of the inputs and outputs, each moved once. */
const leastOf = ({ tensors }: Kernel, dims: Dims): number =>
  tensors
    .map(
      ({ dims: axes, dtype }) =>
        axes.reduce((all, axis) => all * (dims[axis] ?? 1), 1) * (typeof dtype === 'string' ? dtypeInfo[dtype].bytes : 0),
    )
    .reduce((all, bytes) => all + Math.ceil(bytes / sectorBytes), 0)

interface Measured {
  readonly cell: Cell
  /** Times the least bytes, by warp accesses and by distinct sectors of blocks. */
  readonly accessed: number
  readonly blocks: number
  readonly notes: readonly string[]
}

/** To one digit: blocks also read the few results of the launch in front. */
const times = (taken: readonly Sectors[], of: 'accessed' | 'blocks' | 'distinct', least: number): number =>
  Math.round((taken.flatMap((each) => each[of]).reduce((all, each) => all + each, 0) / least) * 10) / 10

const measured: Measured[] = []
const most = 1.5

describe('cells', () => {
  it.each(cells)('$name', async (cell) => {
    const kernel = kernelOf(cell)
    // Aligned rows, whose sectors are counted.
    const dims = extents(cell, [4, 96, 128])
    expect(await run(cell, dims)).toBe('')
    const taken = sectors.taken()
    const least = leastOf(kernel, dims)
    const notes = [...new Set(notesOf(mapKernel({ kernel, types: {}, dims: {} })).map(({ kind }) => kind))]
    const blocks = times(taken, 'blocks', least)
    measured.push({ cell, accessed: times(taken, 'accessed', least), blocks, notes })
    // A sector that lanes of a block access in turn comes from its cache. Results of columns are read by all blocks, and come from the second one.
    const isFar = blocks > most && !(cell.isElement && cell.direction === 'column' && times(taken, 'distinct', least) <= most)
    if (isFar) expect(notes).toContain('strided')
    // Rows of odd lengths are right as well.
    expect(await run(cell, extents(cell, [3, 9, 7]))).toBe('')
    expect(await run(cell, extents(cell, [2, 130, 33]))).toBe('')
    sectors.taken()
  })
})

const titles: Readonly<Record<DirectionName, string>> = {
  row: 'a row',
  column: 'a column',
  inner: 'inner axes',
  apart: 'axes apart',
  whole: 'all',
}

/** `1.0`; `1.0 (2.8)` with the requests to the block's cache; notes. */
function cellText(construct: ConstructName, direction: DirectionName, isElement: boolean): string {
  const found = measured.find(
    ({ cell }) => cell.construct === construct && cell.direction === direction && cell.isElement === isElement,
  )
  if (found === undefined) return '–'
  const { blocks, accessed, notes } = found
  const moved = accessed > most ? `${blocks.toFixed(1)} (${accessed.toFixed(1)})` : blocks.toFixed(1)
  return notes.length === 0 ? moved : `${moved} ${notes.join(', ')}`
}

it('the guide has the table', async () => {
  const ways = (Object.keys(directions) as DirectionName[]).flatMap((direction) => [
    { direction, isElement: false },
    ...(direction === 'apart' ? [] : [{ direction, isElement: true }]),
  ])
  const head = ways.map(({ direction, isElement }) => (isElement ? `per element of ${titles[direction]}` : titles[direction]))
  const lines = (Object.keys(constructs) as ConstructName[]).map(
    (construct) =>
      `| \`${construct}\` | ${ways.map(({ direction, isElement }) => cellText(construct, direction, isElement)).join(' | ')} |`,
  )
  const table = [`| | ${head.join(' | ')} |`, `|---|${head.map(() => '---').join('|')}|`, ...lines].join('\n')
  const page = await readFile(guide, 'utf8')
  const filled = `${page.slice(0, page.indexOf(begin) + begin.length)}\n${table}\n${page.slice(page.indexOf(end))}`
  await expect(filled).toMatchFileSnapshot(guide)
})

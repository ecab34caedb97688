/** Walks of an elementwise program: a thread per chunk, or a block per tile of staged loads. */
import { type ElementwiseProgram, type MappedKernel, stepsOf } from '../schedule/mapped.js'
import { elementForm } from './chunk_forms.js'
import { countedLoop, iterations } from './extents.js'
import { passWalk, scalarWalk } from './pass_walks.js'
import type { Sizes } from './sizes.js'
import { blocksOf, type Counted, product, type Walk, type WalkAccess, type Walks } from './walk.js'

/** Places and threads of a tile (native/device/stage.cuh), and instructions that store an element to shared memory and read it. */
const tilePlaces = 4096
const tileThreads = 128
const tileInstructions = 4

/** Instructions of a thread before its first element, and for each axis that it takes its number apart into. */
const threadInstructions = 12
const axisInstructions = 6

export function elementWalks(mapped: MappedKernel, program: ElementwiseProgram, outer: readonly Counted[], sizes: Sizes): Walks {
  const { across, vec: width } = mapped
  const { staging, threads } = program
  const steps = stepsOf({ program })
  const vec = across === undefined ? width : 1
  const length = Math.max(1, ...steps.map((step) => (step.kind === 'pass' ? iterations(step.pass.loop.length, sizes) : 1)))
  const form = elementForm(mapped, product(outer), length, vec)
  const first = outer.filter(({ index }) => index === across?.index)
  const others = outer.filter((each) => !first.includes(each)).reverse()
  const perChunk = threadInstructions + axisInstructions * outer.length
  const walks = steps.map((step): Walk => {
    if (step.kind !== 'pass') return scalarWalk(step, outer, [...first, ...others], Math.ceil(length / width))
    const loop = countedLoop(step.pass.loop, sizes)
    const order = [...first, loop, ...others]
    const along = outer.filter(({ index }) => index === staging?.axis.index)
    const tileOrder = [...along, ...order.filter((each) => !along.includes(each))]
    const tiles = (staging?.loads ?? []).map(
      ({ load: { tensor, indices }, vec: own }): WalkAccess => ({ tensor, indices, vec: own, order: tileOrder }),
    )
    const pass = passWalk(step.pass, { outer, loop, order, vec, serial: [], perChunk, form })
    const extra = pass.extra + tileInstructions * tiles.length
    return { ...pass, reads: [...pass.reads, ...tiles], extra, isAwaited: tiles.length > 0 }
  })
  const places = product(outer) * length
  const blocks =
    staging === undefined ? blocksOf(product(outer) * Math.ceil(length / width), threads) : blocksOf(places, tilePlaces)
  return {
    walks,
    blocks,
    threads: staging === undefined ? threads : tileThreads,
    unrolled: staging === undefined ? 1 : tilePlaces / tileThreads / width,
    isAgain: false,
    rereads: false,
  }
}

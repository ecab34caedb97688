/** Problems of searches whose launches were timed on a GPU, as `make_recorded.ts` writes them: groups, predicted and measured times, a plan by hand. */
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import type { Found, Problem } from '../../src/search/covers.js'
import type { Clock } from '../../src/search/measured.js'
import type { Launch } from '../../src/search/price.js'

const schema = z.strictObject({
  graph: z.string(),
  device: z.string(),
  dtype: z.string(),
  shapes: z.array(z.string()),
  /** Kernel, kind, and microseconds at each shape: predicted, and measured or null. */
  launches: z.array(
    z.tuple([
      z.number().int(),
      z.enum(['row', 'matmul', 'library', 'attention', 'decode attention']),
      z.array(z.number().positive()),
      z.array(z.number().positive().nullable()),
    ]),
  ),
  /** For each node, those whose results it reads; for each group, its nodes and its launches. */
  variants: z.array(
    z.strictObject({
      reads: z.array(z.array(z.number().int())),
      groups: z.array(z.tuple([z.array(z.number().int()), z.number().int()])),
    }),
  ),
  /** A plan by hand: its form of the graph and its groups there. */
  hand: z.strictObject({ name: z.string(), variant: z.number().int(), chosen: z.array(z.number().int()) }),
})

export type RecordedFile = z.infer<typeof schema>

const micro = 1e6

export interface Recorded {
  readonly file: RecordedFile
  readonly problem: Problem
  readonly hand: Found
  /** Measured seconds by the id of a launch. */
  readonly seconds: ReadonlyMap<string, number>
}

export function recorded(name: string): Recorded {
  const file = schema.parse(JSON.parse(readFileSync(new URL(`./recorded/${name}.json`, import.meta.url), 'utf8')))
  const launches = file.launches.map(([content, kind, models], at) =>
    models.map(
      (model, shape): Launch => ({ id: `${at} ${shape}`, content: `${content}`, kind, sizes: [at, shape], model: model / micro }),
    ),
  )
  const variants = file.variants.map(({ reads, groups }) => ({
    reads,
    groups: groups.map(([members, at]) => ({ members, launches: launches[at] ?? [] })),
  }))
  const seconds = new Map(
    file.launches.flatMap(([, , , times], at) =>
      times.flatMap((time, shape) => (time === null ? [] : [[`${at} ${shape}`, time / micro] as const])),
    ),
  )
  return { file, problem: { shapes: file.shapes, variants }, hand: { ...file.hand, cost: 0 }, seconds }
}

/** A clock that reads the recorded times; what was not recorded cannot be run. */
export const recordedClock = ({ seconds }: Recorded): Clock => ({
  isOver: () => false,
  async time(launches, seen) {
    for (const launch of launches) {
      const found = seconds.get(launch.id)
      seen(launch, found === undefined ? { refused: 'not recorded' } : { seconds: found })
    }
    return new Set()
  },
})

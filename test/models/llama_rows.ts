/** Rows of texts of a LLaMA-like model on simt, as in the pipeline: the contents of each cache after passes and steps. */
import { generationOf, openTimedModel } from '../../src/bench/llama/model.js'
import type { FloatType } from '../../src/checkpoint/convert.js'
import { openLlamaFiles } from '../../src/models/llama/open_files.js'
import { firstSegment } from '../../src/models/llama/rope_segments.js'
import { openRows, type Rows } from '../../src/models/llama/rows.js'
import { shapeOf, stepsPerRun } from '../../src/models/llama/shapes.js'
import { startStates } from '../../src/models/llama/start.js'
import { type FamilyName, folderOf } from './llama_host.js'
import { openSimtKernels } from './simt.js'

/** One library for all models: a process can load only so many. */
const kernels = openSimtKernels()

export interface Texts {
  readonly rows: Rows
  /** Cached keys and values of the first tokens of a row, in every layer. */
  cached(row: number, tokens: number): Promise<readonly (readonly number[])[]>
  /** Reads the first tokens of a row, as prompts are. */
  read(row: number, ids: readonly number[]): Promise<void>
  /** Reads tokens into a row from a position on, in one pass, and returns the logits of the last. */
  append(row: number, first: number, ids: readonly number[]): Promise<readonly number[]>
  /**
   * A run of steps after prompts that are cached except for the last token, ignoring ends; returns the tokens of each row. A row without a prompt
   * loses its contents.
   */
  step(prompts: readonly (readonly number[])[]): Promise<readonly (readonly number[])[]>
}

/** Two rows of 64 positions, which are read in passes of `pass` tokens, regardless of their contents. */
export async function withRows<T>(
  name: FamilyName,
  { plan: planName, dtype, pass }: { readonly plan: string; readonly dtype: FloatType; readonly pass: number },
  use: (texts: Texts) => Promise<T>,
): Promise<T> {
  const folder = folderOf(name)
  const { config } = await openLlamaFiles(folder)
  const { session, plan } = await openTimedModel({ ...(await kernels), config, dtype, folder }, planName)
  const generation = generationOf(config, stepsPerRun)
  const count = 2
  const segments = [firstSegment(config, 0, [1], generation)]
  const shape = { ...shapeOf(config, segments, generation, { capacity: 64, invariant: count }), pass }
  const rows = await openRows({ session, config, plan, generation, shape, dtype })
  const parts = Array.from({ length: config.layers }, (_, layer) => [`keys${layer}`, `values${layer}`]).flat()
  try {
    return await use({
      rows,
      cached: (row, tokens) =>
        Promise.all(
          parts.map(async (part) => {
            // Positions of a head lie together.
            const all = Array.from(await rows.state(part), Number)
            const head = all.length / count / config.kvHeads
            return Array.from({ length: config.kvHeads }, (_, at) => {
              const from = (row * config.kvHeads + at) * head
              return all.slice(from, from + (tokens * head) / shape.capacity)
            }).flat()
          }),
        ),
      read: (row, ids) => rows.read([{ row, first: 0, ids }], pass),
      append: async (row, first, ids) => [...(await rows.ask([{ row, first, ids }], { wanted: [ids.length - 1] }))],
      async step(prompts) {
        await rows.write(startStates({ ...config, eos: [] }, generation, shape, { prompts, cases: prompts.map((_, row) => row) }))
        const { words } = await rows.advance(0)
        return prompts.map((_, row) => Array.from({ length: stepsPerRun }, (_, step) => words[step * count + row] ?? -1))
      },
    })
  } finally {
    rows.release()
    session.release()
  }
}

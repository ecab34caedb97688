/** Counts of sectors that the CPU device appends to a file (native/simt/include/simt/sectors.hpp), for tests of memory traffic. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'

const pair = z.tuple([z.number(), z.number()])
const lineSchema = z.object({ kernel: z.string(), accessed: pair, blocks: pair, distinct: pair })

/** Sectors of one launch: loads and stores. */
export type Sectors = z.infer<typeof lineSchema>

/** Starts to count. Libraries that are opened later count; earlier ones do not. */
export function countSectors() {
  const folder = mkdtempSync(join(tmpdir(), 'heddle-sectors-'))
  const file = join(folder, 'sectors.jsonl')
  process.env.HEDDLE_SIMT_SECTORS = file
  let read = 0
  return {
    /** Launches since the last call. */
    taken: (): readonly Sectors[] => {
      const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1)
      const fresh = lines.slice(read)
      read = lines.length
      return fresh.map((line) => lineSchema.parse(JSON.parse(line)))
    },
    close: () => {
      delete process.env.HEDDLE_SIMT_SECTORS
      rmSync(folder, { recursive: true })
    },
  }
}

/** Page of a run that has just ended, for `heddle bench encoder --report`. */
import type { BenchEncoderResult } from '../bench/result.js'
import { explorerSchema } from './model.js'
import { pageHtml } from './page.js'
import { readRun } from './runs/read.js'
import { benchView } from './runs/view.js'

/** @param command of the run. @throws environment `explore.page` if the package is incomplete */
export function reportPage(result: BenchEncoderResult, command: string): string {
  // Reads the result as a file, so that a report equals `explore --bench` of the same result.
  const any = readRun(JSON.stringify(result), 'the result')
  const title = `heddle bench: ${result.device.name}`
  const bench = benchView([{ any }], [], 1)
  return pageHtml(explorerSchema.parse({ version: 1, title, command, opens: 'bench', kernels: [], bench, timelines: [] }))
}

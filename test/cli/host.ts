/** Runs a command line in this process and collects what it prints. */
import { fileURLToPath } from 'node:url'
import { main } from '../../src/cli/main.js'

/** The repository. */
export const repository = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '')

export const punctuationModel = `${repository}/test/data/models/kjv-punct-bert`

export interface Outcome {
  readonly exitCode: number
  readonly out: string
  readonly log: string
}

export async function heddle(argv: readonly string[], root: string = repository): Promise<Outcome> {
  let [out, log] = ['', '']
  const exitCode = await main(argv, {
    root,
    out: (text) => {
      out += text
    },
    log: (text) => {
      log += text
    },
  })
  // The verdict is the returned code; the exit code of the test runner must not change.
  process.exitCode = undefined
  return { exitCode, out, log }
}

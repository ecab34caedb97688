/**
 * Checks exported programs as ops of PyTorch, with the script that `heddle bench` runs its peers with: eager, compiled and in CUDA graphs, against the
 * results of the CPU device. If Python has no PyTorch, nothing is run, and the reason is reported.
 */
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { execa } from 'execa'
import { z } from 'zod'
import { usageError } from '../errors.js'
import { peersFolder } from '../toolchain/paths.js'
import type { CheckResult } from './conformance.js'

const scriptLine = z.union([
  z.object({ skipped: z.string() }),
  z.object({ folder: z.string(), device: z.string(), failures: z.array(z.string()) }),
])

/** Command line of the script, without the folders to check. */
export const exportsCommand = (): readonly [string, ...string[]] => ['python3', join(peersFolder(), 'torch_export.py')]

export interface CheckedExports {
  readonly results: readonly CheckResult[]
  /** Reason why nothing was run. */
  readonly skipped?: string
}

/** The checkable folders below a folder, as test/peers/make_exports.ts writes them. */
export async function exportFolders(of: string): Promise<readonly string[]> {
  const names = await readdir(of).catch(() => [])
  return names.map((name) => join(of, name)).filter((folder) => existsSync(join(folder, 'check.json')))
}

/** The same for an explicitly named folder. @throws usage `selftest.exports` if there are none */
export async function expectExports(of: string): Promise<readonly string[]> {
  const folders = await exportFolders(of)
  if (folders.length > 0) return folders
  throw usageError('selftest.exports', `${of} holds no exports to check: no folder below it has a check.json`, {
    hint: 'write them with test/peers/make_exports.ts',
  })
}

/** One result per folder, and one if the script itself fails. @throws the signal's reason when it fires; nothing else */
export async function checkExports(
  folders: readonly string[],
  signal: AbortSignal | undefined,
  [file, ...args] = exportsCommand(),
): Promise<CheckedExports> {
  const cancel = signal === undefined ? {} : { cancelSignal: signal }
  const { stdout = '', stderr = '', exitCode } = await execa(file, [...args, ...folders], { reject: false, ...cancel })
  signal?.throwIfAborted()
  const lines = stdout.split('\n').flatMap((text) => parse(text) ?? [])
  const results = lines.flatMap((line): CheckResult[] =>
    'skipped' in line
      ? []
      : [
          {
            name: `export ${basename(line.folder)}`,
            passed: line.failures.length === 0,
            detail:
              line.failures.join('; ') ||
              `the same eager${line.device === 'cuda' ? ', compiled and in CUDA graphs' : ' and compiled'}`,
          },
        ],
  )
  const skipped = lines.flatMap((line) => ('skipped' in line ? [line.skipped] : []))[0]
  if (skipped !== undefined) return { results, skipped }
  if (exitCode === undefined) return { results, skipped: `${file} was not found` }
  if (exitCode === 0 || results.some(({ passed }) => !passed)) return { results }
  const detail = `${args[0]} ended with ${exitCode}: ${stderr.trimEnd().split('\n').at(-1) ?? ''}`
  return { results: [...results, { name: 'exports', passed: false, detail }] }
}

/** Undefined for a line that the script did not print: libraries print too. */
function parse(text: string): z.infer<typeof scriptLine> | undefined {
  try {
    return scriptLine.parse(JSON.parse(text))
  } catch {
    return undefined
  }
}

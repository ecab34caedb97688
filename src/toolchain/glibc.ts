/**
 * Minimum glibc version of a built file: an archive is only as portable as the newest symbol in it, and the building machine cannot detect that.
 * Checked when a bundle is packed.
 */
import { basename } from 'node:path'
import { environmentError, findingError } from '../errors.js'
import { which } from './compilers.js'
import { firstLines, runTool } from './process.js'

/** Oldest glibc that a bundle supports: that of Ubuntu 20.04 and Debian 11. RHEL 9 and Ubuntu 22.04 have newer ones. */
export const oldestGlibc = '2.31'

/** Newest version of glibc that a file requires, and the symbols of that version. */
export interface GlibcNeed {
  /** `2.28`; `0` if it requires none. */
  readonly version: string
  readonly symbols: readonly string[]
}

/** Negative if `a` is the older version. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((version) => version.split('.').map(Number))
  const length = Math.max(left?.length ?? 0, right?.length ?? 0)
  for (let i = 0; i < length; i++) {
    const difference = (left?.[i] ?? 0) - (right?.[i] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

/** Parses the output of `objdump -T`: `... *UND* 0000000000000000 (GLIBC_2.34) dlopen`, in old binutils without the brackets. */
export function parseNeed(dynamicSymbols: string): GlibcNeed {
  let need: { version: string; symbols: string[] } = { version: '0', symbols: [] }
  for (const [, version = '', symbol = ''] of dynamicSymbols.matchAll(/\*UND\*.*\bGLIBC_([0-9][0-9.]*)\)?\s+(\S+)$/gm)) {
    const newer = compareVersions(version, need.version)
    if (newer > 0) need = { version, symbols: [symbol] }
    else if (newer === 0) need.symbols.push(symbol)
  }
  return need
}

/** @throws environment `bundle.objdump` without binutils, `bundle.tool` if it cannot read the file */
export async function glibcNeed(path: string, signal?: AbortSignal): Promise<GlibcNeed> {
  const tool = await which('objdump')
  if (tool === undefined) throw environmentError('bundle.objdump', 'objdump was not found on PATH', { hint: 'install binutils' })
  const { exitCode, stdout, stderr } = await runTool(tool, ['-T', path], { signal })
  if (exitCode !== 0) throw environmentError('bundle.tool', `objdump cannot read ${path}: ${firstLines(stderr)}`)
  return parseNeed(stdout)
}

/** @throws finding `bundle.glibc` naming the symbols for which a file needs more than `oldestGlibc` */
export function expectOldGlibc(path: string, { version, symbols }: GlibcNeed): void {
  if (compareVersions(version, oldestGlibc) <= 0) return
  throw findingError(
    'bundle.glibc',
    `${basename(path)} needs glibc ${version} for ${symbols.join(', ')}; a bundle supports at most ${oldestGlibc}`,
    { hint: 'native/portable/glibc.cpp provides replacements of newer symbols' },
  )
}

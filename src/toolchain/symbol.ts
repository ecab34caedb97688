/**
 * Readable kernel names, from the mangled symbols that ptxas reports, by the demangler that comes with every compiler.
 * Two kernels of a file never get one name: template arguments are complete, and symbols that no tool can demangle stay mangled.
 */
import { which } from './compilers.js'
import { runTool } from './process.js'

/** Demangler of binutils, which comes with the C++ compiler, then CUDA's own. Both omit parameters and result with `-p`. */
const demanglers = ['c++filt', 'cu++filt']

/** Symbols per call: argument lists are limited. */
const batch = 1000

/** Scopes common to the kernel names of a file. */
const commonScopes =
  /\b(?:heddle|instance_of_\w+|slots_of_\w+|\(anonymous namespace\)|_GLOBAL__N_\w*)::|(?:\(anonymous namespace\)|<unnamed>)::/g

/** CUDA's demangler writes the type before each value: `(int)3`, `(bool)1`. */
const typedValue = /\((bool|(?:unsigned )?(?:char|short|int|long|long long))\)(-?\d+)/g

/**
 * Readable name of each symbol, by file: `_ZN6heddle4keptIN6heddle4WarpILi4EEELi1EEEvPf` is `kept<Warp<4>, 1>`. Without a demangler, and for
 * a name that is not mangled, the symbol itself.
 * @param files the symbols of each; names differ within a file
 * @throws the signal's reason when it aborts
 */
export async function readableNames(
  files: readonly (readonly string[])[],
  signal?: AbortSignal,
): Promise<readonly ReadonlyMap<string, string>[]> {
  const names = await shortNames(files.flat(), signal)
  return files.map((symbols) => distinct(new Map(symbols.map((symbol) => [symbol, names.get(symbol) ?? symbol]))))
}

async function shortNames(symbols: readonly string[], signal: AbortSignal | undefined): Promise<ReadonlyMap<string, string>> {
  const mangled = [...new Set(symbols)].filter((symbol) => symbol.startsWith('_Z'))
  const names = new Map(symbols.map((symbol) => [symbol, symbol]))
  const tools = await Promise.all(demanglers.map(which))
  const tool = tools.find((path) => path !== undefined)
  if (tool === undefined) return names
  for (let first = 0; first < mangled.length; first += batch) {
    const symbolsOfCall = mangled.slice(first, first + batch)
    const { exitCode, stdout } = await runTool(tool, ['-p', ...symbolsOfCall], { signal })
    const lines = stdout.split('\n')
    if (exitCode === 0 && lines.length === symbolsOfCall.length)
      for (const [i, symbol] of symbolsOfCall.entries()) names.set(symbol, short(lines[i] ?? symbol))
  }
  return names
}

const short = (name: string): string =>
  name
    .replace(commonScopes, '')
    .replaceAll('> >', '>>')
    .replace(typedValue, (_, type: string, value: string) => (type === 'bool' ? String(value !== '0') : value))

/** Restores the symbols of names that became equal without their scopes. */
function distinct(names: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const owners = new Map<string, number>()
  for (const name of names.values()) owners.set(name, (owners.get(name) ?? 0) + 1)
  return new Map([...names].map(([symbol, name]) => [symbol, (owners.get(name) ?? 0) > 1 ? symbol : name]))
}

/** Plain name of a kernel, without scopes and template arguments, from a symbol or a readable name. */
export function plainName(name: string): string {
  const parts = /^_Z(N?)(.*)$/s.exec(name)
  if (parts === null) return name.replace(/<.*$/s, '').split('::').at(-1) ?? name
  const [, nested, text = ''] = parts
  let last = name
  for (let at = 0; at < text.length; ) {
    const digits = /^\d+/.exec(text.slice(at))?.[0]
    if (digits === undefined) break
    const start = at + digits.length
    at = start + Number(digits)
    last = text.slice(start, at)
    // A name outside of a scope is followed by its parameters.
    if (nested === '') break
  }
  return last
}

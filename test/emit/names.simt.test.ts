/**
 * Authors' names in generated source: every word that the source itself uses, and every macro of a compiler, may be the name of a dimension, an
 * attribute, a tensor or a value of a body, and the source still compiles.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { generate } from '../../src/emit/generate.js'
import { call, dim, index, local } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import type { Kernel, Stmt } from '../../src/ir/kernel.js'
import { axis, load, tensor } from '../schedule/fixtures.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const compiler = process.env.CXX ?? 'g++'
const flags = ['-std=c++17', '-DHEDDLE_SIMT=1', '-w', '-fsyntax-only']
const includes = ['native/include', 'native/device', 'native/simt/include'].flatMap((path) => ['-I', join(root, path)])
const run = promisify(execFile)
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heddle-names-'))
})
afterAll(() => rm(folder, { recursive: true }))

/** Compiles source that includes the given files, and returns the compiler's messages. */
async function complaints(files: ReadonlyMap<string, string>): Promise<string> {
  const parts = await Promise.all(
    [...files].map(async ([path, text], i) => {
      const name = path.replaceAll('/', '_')
      await writeFile(join(folder, name), text)
      return `namespace part${i} {\n#include "${name}"\n}\n`
    }),
  )
  const whole = join(folder, 'whole.cpp')
  // Headers stand in front of the namespaces; inside of these, their guards leave nothing of them.
  const headers = new Set([...files.values()].flatMap((text) => text.match(/^#include "[a-z_0-9]+\.cuh"$/gm) ?? []))
  await writeFile(whole, [...headers, ...parts].join('\n'))
  try {
    await run(compiler, [...flags, ...includes, '-I', folder, whole], { maxBuffer: 1 << 26 })
    return ''
  } catch (error) {
    return String((error as { stderr?: string }).stderr ?? error)
  }
}

const reduceOf = (name: string, at: string, over: string, value: Expr): Stmt => ({
  kind: 'reduce',
  name,
  type: 'f32',
  monoid: 'sum',
  length: dim(over),
  index: at,
  value,
})

/** A kernel with ten names of its own: a row kernel, or an elementwise one. */
function named(name: string, words: readonly string[], isRow: boolean): Kernel {
  const [m = '', n = '', x = '', w = '', y = '', eps = '', i = '', c = '', total = '', j = ''] = words
  const at = load(x, index(i), index(c))
  const attr: Expr = { kind: 'attr', type: 'f32', name: eps }
  const value = call('add', call('mul', load(w, index(c)), attr), call('exp', at))
  return {
    name,
    source: { file: 'specs/names.ts', line: 1, column: 1 },
    dims: [m, n],
    types: {},
    attrs: [{ name: eps, type: 'f32', default: 1 }],
    tensors: [tensor(x, 'in', `${m} ${n}`, 'f32'), tensor(w, 'in', n, 'f32'), tensor(y, 'out', `${m} ${n}`, 'f32')],
    rows: [axis(i, m)],
    body: [
      ...(isRow ? [reduceOf(total, j, n, load(x, index(i), index(j)))] : []),
      {
        kind: 'storeRow',
        tensor: y,
        rows: [index(i)],
        length: dim(n),
        index: c,
        value: isRow ? call('mul', value, local(total)) : value,
      },
    ],
  }
}

/** Words of the shipped kernels' source, except those that cannot be names, and the compiler's macros. */
async function wordsOfText(): Promise<string[]> {
  const path = join(root, 'generated', 'cuda')
  const texts = await Promise.all((await readdir(path)).map((name) => readFile(join(path, name), 'utf8')))
  const code = texts.map((text) => text.replace(/\/\/.*$/gm, '')).join('\n')
  await writeFile(join(folder, 'macros.cpp'), '#include "kernel.cuh"\n')
  const { stdout } = await run(
    compiler,
    ['-std=c++17', '-DHEDDLE_SIMT=1', '-dM', '-E', ...includes, join(folder, 'macros.cpp')],
    {
      maxBuffer: 1 << 26,
    },
  )
  const macros = [...stdout.matchAll(/^#define (\w+)/gm)].map(([, word = '']) => word)
  const words = new Set([...(code.match(/\b[A-Za-z][A-Za-z0-9]*\b/g) ?? []), ...macros])
  return [...words].filter((word) => /^[A-Za-z][A-Za-z0-9]*$/.test(word)).sort()
}

const textOf = (kernels: readonly Kernel[]): Map<string, string> =>
  new Map([...generate(kernels)].filter(([path]) => path.endsWith('.cu')))

describe('names of authors', () => {
  it('may be any word of generated source and any macro', async () => {
    const words = await wordsOfText()
    expect(words).toEqual(
      expect.arrayContaining(['EOF', 'blockIdx', 'heddle', 'int64_t', 'return', 'team'].filter((w) => !w.includes('_'))),
    )
    const kernels: Kernel[] = []
    // Each word names a parameter once and a value once, since the launcher sees the parameters alone.
    for (let first = 0; first < words.length; first += 6) {
      const ten = Array.from({ length: 10 }, (_, k) => words[(first + k + (k < 6 ? 0 : first % 7)) % words.length] ?? '')
      for (const isRow of [false, true]) kernels.push(named(`named_${kernels.length}`, ten, isRow))
    }
    expect(await complaints(textOf(kernels))).toBe('')
  })

  it('may contain characters that C++ does not allow', async () => {
    const words = ['größe', '$x', 'a$b', '__CUDA_ARCH__', '_', '__', 'y', 'M_PI', 'double', 'σ2']
    expect(await complaints(textOf([named('odd_names', words, true)]))).toBe('')
  })

  it('are distinguished from source that does not compile', async () => {
    const files = textOf([named('plain_names', [...'mnxwyeictj'], true)])
    const broken = new Map([...files].map(([path, text]) => [path, text.replaceAll(/\bm\b/g, 'double')]))
    expect(await complaints(broken)).toContain('error')
  })
})

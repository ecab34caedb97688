import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { generate, generateInstances } from '../../src/emit/generate.js'
import { type Manifest, manifestSchema } from '../../src/emit/manifest/manifest.js'
import { call, i32 } from '../../src/ir/build.js'
import type { Stmt } from '../../src/ir/kernel.js'
import * as fixtures from '../schedule/fixtures.js'

const files = generate(fixtures.everything)
const fileOf = (path: string): string => {
  const text = files.get(path)
  if (text === undefined) throw new Error(`${path} is missing`)
  return text
}
const manifest: Manifest = manifestSchema.parse(JSON.parse(fileOf('manifest.json')))
/** The body of the first kernel of a file. */
const kernelOf = (key: string): string => /^__global__[\s\S]*?^}/m.exec(fileOf(`cuda/${key}.cu`))?.[0] ?? ''

describe('generation', () => {
  it('writes a file an instance, the registry and the manifest', () => {
    const keys = manifest.kernels.map(({ key }) => key)
    expect(keys).toEqual([...keys].sort())
    expect([...files.keys()].sort()).toEqual([...keys.map((key) => `cuda/${key}.cu`), 'manifest.json', 'registry.cpp'].sort())
  })

  it('gives the same bytes for any order of the kernels', () => {
    expect([...generate([...fixtures.everything].reverse())].sort()).toEqual([...files].sort())
  })

  it('ends lines with LF, without trailing blanks', () => {
    for (const [path, text] of files) {
      expect(text, path).not.toMatch(/\r|[ \t]\n|\t/)
      expect(text, path).toMatch(/[^\n]\n$/)
    }
  })

  it('records a digest of the source in the manifest and the registry', () => {
    for (const { file, digest } of manifest.kernels) {
      expect(createHash('sha256').update(fileOf(file)).digest('hex')).toBe(digest)
      expect(fileOf('registry.cpp')).toContain(digest)
    }
  })

  it('lists arguments in the order launchers take them', () => {
    const entry = manifest.kernels.find(({ key }) => key === 'layer_norm__f16')
    expect(entry?.buffers.map(({ name, access, dtype, dims }) => [name, access, dtype, dims.join(' ')])).toEqual([
      ['x', 'in', 'f16', 'm n'],
      ['gamma', 'in', 'f16', 'n'],
      ['beta', 'in', 'f16', 'n'],
      ['y', 'out', 'f16', 'm n'],
    ])
    expect([entry?.dims, entry?.attrs]).toEqual([['m', 'n'], [{ name: 'eps', type: 'f32', default: 1e-12 }]])
  })

  it('names the file of a spec in comments, whatever it is called', () => {
    const file = 'specs/a\n#error b */ int c;\u2028\\.ts'
    const made = generate([{ ...fixtures.softmax, source: { file, line: 3, column: 1 } }])
    for (const [path, text] of made) {
      if (path === 'manifest.json' || path === 'registry.cpp') continue
      expect(text).toContain('specs/a%0a#error b %2a/ int c;%2028%5c.ts:3.')
      expect(text).not.toContain('#error b */')
    }
  })

  it('refuses two kernels of one name', () => {
    expect(() => generate([fixtures.softmax, fixtures.softmax])).toThrow('two kernels are called softmax__')
  })
})

describe('kernel source', () => {
  it('reads a row before it computes, and shared weights when it needs them', () => {
    const text = kernelOf('layer_norm__f16')
    expect(text).toContain(
      'heddle::load_row_apart<VEC, STEP, WHOLE>(team, x, n, v, [&](int c) -> int64_t { return start + c; }, paired);',
    )
    expect(text).toContain('heddle::load_apart<VEC, STEP, WHOLE>(gamma, c0, valid, paired)')
    expect(text.indexOf('load_row')).toBeLessThan(text.indexOf('team.reduce'))
  })

  it('loads each row of a pass once', () => {
    expect(kernelOf('softmax__f32').match(/heddle::load/g)).toHaveLength(1)
  })

  it('decides once per launch if all chunks are whole', () => {
    const aligned = ['x', 'gamma', 'beta', 'y'].map((tensor) => `heddle::begins_aligned<VEC>(${tensor})`)
    expect(fileOf('cuda/layer_norm__f16.cu')).toContain(`const bool whole = ${['n % VEC == 0', ...aligned].join(' && ')};`)
  })

  it('decides once per row where its place counts', () => {
    expect(kernelOf('two_lengths__f16')).toContain('const bool whole = ')
  })

  it('loads a chunk at once if it lies in one piece of the row, and element by element otherwise', () => {
    const [pieces = '', any = ''] = kernelOf('concatenate__f16').split('    return;\n')
    expect(pieces).toContain('if (a <= c0 || a - c0 >= VEC) {')
    expect(pieces).toContain('const auto left_c = c0 < a ? heddle::load_chunk<VEC>(left, start + c0, valid)')
    expect(pieces).not.toContain('heddle::read(left')
    expect(any).toContain('heddle::read(left')
    expect(kernelOf('gelu__f16')).not.toContain('return;\n  }')
  })

  it('guards operations that elements outside of the row must not do', () => {
    expect(kernelOf('concatenate__f16')).toMatch(/if \(i < valid\) y_c\w*\[i\] = .*heddle::read\(left/)
    expect(kernelOf('transpose__f16')).toMatch(/^ +y_m\w*\[i\] = chunk_of_tile\.template element<T>\(x_tile/m)
    expect(kernelOf('gelu__f16')).not.toContain('if (i < valid)')
  })

  it('clears the counts of a row before its pass, and counts only existing elements', () => {
    const text = kernelOf('tally')
    expect(text.match(/clear_counts\(team, (counts|below)|for \(int chunk|heddle::count\((counts|below)/g)).toEqual([
      'clear_counts(team, counts',
      'for (int chunk',
      'heddle::count(counts',
      'clear_counts(team, below',
      'for (int chunk',
      'heddle::count(below',
    ])
    expect(kernelOf('tally_scan')).toContain('return (static_cast<int64_t>(bin) * m) + m0;')
  })

  it('walks the chunks of a scanned row together', () => {
    const text = kernelOf('prefix_sum__f32')
    expect(text).toContain('if (chunk * Team::lanes * VEC >= n) break;')
    expect(text).not.toContain('if (valid <= 0) break;')
    // Lanes without a chunk are there in whole rows, too.
    expect(text).not.toContain('WHOLE ||')
    expect(text).not.toContain('VEC, STEP, WHOLE')
  })

  it('has one barrier per scan, after its input and before its use', () => {
    const text = fileOf('cuda/scan_of_scan.cu')
    const [kept = '', reread = ''] = text.split('// Any row length')
    const steps = (body: string): string[] =>
      body.match(/\b(ends|sums)_lanes\w*\.add|scan_row\(team, \w+\)|\w+_lanes\.end_chunk/g) ?? []
    const first = [
      'ends_lanes.add',
      'scan_row(team, ends_lanes)',
      'sums_lanes.add',
      'scan_row(team, sums_lanes)',
      'top_lanes.end_chunk',
    ]
    expect(steps(kept)).toEqual(first)
    expect(steps(reread)).toEqual([
      ...first,
      'ends_lanes_2.add',
      'scan_row(team, ends_lanes_2)',
      'sums_lanes_2.add',
      'scan_row(team, sums_lanes_2)',
    ])
  })

  it('parenthesises a compound length', () => {
    const half = fixtures.rowSum.body.map(
      (s): Stmt => (s.kind === 'reduce' ? { ...s, length: call('shiftRight', s.length, i32(1)) } : s),
    )
    const text = generate([{ ...fixtures.rowSum, body: half }]).get('cuda/row_sum__f32.cu')
    expect(text).toContain('const int valid = (n >> 1) - c0;')
    expect(text).toContain('(n >> 1) % VEC == 0')
  })

  it('stores a scalar of the row from one lane', () => {
    expect(kernelOf('argmax_row__f16')).toContain('if (team.lane() == 0) heddle::write(y, m0, best);')
  })

  it('names the types an author named and the op it came from', () => {
    const text = fileOf('cuda/layer_norm__bf16.cu')
    expect(text).toMatch(/^\/\/ layer_norm with T = bf16, compiled from specs\/ops\/layer_norm\.ts:1\./)
    expect(text).toContain('using T = __nv_bfloat16;')
  })

  it('checks every buffer against the size of its layout', () => {
    expect(fileOf('cuda/quantize__f32.cu')).toContain(
      'arguments.out<signed char>(1, "y", (((heddle::Count(n) + 31) >> 5) * 32) * m)',
    )
  })

  it('is specialised for fixed dimensions', () => {
    const text = generateInstances([{ kernel: fixtures.softmax, types: { T: 'f16' }, dims: { n: 128 } }]).get(
      'cuda/softmax__f16__n128.cu',
    )
    expect(text).toContain('arguments.fixed_dim(1, "n", 128);')
    expect(text).toContain('const int valid = 128 - c0;')
  })
})

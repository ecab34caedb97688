/** Exports under PyTorch in a selftest: lines of the script as results, the reason if there is no PyTorch, and refusals. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { checkExports, expectExports, exportFolders, exportsCommand } from '../../src/verify/exports.js'
import { heddle } from '../cli/host.js'

/** A script that prints these lines and ends with a code. */
const printing = (lines: readonly unknown[], code = 0) =>
  checkExports(['one'], undefined, [
    process.execPath,
    '-e',
    `console.log(${JSON.stringify(lines.map((line) => JSON.stringify(line)).join('\n'))}); console.error('last words'); process.exitCode = ${code}`,
  ])

const line = (name: string, ...failures: readonly string[]) => ({
  folder: `/exports/${name}`,
  device: 'cuda',
  failures,
  eager: { errors: {} },
})

describe('exports', () => {
  it('are checked one by one', async () => {
    const { results, skipped } = await printing(['a library says', line('bert'), line('llama', 'words differ', 'late')], 1)
    expect(skipped).toBeUndefined()
    expect(results).toEqual([
      { name: 'export bert', passed: true, detail: 'the same eager, compiled and in CUDA graphs' },
      { name: 'export llama', passed: false, detail: 'words differ; late' },
    ])
  })

  it('are not checked without PyTorch, which is reported', async () => {
    expect(await printing([{ skipped: 'there is no PyTorch' }])).toEqual({ results: [], skipped: 'there is no PyTorch' })
    const nothing = await checkExports(['one'], undefined, ['no-such-python-anywhere', 'script'])
    expect(nothing).toEqual({ results: [], skipped: 'no-such-python-anywhere was not found' })
    expect(exportsCommand()[1]).toMatch(/torch_export\.py$/)
  })

  it('fail if the script does, whatever it printed before', async () => {
    const { results } = await printing([line('bert')], 3)
    expect(results.map(({ passed }) => passed)).toEqual([true, false])
    expect(results[1]?.detail).toMatch(/ended with 3: last words/)
  })

  it('are searched in a folder, and refused if there are none', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'heddle-exports-'))
    try {
      await mkdir(join(folder, 'bert'))
      await expect(expectExports(folder)).rejects.toMatchObject({ code: 'selftest.exports' })
      const { exitCode, log } = await heddle(['selftest', '--device', 'simt', '--exports', folder])
      expect(log).toContain('error[selftest.exports]')
      expect(exitCode).toBe(2)
      expect((await heddle(['bundle', '--exports', folder])).log).toContain('error[selftest.exports]')
      await writeFile(join(folder, 'bert', 'check.json'), '{}')
      expect(await exportFolders(folder)).toEqual([join(folder, 'bert')])
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })
})

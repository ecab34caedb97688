/** `heddle repro`: a folder that builds without heddle, or an archive of one, reports the same as `check`, for right kernels and for wrong ones. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { heddleIn, ownProject } from '../verify/own_project.js'

let root: string
const places: string[] = []

beforeAll(async () => {
  root = await ownProject('checked')
})
afterAll(async () => {
  for (const place of [root, ...places]) await rm(place, { recursive: true, force: true })
})

const heddle = (...argv: string[]) => heddleIn(root, ...argv)

/** The folder of an archive, unpacked into an empty place. */
async function unpacked(archive: string, folder: string): Promise<string> {
  const empty = await mkdtemp(join(tmpdir(), 'heddle-unpacked-'))
  places.push(empty)
  await promisify(execFile)('tar', ['xzf', archive], { cwd: empty })
  expect(await readdir(empty)).toEqual([folder])
  return join(empty, folder)
}

/** Output of the folder's own commands, in an environment without heddle. */
async function built(out: string, commands: readonly string[]): Promise<{ readonly code: number; readonly said: string }> {
  const [build = '', run = ''] = commands
  const options = { cwd: out, env: { PATH: process.env.PATH } }
  await promisify(execFile)('sh', ['-c', build], options)
  return promisify(execFile)('sh', ['-c', run], options).then(
    ({ stdout }) => ({ code: 0, said: stdout }),
    (failure: { readonly code: number; readonly stdout: string }) => ({ code: failure.code, said: failure.stdout }),
  )
}

/** Elements and numbers of a line that `check` or a folder prints, without the part that names the source at fault. */
const numbersOf = (line: string): string => line.slice(line.indexOf(': y: '))

describe('repro', () => {
  it('shows the case that check names, with the same element and numbers', async () => {
    expect((await heddle('gen')).code).toBe(0)
    const file = join(root, 'generated/cuda/shift__f32.cu')
    const text = await readFile(file, 'utf8')
    const wrong = text.replaceAll(/ \+ (by_\w*|heddle::read\(by)/g, ' - $1')
    expect(wrong).not.toBe(text)
    await writeFile(file, wrong)
    const { log } = await heddle('check', 'shift', '--generated', '--device', 'simt', '--dtype', 'f32')
    const failures = log.split('\n').filter((line) => line.startsWith('  shift__f32'))
    const [, command = ''] = /reproduce it in a folder: npx heddle (.*)/.exec(log) ?? []
    const argv = [...command.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '')
    expect(argv.slice(0, 3)).toEqual(['repro', 'shift', '--case'])
    const first = JSON.parse((await heddle(...argv, '--json')).out)
    const folder = join(root, 'repro-shift__f32')
    expect(first).toMatchObject({ passed: false, out: folder, folder })
    const asFolder = await built(folder, first.commands.simt)
    expect(asFolder.code).toBe(1)
    expect(numbersOf(asFolder.said).trim()).toBe(numbersOf(failures[0] ?? '').trim())
    // Numbers of a normal draw have all their digits.
    const normal = failures.find((line) => line.includes(' m=2 n=1 normal')) ?? ''
    const again = JSON.parse((await heddle(...argv.slice(0, 3), 'shift__f32 m=2 n=1 normal', ...argv.slice(4), '--json')).out)
    expect(again.detail).toBe(normal.slice(normal.indexOf('device differs')))
  })

  it('takes the largest case of a derived kernel that is right', async () => {
    const { code, out } = await heddle(
      'repro',
      'shift_norm',
      '--dtype',
      'f32',
      '--device',
      'simt',
      '--out',
      'norm.tar.gz',
      '--json',
    )
    expect(code).toBe(0)
    const { passed, detail, commands } = JSON.parse(out)
    expect(passed).toBe(true)
    // No intermediate file is left.
    expect((await readdir(root)).filter((name) => /^norm|^\.repro-/.test(name))).toEqual(['norm.tar.gz'])
    const folder = await unpacked(join(root, 'norm.tar.gz'), 'norm')
    const { code: exit, said } = await built(folder, commands.simt)
    expect(exit).toBe(0)
    expect(said).toBe(`ok   shift_norm__f32 m=7 n=1536 integer: ${detail}\n`)
    const readme = await readFile(join(folder, 'README.md'), 'utf8')
    for (const command of [...commands.simt, ...commands.cuda]) expect(readme).toContain(command)
    // A truncated archive is invalid, and a folder with a missing file does not build.
    const bytes = await readFile(join(root, 'norm.tar.gz'))
    await writeFile(join(root, 'half.tar.gz'), bytes.subarray(0, bytes.length / 2))
    await expect(unpacked(join(root, 'half.tar.gz'), 'norm')).rejects.toThrow()
    await rm(join(folder, 'kernel.cu'))
    await expect(built(folder, commands.simt)).rejects.toThrow('kernel.cu')
  })

  it('leaves existing files if it cannot be written', async () => {
    await mkdir(join(root, 'taken.tar.gz'))
    const { code, log } = await heddle('repro', 'shift', '--dtype', 'f32', '--device', 'simt', '--out', 'taken.tar.gz')
    expect(code).toBe(2)
    expect(log).toContain('repro.write')
    expect(await readdir(join(root, 'taken.tar.gz'))).toEqual([])
    expect((await readdir(root)).filter((name) => name.startsWith('.repro-'))).toEqual([])
  })

  it('lists the available cases', async () => {
    const { code, log } = await heddle('repro', 'shift', '--case', 'shift__f32 m=0', '--device', 'simt', '--dtype', 'f32')
    expect(code).toBe(2)
    expect(log).toContain('shift has no case shift__f32 m=0')
    expect(log).toContain('cases are such as shift__f32 m=1 n=1 integer')
  })
})

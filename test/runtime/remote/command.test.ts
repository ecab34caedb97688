/** Words of the command that reaches another machine, and the scripts that it runs there. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { remoteCommand, shellWord } from '../../../src/runtime/remote/command.js'
import { putScript, startScript } from '../../../src/runtime/remote/scripts.js'
import { refusal } from '../../refusal.js'

describe('the command that reaches a machine', () => {
  it('takes names of ssh, with a keep-alive and no terminal', () => {
    const { file, args } = remoteCommand('me@gpu-box.lan', 'exec "$1"', ["it's"])
    expect([file, ...args.slice(0, 1), args.at(-2)]).toEqual(['ssh', '-T', 'me@gpu-box.lan'])
    expect(args).toContain('ServerAliveInterval=15')
    expect(args.at(-1)).toBe(`'sh' '-c' 'exec "$1"' 'heddle' 'it'\\''s'`)
  })

  it('appends words to a prefix, and one quoted word to ssh, also behind another command', () => {
    expect(remoteCommand('docker exec -i "my box"', 's', ['a b'])).toEqual({
      file: 'docker',
      args: ['exec', '-i', 'my box', 'sh', '-c', 's', 'heddle', 'a b'],
    })
    for (const prefix of ['ssh -p 2 box', '/usr/bin/ssh box', 'timeout 9 ssh box', "env 'A=b c' ssh box docker exec -i x"])
      expect(remoteCommand(prefix, 's').args.at(-1)).toBe(`'sh' '-c' 's' 'heddle'`)
    // A container of that name is none.
    expect(remoteCommand('docker exec -i ssh', 's').args.slice(-4)).toEqual(['sh', '-c', 's', 'heddle'])
  })

  it.each(['', '-oProxyCommand=x', '-v box', 'a;b', 'a$(b)', 'box"', "box 'x", '   '])('refuses %j', (on) => {
    expect(refusal(() => remoteCommand(on, 's'))).toMatchObject({
      code: 'remote.host',
      hint: expect.stringContaining('~/.ssh/config'),
    })
  })

  it('quotes every word for a shell', () => {
    const word = fc.string({ unit: 'grapheme-ascii', minLength: 1 }).filter((text) => !text.includes('\0'))
    fc.assert(
      fc.property(word, (text) => {
        expect(execFileSync('sh', ['-c', `printf %s ${shellWord(text)}`], { encoding: 'utf8' })).toBe(text)
        const { args } = remoteCommand('box', 'printf %s "$1"', [text])
        expect(execFileSync('sh', ['-c', args.at(-1) ?? ''], { encoding: 'utf8' })).toBe(text)
      }),
      { numRuns: 30 },
    )
  })
})

describe('the scripts', () => {
  it.each([startScript, putScript])('survive shells that split lines or read backslashes', (script) => {
    expect(script).not.toMatch(/[\n\\'!]/)
  })

  it('overwrite nothing, and leave nothing of a cut transfer', () => {
    const home = mkdtempSync(join(tmpdir(), 'heddle put-'))
    try {
      const run = (command: string): string =>
        execFileSync('sh', ['-c', command], {
          encoding: 'utf8',
          cwd: home,
          env: { HOME: home, PATH: process.env.PATH },
          stdio: 'pipe',
        })
      const put = (archive: string, ...parts: readonly string[]): string =>
        run(`${archive} | sh -c ${shellWord(putScript)} heddle plain ${parts.join(' ')}`)
      run(
        'mkdir a b; echo new >a/file; echo b >b/file; touch whole; mkdir -p .cache/heddle/remote/a; echo old >.cache/heddle/remote/a/file',
      )
      expect(put('tar -cf - a b whole', 'a', 'b')).toBe('heddle-remote put\n')
      expect(run('cat .cache/heddle/remote/*/file; ls -A .cache/heddle/remote')).toBe('old\nb\na\nb\n')
      expect(() => put('tar -cf - a b', 'c')).toThrow('the transfer was cut')
      expect(run('ls -A .cache/heddle/remote')).toBe('a\nb\n')
    } finally {
      rmSync(home, { recursive: true })
    }
  })
})

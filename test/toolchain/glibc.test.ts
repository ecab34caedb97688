/** Requirements of a file as objdump prints them, and the refusal of a file that requires too much, with the symbols. */
import { expect, test } from 'vitest'
import { compareVersions, expectOldGlibc, parseNeed } from '../../src/toolchain/glibc.js'

const line = (version: string, symbol: string): string => `0000000000000000      DF *UND*\t0000000000000000 ${version} ${symbol}`

test('the newest version counts, and all that is taken from it', () => {
  const text = [line('(GLIBC_2.9)', 'a'), line('(GLIBC_2.34)', 'dlopen'), line('(GLIBC_2.34)', 'dlsym'), line('(GLIBC_2.4)', 'b')]
  expect(parseNeed(text.join('\n'))).toEqual({ version: '2.34', symbols: ['dlopen', 'dlsym'] })
  expect(parseNeed(line('GLIBC_2.2.5', 'open'))).toEqual({ version: '2.2.5', symbols: ['open'] })
})

test('symbols defined by a file, and other libraries, do not count', () => {
  const defined = '0000000000001000 g    DF .text\t0000000000000010  (GLIBC_2.40) own'
  expect(parseNeed([defined, line('(GLIBCXX_3.4.30)', 'c'), line('            ', 'd')].join('\n'))).toEqual({
    version: '0',
    symbols: [],
  })
})

test.each([
  ['2.9', '2.31', -1],
  ['2.31', '2.31', 0],
  ['2.31.1', '2.31', 1],
  ['3', '2.31', 1],
])('%s against %s', (a, b, sign) => expect(Math.sign(compareVersions(a, b))).toBe(sign))

test('too new is refused, by symbol', () => {
  expect(() => expectOldGlibc('x/lib.so', { version: '2.31', symbols: ['a'] })).not.toThrow()
  expect(() => expectOldGlibc('x/lib.so', { version: '2.36', symbols: ['arc4random'] })).toThrow(
    expect.objectContaining({
      code: 'bundle.glibc',
      exitCode: 1,
      message: 'lib.so needs glibc 2.36 for arc4random; a bundle supports at most 2.31',
    }),
  )
})

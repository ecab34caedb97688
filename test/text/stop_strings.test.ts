import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { stopStrings } from '../../src/text/stop_strings.js'
import { refusal } from '../refusal.js'

/** The visible part of a text that arrives in pieces, and the string that ended it. */
function shownOf(pieces: readonly string[], stops: readonly string[]): { text: string; stop: string | undefined } {
  const search = stopStrings(stops)
  let text = ''
  let stop: string | undefined
  for (const piece of pieces) {
    const shown = search.push(piece)
    text += shown.text
    stop ??= shown.stop
  }
  return { text: text + search.finish(), stop }
}

/** The same by checking every character: the first place where a stop string is complete, and the longest of those. */
function expected(text: string, stops: readonly string[]): { text: string; stop: string | undefined } {
  for (let end = 1; end <= text.length; end++) {
    const complete = stops.filter((stop) => text.slice(0, end).endsWith(stop)).sort((a, b) => b.length - a.length)
    const [stop] = complete
    if (stop !== undefined) return { text: text.slice(0, end - stop.length), stop }
  }
  return { text, stop: undefined }
}

const letters = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 1, maxLength: 4 })

describe('stop strings', () => {
  it('end a text once they are complete, however it is split', () => {
    expect(shownOf(['In the ', 'begin', 'ning\n', '\nGod'], ['\n\n'])).toEqual({ text: 'In the beginning', stop: '\n\n' })
    expect(shownOf(['abcd'], ['bc', 'abcd'])).toEqual({ text: 'a', stop: 'bc' })
    expect(shownOf(['a', 'b', 'c'], ['bc', 'abc'])).toEqual({ text: '', stop: 'abc' })
    expect(shownOf(['one two'], [])).toEqual({ text: 'one two', stop: undefined })
    fc.assert(
      fc.property(fc.array(letters, { maxLength: 12 }), fc.array(letters, { maxLength: 4 }), (pieces, stops) => {
        expect(shownOf(pieces, stops)).toEqual(expected(pieces.join(''), stops))
      }),
      { numRuns: 500 },
    )
  })

  it('hold back only possible beginnings of one', () => {
    const search = stopStrings(['</s>', 'User:'])
    expect(search.push('Amen.').text).toBe('Amen.')
    expect(search.push(' <').text).toBe(' ')
    expect(search.push('/').text).toBe('')
    expect(search.push('b>Us').text).toBe('</b>')
    expect(search.push('e').text).toBe('')
    expect(search.push(' it').text).toBe('Use it')
    expect(search.push('User')).toEqual({ text: '' })
    expect(search.finish()).toBe('User')
    fc.assert(
      fc.property(fc.array(letters, { maxLength: 12 }), fc.array(letters, { maxLength: 4 }), (pieces, stops) => {
        const search = stopStrings(stops)
        let [all, shown] = ['', '']
        for (const piece of pieces) {
          all += piece
          const { text, stop } = search.push(piece)
          if (stop !== undefined) return
          shown += text
          const held = all.slice(shown.length)
          expect(all).toBe(shown + held)
          if (held !== '') expect(stops.some((each) => each.length > held.length && each.startsWith(held))).toBe(true)
        }
      }),
      { numRuns: 500 },
    )
  })

  it('show nothing after the end', () => {
    const search = stopStrings(['.'])
    expect(search.push('a.b')).toEqual({ text: 'a', stop: '.' })
    expect(search.push('c')).toEqual({ text: '' })
    expect(search.finish()).toBe('')
  })

  it('are refused if they are invalid', () => {
    for (const [stops, text] of [
      [[''], 'stop 0 is empty'],
      [['a', '\ud83d'], 'stop 1 holds half of a character'],
      [['a'.repeat(1025)], 'stop 0 has 1025 characters'],
      [Array.from({ length: 65 }, () => 'a'), 'stop has 65 texts'],
      [[3] as unknown as string[], 'stop 0 is of type number'],
      ['a' as unknown as string[], 'stop has no texts'],
    ] as const) {
      const { code, message } = refusal(() => stopStrings(stops))
      expect([code, message]).toEqual(['generate.stop', expect.stringContaining(text)])
    }
    expect(shownOf(['a🙂b'], ['🙂'])).toEqual({ text: 'a', stop: '🙂' })
  })
})

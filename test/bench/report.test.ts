import { describe, expect, it } from 'vitest'
import { reportHtml } from '../../src/bench/report/report.js'
import { linear, logarithmic, tickText } from '../../src/bench/report/scale.js'
import type { BenchEncoderResult } from '../../src/bench/result.js'
import { benchTable } from '../../src/bench/table.js'
import { all, type HtmlElement, named, parseHtml } from './html.js'
import { benchResult, peerTimes, planTimes } from './results.js'

const profile = [
  { kernel: 'bias_gelu__f16', count: 12, milliseconds: 0.6 },
  { kernel: 'matmul fc1', count: 12, milliseconds: 0.3 },
]

const result = benchResult(
  [
    planTimes('unfused', [1, 32], 0.8, 0.04, [{ kernel: 'gelu__f16', count: 12, milliseconds: 1.8 }]),
    planTimes('ft-v1', [1, 32], 0.4, 0.04, profile),
    planTimes('unfused', [32, 128], 8, 0.9, undefined),
  ],
  [peerTimes('graph', [1, 32], 0.6), peerTimes('compile', [1, 32], 0.5), peerTimes('packed', [32, 128], undefined)],
)

const page = (of: BenchEncoderResult): HtmlElement => parseHtml(reportHtml(of, 'heddle bench encoder'))
/** What a list must have for the test to go on. */
function the<T>(found: T | undefined): T {
  if (found === undefined) throw new Error('the report lacks an element')
  return found
}

const within = (root: HtmlElement, id: string): HtmlElement => the(all(root, ({ attributes }) => attributes.id === id)[0])
const number = ({ attributes }: HtmlElement, key: string): number => Number(attributes[key])
const widths = (panel: HtmlElement, kind: string): number[] => named(panel, 'rect', kind).map((rect) => number(rect, 'width'))

/** Coordinates are rounded to a hundredth of a pixel, and bars are tens of pixels long. */
const digits = 2

describe('time by plan and shape', () => {
  const panels = named(within(page(result), 'times'), 'svg')
  const [small, large] = panels

  it('has a panel for each shape, with bars in proportion to the medians', () => {
    expect(panels.map((panel) => named(panel, 'text', 'title')[0]?.text)).toEqual([
      '1x32 · mean length 32.0 · floor 0.04000 ms',
      '32x128 · mean length 128.0 · floor 0.9000 ms',
    ])
    const [unfused = 0, fused = 0] = widths(the(small), 'plan')
    const [graph = 0, compile = 0] = widths(the(small), 'peer')
    expect(unfused).toBeGreaterThan(100)
    expect(fused / unfused).toBeCloseTo(0.4 / 0.8, digits)
    expect(graph / unfused).toBeCloseTo(0.6 / 0.8, digits)
    expect(compile / unfused).toBeCloseTo(0.5 / 0.8, digits)
  })

  it('draws whiskers over the quartiles and the floor where it lies', () => {
    const [unfused = 0] = widths(the(small), 'plan')
    const [whisker] = named(the(small), 'line', 'whisker')
    expect(number(the(whisker), 'x1') / unfused).toBeCloseTo(0.95, digits)
    expect(number(the(whisker), 'x2') / unfused).toBeCloseTo(1.1, digits)
    const [floor] = named(the(small), 'line', 'floor')
    expect(number(the(floor), 'x1') / unfused).toBeCloseTo(0.04 / 0.8, digits)
  })

  it('leaves out peers without times, and keeps everything inside of the drawing', () => {
    expect(widths(the(large), 'peer')).toEqual([])
    for (const panel of panels) {
      const right = number(panel, 'width')
      for (const text of named(panel, 'text', 'value'))
        expect(number(text, 'x') + 6.6 * text.text.length).toBeLessThanOrEqual(right)
    }
  })
})

describe('time by kernel', () => {
  it('stacks the kernels of a plan end to end, on one axis with the other plans', () => {
    const [panel] = named(within(page(result), 'kernels'), 'svg')
    const bars = named(the(panel), 'rect')
    const [gelu = 0, bias = 0, matmul = 0] = bars.map((rect) => number(rect, 'width'))
    expect(bars.map(({ children }) => children[0]?.text.split(':')[0])).toEqual(['gelu', 'bias_gelu', 'matmul fc1'])
    expect(bias / gelu).toBeCloseTo(0.6 / 1.8, digits)
    expect(matmul / bias).toBeCloseTo(0.3 / 0.6, digits)
    expect(bars.map((rect) => number(rect, 'x'))).toEqual([0, 0, bias])
  })

  it('gives what has no hue of its own one bar', () => {
    const many = Array.from({ length: 20 }, (_, i) => ({ kernel: `kernel${i}`, count: 1, milliseconds: 20 - i }))
    const root = page(benchResult([planTimes('unfused', [1, 32], 210, 1, many)]))
    const bars = named(within(root, 'kernels'), 'rect')
    expect(bars).toHaveLength(13)
    // Kernels 12 to 19 take 8 + 7 + ... + 1 ms.
    expect(number(the(bars[12]), 'width') / number(the(bars[0]), 'width')).toBeCloseTo(36 / 20, digits)
  })

  it('is left out without profiles', () => {
    const root = page(benchResult([planTimes('unfused', [1, 32], 1, 0.1, undefined)]))
    expect(all(root, ({ attributes }) => attributes.id === 'kernels')).toEqual([])
  })
})

describe('roofline', () => {
  const chart = (of: BenchEncoderResult): HtmlElement => within(page(of), 'roofline')

  it('puts a plan a power of ten below another that is ten times as fast, straight below it', () => {
    const times = [1, 10, 100].map((median) => planTimes(`plan ${median}`, [1, 32], median, 0.5, undefined))
    const marks = named(chart(benchResult(times)), 'circle')
    const [first = 0, second = 0, third = 0] = marks.map((mark) => number(mark, 'cy'))
    expect(second - first).toBeGreaterThan(20)
    expect(third - second).toBeCloseTo(second - first, 1)
    expect(new Set(marks.map((mark) => mark.attributes.cx)).size).toBe(1)
  })

  it('puts a plan at its floor on the roof, on the slope and on the flat part', () => {
    // 0.8 TFLOP and 4 GB a millisecond are at the ridge of the device of the results; a third of the work is on the slope.
    const ridge = planTimes('ridge', [1, 32], 0.03, 0.03, undefined)
    const slope = { ...ridge, plan: 'slope', workload: { flops: ridge.workload.flops / 3, bytes: ridge.workload.bytes } }
    const flat = planTimes('flat', [1, 64], 4, 4, undefined)
    const drawing = chart(benchResult([ridge, slope, flat]))
    const [roof] = named(drawing, 'polyline', 'roof')
    const corners = (roof?.attributes.points ?? '').split(' ').map((point) => point.split(',').map(Number))
    const [[left = 0, low = 0] = [], [corner = 0, high = 0] = []] = corners
    for (const mark of named(drawing, 'circle')) {
      const [x, y] = [number(mark, 'cx'), number(mark, 'cy')]
      const on = x >= corner ? high : low + ((high - low) * (x - left)) / (corner - left)
      expect(y).toBeCloseTo(on, 1)
    }
  })

  it('shows the fastest peer of a shape only', () => {
    expect(named(chart(result), 'circle', 'peer').map(({ text }) => text.split(':')[0])).toEqual(['torch compile 1x32'])
  })

  it('has no roof where the ceilings are not known', () => {
    const unknown = { ...result, ceilings: undefined }
    expect(named(chart(unknown), 'polyline')).toEqual([])
    expect(page(unknown).text).toContain('ceilings are not known')
  })
})

describe('the page', () => {
  it('escapes whatever it shows', () => {
    const name = `<b onload="x">&amp;'`
    const hostile = benchResult(
      [planTimes(name, [1, 32], 1, 0.1, [{ kernel: name, count: 1, milliseconds: 1 }])],
      [{ ...peerTimes(name, [1, 32], undefined), error: name }, peerTimes(name, [1, 32], 2)],
    )
    const html = reportHtml({ ...hostile, config: name, lengths: name, device: { ...hostile.device, name } }, name)
    const root = parseHtml(html)
    expect(named(root, 'b')).toEqual([])
    expect(html).not.toContain('<b onload')
    expect(named(root, 'code')[0]?.text).toBe(name)
    expect(named(root, 'td').filter(({ text }) => text === name).length).toBeGreaterThanOrEqual(4)
    expect(named(within(root, 'times'), 'title').some(({ text }) => text.startsWith(`${name}: `))).toBe(true)
  })

  it('needs nothing from elsewhere', () => {
    const html = reportHtml(result, 'heddle bench encoder')
    expect(html).not.toMatch(/https?:|<script|<link|@import|url\(|src=/)
  })

  it('gives light and dark every colour that is used', () => {
    const html = reportHtml(result, 'heddle bench encoder')
    const [light = '', dark = ''] = [...html.matchAll(/:root \{([^}]*)\}/g)].map(([, block]) => block)
    const used = [...new Set([...html.matchAll(/var\((--[a-z0-9]+)\)/g)].map(([, name]) => `${name}:`))]
    expect(used.length).toBeGreaterThan(10)
    for (const name of used) expect([light.includes(name), dark.includes(name)], name).toEqual([true, true])
  })

  it('has every number of the terminal', () => {
    const text = page(result).text
    for (const cell of ['0.8000', '0.7600 to 0.8800', '5.0 %', '1.60', '0.80', '230.0', '1.10', 'RuntimeError: no kernel']) {
      expect(text, cell).toContain(cell)
      expect(benchTable(result, true), cell).toContain(cell)
    }
  })
})

describe('axes', () => {
  it('have about five ticks at round values, the first at 0', () => {
    expect(linear(13.6, 100).ticks).toEqual([0, 5, 10])
    expect(linear(0.701, 100).ticks).toEqual([0, 0.2, 0.4, 0.6])
    expect(linear(5, 100).at(2.5)).toBe(50)
    for (const most of [0.04, 1, 2, 9.9, 60, 777]) {
      expect(linear(most, 1).ticks.length, String(most)).toBeGreaterThanOrEqual(3)
      expect(linear(most, 1).ticks.length, String(most)).toBeLessThanOrEqual(7)
    }
  })

  it('are widened to powers of ten when logarithmic', () => {
    expect(logarithmic(30, 2000, 300).ticks).toEqual([10, 100, 1000, 10000])
    expect(logarithmic(30, 2000, 300).at(100)).toBe(100)
    expect(logarithmic(10, 10, 1).ticks).toEqual([10, 100])
  })

  it('write ticks briefly', () => {
    expect([0, 0.2, 2.5, 100, 1000, 10000].map(tickText)).toEqual(['0', '0.2', '2.5', '100', '1k', '10k'])
  })
})

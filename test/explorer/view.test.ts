/** Parts of pages: drawings of plans, parsed runs, comparisons of two runs, and the page as text. */
import { describe, expect, it } from 'vitest'
import { benchTable } from '../../src/bench/table.js'
import { explorerSchema } from '../../src/explorer/model.js'
import { inlineJson, pageHtml } from '../../src/explorer/page.js'
import { drawPlan } from '../../src/explorer/plan_view.js'
import { reportPage } from '../../src/explorer/report.js'
import { type AnyRun, readRun } from '../../src/explorer/runs/read.js'
import { benchView, compareRuns, measuredKernels } from '../../src/explorer/runs/view.js'
import { benchResult, peerTimes, planTimes } from '../bench/results.js'
import { refusal } from '../refusal.js'
import { edge, encoderPage, fused, graphPage, report, samples, step, target, unfused } from './data.js'

const limit = 1.05

describe('the drawing of a plan', () => {
  const drawn = drawPlan(unfused)
  it('has one box per step, without overlap, all inside', () => {
    expect(drawn.boxes.map(({ kernel }) => kernel)).toEqual(['product', 'add_bias', 'gelu', 'add', 'layer_norm'])
    for (const [i, a] of drawn.boxes.entries()) {
      expect([a.x >= 0, a.y >= 0, a.x + a.width <= drawn.width, a.y + a.height <= drawn.height]).toEqual([true, true, true, true])
      for (const b of drawn.boxes.slice(i + 1)) {
        const isApart = a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y
        expect(isApart, `${a.kernel} and ${b.kernel}`).toBe(true)
      }
    }
  })
  it('has one line for all values between two steps, downwards', () => {
    const twice = report('twice', [step('a', ['x', 'y'], 1), step('b', ['z'], 1)], [edge('x', 'z'), edge('y', 'z')])
    const { edges, boxes } = drawPlan(twice)
    expect(edges.map(({ from, to }) => [from, to])).toEqual([[0, 1]])
    expect((boxes[1]?.y ?? 0) > (boxes[0]?.y ?? 0)).toBe(true)
  })
  it('states for each line if the two steps could be one', () => {
    expect(drawn.edges.map(({ legal, gain }) => [legal, gain])).toEqual([
      [true, 3],
      [true, 8],
      [true, 4],
      [true, 3],
      [false, undefined],
    ])
  })
})

describe('runs', () => {
  const view = benchView([{ file: 'a', any: target(0.045) }], [unfused, fused], limit)

  it('tell measured from predicted times by the names of kernels', () => {
    expect(Object.fromEntries(measuredKernels(view?.runs ?? [], 'unfused'))).toEqual({ product: 28, gelu: 15, layer_norm: 5 })
    expect(view?.predictions.map(({ name, predicted, measured }) => [name, predicted, measured])).toEqual([
      ['product', 30, 28],
      ['gelu', 13, 15],
      ['layer_norm', 4.2, 5],
      ['matmul_bias_gelu_and_more_than_fits_in_a_box', 31, 34],
      ['attention', 9, 11],
    ])
    expect(measuredKernels(view?.runs ?? [], 'no such plan').size).toBe(0)
  })

  it('lie below the roof: arithmetic of a kernel over its bytes, and over its time', () => {
    const dot = view?.runs[0]?.dots.find(({ name }) => name === 'attention')
    expect(dot).toMatchObject({ intensity: 9e9 / 6e6, attained: (1e6 * 9e9) / 11, of: 'fused' })
    // Kernels without counted arithmetic are not on the roofline.
    expect(view?.runs[0]?.dots.map(({ name }) => name)).not.toContain('gelu')
  })

  const verdicts = (before: AnyRun, now: AnyRun) => compareRuns(before, now, limit).map(({ name, verdict }) => [name, verdict])
  it('are compared by ranks, beyond a ratio', () => {
    const [fast, slow] = [target(0.045), target(0.06)]
    expect(verdicts(fast, slow)).toEqual([
      ['unfused', 'same'],
      ['fused', 'slower'],
    ])
    expect(verdicts(slow, fast)[1]).toEqual(['fused', 'faster'])
    // Ranks differ, medians by less than 5 %.
    expect(verdicts(fast, target(0.046))[1]).toEqual(['fused', 'same'])
  })
  it('are not tested without samples, or with too few', () => {
    const saved = (times: readonly number[]): AnyRun =>
      readRun(
        JSON.stringify({
          version: 1,
          subject: 's',
          device: 'd',
          dtype: 'f16',
          results: [{ plan: 'p', dims: { m: 1 }, samples: times }],
        }),
        'f',
      )
    expect(verdicts(saved([1, 1, 1]), saved([2, 2, 2]))).toEqual([['p', 'not tested']])
    expect(verdicts(saved(samples(1)), saved(samples(2)))).toEqual([['p', 'slower']])
    const encoder = readRun(JSON.stringify(benchResult([planTimes('unfused', [1, 32], 1, 0.1, undefined)])), 'f')
    expect(verdicts(encoder, encoder)).toEqual([['unfused', 'not tested']])
  })

  it('are refused with the reason if they are invalid', () => {
    const refused = (text: string, said: RegExp): void => {
      const { code, message, hint } = refusal(() => readRun(text, 'times.json'))
      expect([code, message]).toEqual(['explore.bench', expect.stringMatching(said)])
      expect(hint).toContain('--json')
    }
    refused('{', /times\.json is not JSON/)
    refused('[]', /not a result of heddle bench/)
    refused('{"version": 2}', /not a result of heddle bench: version: /)
    refused('{"sizes": [], "subject": 3}', /not a result of heddle bench: subject: /)
  })
})

describe('the page', () => {
  const result = benchResult(
    [
      planTimes('unfused', [1, 32], 0.8, 0.04, [{ kernel: 'gelu__f16', count: 12, milliseconds: 1.8 }]),
      planTimes('unfused', [32, 128], 8, 0.9, undefined),
    ],
    [peerTimes('graph', [1, 32], 0.6), peerTimes('packed', [32, 128], undefined)],
  )
  const shown = benchView([{ any: readRun(JSON.stringify(result), 'f') }], [], limit)
  const cells = shown?.runs[0]?.tables.flatMap(({ rows }) => rows.flat()) ?? []

  it('has every number of the terminal', () => {
    for (const cell of ['0.8000', '0.7600 to 0.8800', '5.0 %', '1.33', '230.0', '1.10', 'RuntimeError: no kernel']) {
      expect(cells, cell).toContain(cell)
      expect(benchTable(result, true), cell).toContain(cell)
    }
  })
  it('shows the fastest peer of a shape only under the roof', () => {
    const dots = encoderPage().bench?.runs[0]?.dots ?? []
    expect(dots.filter(({ peer }) => peer).map(({ name, of }) => [name, of])).toEqual([
      ['torch compile, reduce-overhead', '1x32'],
    ])
  })
  it('says that ceilings are unknown', () => {
    expect(reportPage({ ...result, ceilings: undefined }, '').includes('No physical floor: the limits of')).toBe(true)
  })
  it('is the data of the contract, inside of a file that needs nothing from elsewhere', () => {
    const html = pageHtml(graphPage())
    const [, data = ''] = /<script type="application\/json" id="data">(.*?)<\/script>/s.exec(html) ?? []
    expect(explorerSchema.parse(JSON.parse(data))).toEqual(graphPage())
    // The browser test checks the script's requests: there are none.
    const markup = html.replace(/<script>.*<\/script>/s, '')
    expect(markup.match(/<link[^>]*href="(?!data:)|<script[^>]*src=|@import|url\(/g)).toBeNull()
    expect(markup.includes("default-src 'none'")).toBe(true)
  })
  it('closes no element, whatever the names', () => {
    const name = '</script><b onload="x">\u2028'
    expect(inlineJson({ name })).not.toContain('<')
    expect(JSON.parse(inlineJson({ name }))).toEqual({ name })
    const html = reportPage({ ...result, config: name, device: { ...result.device, name } }, name)
    expect(html.includes('<b onload')).toBe(false)
  })
  it('defines every colour for light and dark', () => {
    const html = pageHtml(graphPage())
    const [light = '', dark = ''] = [...html.matchAll(/:root \{([^}]*)\}/g)].map(([, block]) => block)
    const used = [...new Set([...html.matchAll(/var\((--[a-z0-9]+)\)/g)].map(([, name]) => `${name}:`))]
    expect(used.length).toBeGreaterThan(20)
    for (const name of used) expect([light.includes(name), dark.includes(name)], name).toEqual([true, true])
  })
})
